"""The reading verbs, `run` and `--once`: one line, the right exit code, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from tests.filesystems.hostile.faults import NAMED
from tests.filesystems.hostile.mount import FULL, Pair, pair, why_not
from tests.patience import PATIENCE
from tests.stress.syscalls.tracer import run
from tests.tui.terminal import environment

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

SOME = ("replies are lost as ENOENT", "everything seen late", "calls fail", "the mount hangs")
LOOKS = {
    "init": {0, 1},
    "ls": {0, 1},
    "show t": {0, 1, 3, 5},
    "log": {0, 1},
    "stats": {0, 1},
    "status door": {0, 1},
    "check": {0, 1, 6},
    "undo": {1, 2, 3},
}
"""Each with the exit codes that it may have on a bad disk."""


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A board with one task in each state."""
    os.environ |= {"LANGUAGE": "C", "COLUMNS": "80", "LINES": "24"}
    with pair(tmp_path_factory.mktemp("hostile")) as made:
        board = dibs.open(made.near.place / "board", create=True)
        for ident in ("t", "waiting", "parked"):
            board.add(ident)
        board.claim("t", owner="worker", ttl=3600)
        board.park(board.find("parked")[0].name, "no such branch")
        board.acquire("door", owner="deployer", ttl=3600)
        yield made


@pytest.mark.parametrize("name", NAMED if FULL else SOME)
def test_a_reading_verb_gives_an_answer_or_one_line(
    name: str, mounts: Pair, tmp_path: Path
) -> None:
    board = tmp_path / "board"
    board.symlink_to(mounts.near.place / "board")
    wrong = []
    for verb, exits in LOOKS.items():
        with mounts.near.wrong(NAMED[name]):
            done = run(board, verb.split(), 0, None)
        said = done.err.splitlines()
        if done.code not in exits or len(said) > 1 or not all(x.startswith("dibs: ") for x in said):
            wrong.append(f"{verb}: exit {done.code}: {done.err or done.out}")
    assert not wrong, "\n".join(wrong)


def in_a_process(home: Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("name", NAMED if FULL else SOME)
def test_a_command_under_run_runs_once_or_not_at_all(
    name: str, mounts: Pair, tmp_path: Path
) -> None:
    ident = f"job-{len(os.listdir(mounts.below / 'board/.dibs/known'))}"
    dibs.open(mounts.below / "board").add(ident)
    ran = tmp_path / "ran"
    with mounts.near.wrong(NAMED[name]):
        verb = ("-d", mounts.near.place / "board", "run", ident, "--ttl", "20")
        done = in_a_process(tmp_path, "dibs", *verb, "--", "sh", "-c", f"echo once >> {ran}")
    assert "Traceback" not in done.stderr
    assert len(ran.read_text().splitlines() if ran.exists() else []) <= 1
    finished = [task.state for task in dibs.open(mounts.below / "board").find(ident)]
    assert (done.returncode == 0) <= (finished == ["done"] and ran.exists())
    assert done.returncode in (0, 1, 3, 4, 5)


@pytest.mark.parametrize("name", NAMED if FULL else SOME)
def test_once_prints_a_frame_or_one_line_with_the_reason(
    name: str, mounts: Pair, tmp_path: Path
) -> None:
    with mounts.near.wrong(NAMED[name]):
        place = mounts.near.place / "board"
        done = in_a_process(tmp_path, "dibs_tui.cli", "board", "--once", place)
    assert "Traceback" not in done.stderr
    assert (done.returncode, "waiting" in done.stdout) in ((0, True), (1, False))
