"""`dibs run` beside a process that it may not signal: reported, left to expire, and never kept."""

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
"""A `dibs` that may not signal the processes of other users, as no user but root may."""
LEAVES = (
    "reader, writer = os.pipe()\n"
    "if child := os.fork():\n"
    "    os.read(reader, 1)\n"
    "    note('other', str(child))\n"
    "    THEN\n"
    "else:\n"
    f"    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n"
    "    os.dup2(os.open('/dev/null', os.O_WRONLY), 1)\n"  # the test reads it to its end
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
    """The command: what it does then, and what is done by the process that it leaves."""
    return place.python(LEAVES.replace("THEN", then).replace("WORK", work))


def test_a_run_whose_command_left_what_it_may_not_signal_reports_it_and_ends(place: Site) -> None:
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
    assert beats <= 2, "a claim that cannot be ended is not kept"


def test_the_claim_of_such_a_run_expires_and_is_not_given_out_before(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "3", *leaves(place, "os._exit(0)"), dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    claim = place.state("a")
    assert claim.live, "while work goes on it is nobody's to give out"
    (given,) = until(lambda: place.board.reap().given_back)
    assert given.name == "a.f1a1.available"


def test_a_lock_is_not_free_while_what_it_guards_goes_on(place: Site) -> None:
    command = leaves(place, "os._exit(0)")
    run = place.run("--lock", "door", "--ttl", "3", *command, dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    assert place.state("door").state == "held"


def test_such_a_run_that_is_told_to_end_ends(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "60", *leaves(place, "time.sleep(60)"), dibs=UNABLE)
    place.pid("other")
    run.send_signal(signal.SIGTERM)
    _, err = ended(run, 5)
    assert b"cannot be ended" in err


def test_what_the_left_process_writes_keeps_no_run_from_ending(place: Site) -> None:
    place.board.add("a")
    command = leaves(place, "os._exit(0)", "os.write(2, b'x' * 4096)")
    run = place.run("--ttl", "3", *command, dibs=UNABLE)
    other = place.pid("other")
    ended(run, 5)
    until(lambda: not alive(other))  # nobody reads it any more


def test_a_loop_takes_nothing_more_after_it(place: Site) -> None:
    for name in "ab":
        place.board.add(name)
    run = place.run("--loop", "--ttl", "3", *leaves(place, "os._exit(0)"), dibs=UNABLE)
    place.pid("other")
    ended(run, 5)
    assert place.state("b").name == "b.available"


def test_the_guard_of_a_run_that_was_killed_ends_though_something_is_left(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "60", *leaves(place, "time.sleep(60)"), dibs=UNABLE)
    other = place.pid("other")
    guard = guard_of(run.pid)
    run.kill()
    run.wait()
    until(lambda: not alive(guard))
    assert alive(other)
    assert place.state("a").live, "nobody said that its work has ended"
