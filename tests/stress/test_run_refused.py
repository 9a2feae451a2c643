"""`dibs run` with a process that it may not signal: reported, and the claim is left to expire."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.tools import NOBODY
from tests.stress.running import DIBS, Site, alive, ended, events, guard_of, site, until

UNABLE = ("setpriv", "--bounding-set", "-kill", *DIBS)
"""A `dibs` that may not signal the processes of other users, like any user but root."""
LEAVES = (
    "reader, writer = os.pipe()\n"
    "if child := os.fork():\n"
    "    os.read(reader, 1)\n"
    "    note('other', str(child))\n"
    "    THEN\n"
    "else:\n"
    f"    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n"
    "    os.dup2(os.open('/dev/null', os.O_WRONLY), 1)\n"  # the test reads the other one to its end
    "    os.write(writer, b'x')\n"
    "    while True: WORK\n"
)
"""A command that leaves a process of another user in its group, as `sudo x &` does."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("A PROCESS OF ANOTHER USER WAS NOT TRIED: it takes root and setpriv")
    if subprocess.run([*UNABLE[:3], "true"]).returncode:
        pytest.skip("A PROCESS OF ANOTHER USER WAS NOT TRIED: setpriv is not allowed here")
    with site(tmp_path / "board") as found:
        yield found


def leaves(place: Site, then: str, work: str = "time.sleep(60)") -> list[str]:
    """A command that leaves a process, which runs `work`; the command itself runs `then`."""
    return place.python(LEAVES.replace("THEN", then).replace("WORK", work))


def test_a_run_reports_a_leftover_process_that_it_may_not_signal_and_ends(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "3", "--log-json", *leaves(place, "os._exit(0)"), dibs=UNABLE)
    other = place.pid("other")
    _, err = ended(run, 5)
    assert alive(other)
    last = events(err)[-1]
    assert last["event"] == "uncertain"
    assert f"cannot be ended: {other} (python" in last["reason"]
    assert "is left to expire" in last["reason"]
    beats = [event["event"] for event in events(err)].count("renewed")
    assert beats <= 2, "a claim that cannot be ended is not renewed"


def test_the_claim_of_such_a_run_expires_and_is_not_claimed_before(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "3", *leaves(place, "os._exit(0)"), dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    claim = place.state("a")
    assert claim.live, "no one may claim it while the work runs"
    (given,) = until(lambda: place.board.reap().tasks)
    assert given.name == "a.f1a1.available"


def test_a_lock_is_not_free_while_its_work_runs(place: Site) -> None:
    command = leaves(place, "os._exit(0)")
    run = place.run("--lock", "door", "--ttl", "3", *command, dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    assert place.state("door").state == "held"


def test_such_a_run_ends_on_a_signal(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "60", *leaves(place, "time.sleep(60)"), dibs=UNABLE)
    place.pid("other")
    run.send_signal(signal.SIGTERM)
    _, err = ended(run, 5)
    assert b"cannot be ended" in err


def test_output_of_the_leftover_process_does_not_stop_the_run_from_ending(place: Site) -> None:
    place.board.add("a")
    command = leaves(place, "os._exit(0)", "os.write(2, b'x' * 4096)")
    run = place.run("--ttl", "3", *command, dibs=UNABLE)
    other = place.pid("other")
    ended(run, 5)
    until(lambda: not alive(other))  # its output has no reader any more


def test_a_loop_claims_no_more_tasks_after_it(place: Site) -> None:
    for name in "ab":
        place.board.add(name)
    run = place.run("--loop", "--ttl", "3", *leaves(place, "os._exit(0)"), dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    assert place.state("b").name == "b.available"


def test_the_guard_of_a_killed_run_ends_even_with_a_leftover_process(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "60", *leaves(place, "time.sleep(60)"), dibs=UNABLE)
    other = place.pid("other")
    guard = guard_of(run.pid)
    run.kill()
    run.wait()
    until(lambda: not alive(guard))
    assert alive(other)
    assert place.state("a").live, "its work may still run"
