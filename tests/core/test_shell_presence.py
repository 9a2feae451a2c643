"""A shell's loop that waits shows it as dibs does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.core.library import SHELLS, Fleet
from tests.stress.running import until

STRICT = "set -Eeuo pipefail; trap 'exit 9' ERR; IFS=x; declare -u name; "


@contextmanager
def looping(fleet: Fleet, script: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that runs beside the test; it and its children are killed at the end."""
    process = subprocess.Popen(
        [
            shutil.which(fleet.program[0]) or "",
            *fleet.program[1:],
            "-c",
            f". '{fleet.library}'\n{script}",
        ],
        env={"PATH": fleet.commands, "DIBS_DIR": str(fleet.path), "USER": "tester"} | env,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("poll", ["0.2", "30"])
@pytest.mark.parametrize("program", [*SHELLS, ["bash"]], ids=lambda program: program[0])
def test_a_loop_that_waits_is_shown_until_it_gets_a_task(
    scratch: Path, program: list[str], poll: str
) -> None:
    fleet = Fleet(scratch, program)
    strict = STRICT if program[0] == "bash" else ""
    board = fleet.board()
    stop = scratch / "stop"
    script = f'{strict}h() {{ while [ ! -e "{stop}" ]; do sleep 0.1; done; }}; process_loop h'
    with looping(fleet, script, DIBS_POLL=poll, DIBS_OWNER='a "shell" é') as loop:
        until(board.waiters)
        (waiter,) = board.waiters()
        assert (waiter.owner, waiter.state) == ('a "shell" é', "idle")
        assert waiter.host
        assert waiter.since > 1e9
        if poll == "0.2":
            fleet.add("a")
            until(lambda: not board.waiters())
            stop.touch()
            until(board.waiters)
            assert fleet.names()[0].startswith("done/a.f1.")
        assert loop.poll() is None
    assert len(board.waiters()) == 1  # it was killed, so its file is left for 30 s


def test_a_presence_that_was_removed_is_created_again(scratch: Path) -> None:
    fleet = Fleet(scratch, SHELLS[0])
    fleet.sh("reap_stale")
    (name,) = fleet.sh("dibs_do show ''").split()
    path = fleet.path / ".dibs/waiting" / name
    before = path.read_text()
    os.utime(path, (1, 1))
    fleet.sh(f"dibs_do show {name}")
    assert path.stat().st_mtime > 1e9
    path.unlink()
    fleet.sh(f"dibs_do show {name}")
    assert path.read_text()[:40] == before[:40]
    fleet.sh(f"dibs_do hide {name}")
    assert not path.exists()


def test_no_link_in_the_place_of_the_folder_is_followed(scratch: Path) -> None:
    fleet = Fleet(scratch, SHELLS[0])
    fleet.sh("reap_stale")
    away = scratch / "away"
    away.mkdir()
    (fleet.path / ".dibs/waiting").symlink_to(away)
    (name,) = fleet.sh("dibs_do show ''").split()
    (away / name).touch()
    fleet.sh(f"dibs_do hide {name}")
    assert [path.name for path in away.iterdir()] == [name]
    board = fleet.board()
    presence = board.presence("me")
    presence.keep()
    assert board.waiters() == ()
    board.reap()
    assert [path.name for path in away.iterdir()] == [name]
