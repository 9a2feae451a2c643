"""`dibs run` when it dies, stops, loses its claim or its disk: the work ends before the lease."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
from tests.core.tools import settle
from tests.filesystems import mounts
from tests.stress.running import (
    DIBS,
    ENV,
    Site,
    alive,
    ended,
    events,
    guard_of,
    marked,
    site,
    until,
)

TTL = 2.0
LONG = 10.0
"""A lease that is long enough for a guard on a busy machine to release the claim."""
WORK = "note('child')\nwhile True: time.sleep(60)"
STUBBORN = (
    f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif os.fork(): os.wait()\nos.setsid()\n{WORK}"
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "board") as found:
        yield found


class Watcher(threading.Thread):
    """Records when the last process of a claim ended."""

    def __init__(self, claim: str) -> None:
        super().__init__(daemon=True)
        self._claim = claim
        self.gone = 0.0
        self.start()

    def run(self) -> None:
        while marked(self._claim):
            time.sleep(0.02)
        self.gone = time.time()


def outlived(place: Site, disable: Callable[[], None], ttl: float = TTL) -> float:
    """The remaining lease when the last process of a claim ended."""
    claim = place.state("a")
    record = place.path / ".dibs/records" / claim.stem
    watcher = Watcher(claim.stem)
    disable()
    beat = record.stat().st_mtime
    with suppress(FileNotFoundError):
        while watcher.is_alive():
            beat = max(beat, record.stat().st_mtime)
            time.sleep(0.01)
    watcher.join()
    return beat + ttl - watcher.gone


@pytest.mark.parametrize("work", [WORK, STUBBORN])
def test_a_killed_run_leaves_no_work_and_its_claim_is_released(place: Site, work: str) -> None:
    place.board.add("a")
    run = place.run("--ttl", f"{LONG}", *place.python(work))
    child = place.pid("child")
    guard = guard_of(run.pid)
    assert outlived(place, run.kill, LONG) > 0
    assert not alive(child)
    until(lambda: not alive(guard))
    assert place.state("a").name == "a.f1a1.available"
    assert place.reasons("a", "fail") == ["dibs run was killed"]


def test_a_run_that_is_killed_at_any_moment_of_its_start_leaves_no_work(place: Site) -> None:
    place.board.add("a", priority=9)
    settle(
        place.path, ttl=2, max_attempts=1000
    )  # a run that is killed before its record exists has this ttl
    place.board = dibs.open(place.path)
    for step in range(24):
        run = place.run("--ttl", "2", *place.python(WORK))
        time.sleep(0.03 + step * 0.005)  # the moment is what this test varies
        claim = place.state("a")
        run.kill()
        run.wait()
        until(lambda: place.board.reap() and not place.state("a").live)
        assert marked(claim.stem) == set()


def test_a_run_that_is_stopped_past_its_ttl_no_longer_owns_its_claim(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "2", *place.python(STUBBORN))
    child = place.pid("child")
    assert outlived(place, lambda: run.send_signal(signal.SIGSTOP)) > 0
    assert not alive(child)
    (given,) = until(lambda: place.board.reap().tasks)
    run.send_signal(signal.SIGCONT)
    _, err = ended(run, 5)
    assert b"is no longer yours" in err
    assert b"cannot be ended" not in err
    assert "refused" in [event.verb for event in place.board.log.of("a")]
    assert place.state("a") == given


def test_the_commit_of_a_stopped_run_is_refused_even_if_no_one_took_its_task(place: Site) -> None:
    place.board.add("a")
    program = "note('child')\nwhile not os.path.exists(f'{notes}/go'): time.sleep(0.01)"
    run = place.run("--ttl", "1", *place.python(program))
    child = place.pid("child")
    run.send_signal(signal.SIGSTOP)
    (place.notes / "go").touch()
    until(lambda: not alive(child))
    claim = place.state("a")
    age = until(lambda: (held := place.board.holder(claim)) and time.time() - held.beat / 1e9 > 1)
    assert age
    run.send_signal(signal.SIGCONT)
    ended(run, 5)
    assert place.state("a") == claim


def test_work_is_ended_as_soon_as_all_processes_continue_after_a_stop(place: Site) -> None:
    """This is like a suspend: the boot-time clock ran and no process could act."""
    place.board.add("a")
    run = place.run("--ttl", "1", *place.python(STUBBORN))
    child = place.pid("child")
    pids = [run.pid, guard_of(run.pid), child]
    claim = place.state("a").stem
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: place.board.reap().tasks)
    for pid in pids:
        with suppress(ProcessLookupError):  # the guard continues first, and may have ended it
            os.kill(pid, signal.SIGCONT)
    until(lambda: not marked(claim))
    ended(run, 5)


def test_a_guard_that_is_killed_is_replaced(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", f"{LONG}", *place.python(STUBBORN))
    child = place.pid("child")
    first = guard_of(run.pid)
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first))
    second = guard_of(run.pid)
    assert second != first
    assert outlived(place, run.kill, LONG) > 0
    assert not alive(child)
    until(lambda: not alive(second))
    assert place.state("a").name == "a.f1a1.available"


def test_a_guard_that_is_stopped_is_replaced(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "2", *place.python(STUBBORN))
    child = place.pid("child")
    first = guard_of(run.pid)
    os.kill(first, signal.SIGSTOP)
    until(lambda: not alive(first))
    second = guard_of(run.pid)
    assert outlived(place, run.kill) > 0
    assert not alive(child)
    until(lambda: not alive(second))


def test_the_guard_ends_with_its_run(place: Site) -> None:
    place.board.add("a")
    run = place.run(*place.python("note('up')\nsys.stdin.read()"), stdin=subprocess.PIPE)
    place.pid("up")
    guard = guard_of(run.pid)
    ended(run, 0)
    assert not alive(guard)


def test_a_claim_that_is_released_by_force_ends_the_work_at_the_next_beat(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "2", "--log-json", *place.python(STUBBORN))
    child = place.pid("child")
    claim = place.state("a")
    freed = place.board.force_release(claim.stem, "stuck")
    _, err = ended(run, 5)
    assert not alive(child)
    assert events(err)[-1]["event"] == "lost"
    assert place.state("a") == freed


def test_a_loop_goes_on_after_a_lost_claim_and_its_code_says_so(place: Site) -> None:
    place.board.add("a", priority=9)
    place.board.add("b")
    hangs = "if os.environ['DIBS_ID'] == 'a':\n    note('child')\n    time.sleep(600)"
    run = place.run("--ttl", "2", "--log-json", "--loop", *place.python(hangs))
    child = place.pid("child")
    place.board.park(place.board.force_release(place.state("a").stem, "stuck").name, "no")
    _, err = ended(run, 5)
    assert not alive(child)
    said = [(event["event"], event["id"]) for event in events(err) if "id" in event]
    assert said[-3:] == [("lost", "a"), ("acquired", "b"), ("done", "b")]


def test_a_loop_that_a_signal_ends_says_so_although_it_lost_a_claim(place: Site) -> None:
    place.board.add("a")
    hangs = "note('child')\ntime.sleep(600)"
    run = place.run("--ttl", "2", "--log-json", "--loop", "--wait", *place.python(hangs))
    child = place.pid("child")
    place.board.park(place.board.force_release(place.state("a").stem, "stuck").name, "no")
    until(lambda: not alive(child))
    until(lambda: place.board.waiters())
    run.send_signal(signal.SIGTERM)
    ended(run, 143)


def test_a_commit_after_a_forced_release_is_refused(place: Site) -> None:
    place.board.add("a")
    program = "note('child')\nwhile not os.path.exists(f'{notes}/go'): time.sleep(0.01)"
    run = place.run(*place.python(program))
    place.pid("child")
    freed = place.board.force_release(place.state("a").stem, "stuck")
    (place.notes / "go").touch()
    ended(run, 5)
    assert place.state("a") == freed


def test_a_board_that_is_missing_for_a_moment_costs_nothing(place: Site) -> None:
    place.board.add("a")
    program = "note('child')\nwhile not os.path.exists(f'{notes}/go'): time.sleep(0.01)"
    run = place.run("--ttl", "3", *place.python(program))
    place.pid("child")
    away = place.path.with_name("away")
    for _ in range(4):
        place.path.rename(away)
        time.sleep(0.6)
        away.rename(place.path)
        time.sleep(0.6)
    place.path.rename(away)
    (place.notes / "go").touch()  # it ends while its board is missing
    time.sleep(0.3)
    away.rename(place.path)
    ended(run, 0)
    assert place.state("a").state == "done"


def test_a_board_that_stays_missing_ends_the_work_before_the_lease(place: Site) -> None:
    place.board.add("a")
    run = place.run("--ttl", "2", *place.python(STUBBORN))
    child = place.pid("child")
    away = place.path.with_name("away")
    (claim,) = place.board.find("a")
    watcher = Watcher(claim.stem)
    place.path.rename(away)
    beat = (away / ".dibs/records" / claim.stem).stat().st_mtime
    ended(run, 5)
    watcher.join()
    assert beat + TTL - watcher.gone > 0
    assert not alive(child)
    away.rename(place.path)
    assert place.state("a") == claim


def test_a_full_disk_stops_no_beat_and_no_commit(tmp_path: Path) -> None:
    if reason := mounts.why_not():
        pytest.skip(f"A FULL DISK WAS NOT TRIED: {reason}")
    with mounts.tmpfs(tmp_path, "size=256k") as mount, site(mount / "board") as place:
        notes = tmp_path / "notes"
        notes.mkdir()
        place.notes = notes
        place.board.add("a")
        program = "note('child')\nwhile not os.path.exists(f'{notes}/go'): time.sleep(0.01)"
        run = place.run("--ttl", "1", "--log-json", *place.python(program))
        place.pid("child")
        with suppress(OSError), (mount / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        with pytest.raises(OSError, match="No space"):
            (mount / "more").write_bytes(b"x" * 4096)
        beats: set[int] = set()
        until(lambda: beats.add(_pulse(place)) or len(beats) > 3)  # type: ignore[func-returns-value]
        (notes / "go").touch()
        _, err = ended(run, 0)
        assert [e["event"] for e in events(err)].count("renewed") >= 3
        assert place.state("a").state == "done"


def _pulse(place: Site) -> int:
    holder = place.board.holder(place.state("a"))
    assert holder is not None
    return holder.beat


def test_a_run_within_a_run_ends_with_it(place: Site) -> None:
    place.board.add("outer")
    place.board.add("inner")
    inner = [*DIBS, "-d", str(place.path), "run", "inner", "--ttl", "2", *place.python(STUBBORN)]
    run = place.run("outer", "--ttl", "2", "--", *inner)
    child = place.pid("child")
    claims = [place.state(name).stem for name in ("inner", "outer")]
    run.send_signal(signal.SIGTERM)
    until(lambda: not place.state("outer").live)
    assert [marked(claim) for claim in claims] == [set(), set()]
    assert not alive(child)
    ended(run, 143)
    until(lambda: place.state("inner").state == "available")


def test_a_command_can_use_its_own_claim(place: Site) -> None:
    place.board.add("a")
    line = " ".join([*DIBS, "-d", str(place.path), "verify", "$DIBS_CLAIM"])
    ended(place.run("--", "sh", "-c", line, env=ENV), 0)
    assert place.state("a").state == "done"
