"""What is watched after an act, and when the storage is the suspect rather than the workers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event, Facts, Record
from dibs.names import read
from dibs_tui.ages import clock
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.follow import Follower
from dibs_tui.memory import Remembered
from dibs_tui.model.aftermath import Aftermath
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import HEALTHY, Brake
from dibs_tui.model.causes import Silence
from dibs_tui.model.seen import Seen, Status
from dibs_tui.reader import Reader
from tests.core.tools import Movable, World, opened
from tests.tui import hostile
from tests.tui.listed import SECOND, still, task_of
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import DIBS

OLD = "task-7.f7.agent-7-0123456789"


def broken(at: float = 1000.0, verb: str = "force-release") -> Event:
    return Event(at, verb, "task-7", f"{OLD}.claimed", "task-7.f7.available", "ada", "gone")


def refused(at: float) -> Event:
    return Event(at, "refused", "task-7", OLD, "", "agent-7", "done")


def facts(ttl: float = 60.0, host: str = "web-3") -> Facts:
    task = read(f"{OLD}.claimed")
    assert task is not None
    return Facts(task, 1, 1, ttl, 1, Record("agent-7", host, ttl), 1, 1, None, 0)


@pytest.mark.parametrize("verb", ["force-release", "reap"])
def test_a_holder_that_tries_to_commit_after_its_claim_was_broken_is_told_of_once(
    verb: str,
) -> None:
    newer = read("task-7.f8.web-9-0123456789.claimed")
    assert newer is not None
    after = Aftermath()
    assert not after.note(broken(verb=verb), facts(), [])
    assert after.note(refused(1050.0), None, [newer])
    assert not after.note(refused(1051.0), None, [newer])
    (line,) = after.told()
    words = "agent-7 on web-3 came back: its claim #7 is void; #8 belongs to web-9"
    assert line == f"{clock(1050.0)} {words} · task-7, it tried to commit"
    after.clear()
    assert not after.note(refused(1052.0), None, [newer]), "once read it does not stick again"


def test_a_beat_of_a_void_claim_counts_as_well_and_only_while_it_is_watched() -> None:
    after = Aftermath()
    after.note(broken(), facts(), [])
    assert not after.heard("task-9.f1.x-0123456789", 1010.0, [])
    assert after.heard(OLD, 1010.0, [])
    after.note(broken(5000.0), facts(), [])
    assert not after.heard(OLD, 5121.0, [])


def test_a_claim_with_a_long_lease_is_watched_for_longer_than_that() -> None:
    after = Aftermath()
    after.note(broken(), facts(ttl=3600), [])
    assert after.heard(OLD, 1000.0 + 3600 * 1.4, [])


def test_many_that_come_back_are_told_in_a_few_lines() -> None:
    after = Aftermath()
    for n in range(240):
        old = f"task-{n}.f1.agent-{n}-0123456789"
        event = Event(1000.0, "reap", f"task-{n}", f"{old}.claimed", "", "ada")
        after.note(event, None, [])
        assert after.heard(old, 1001.0, [])
    assert after.count == 240
    first, second, rest = after.told()
    assert "agent-239 came back" in first
    assert "agent-238 came back" in second
    assert rest == "and 238 more came back, to claims that are void"


def test_a_claim_that_nobody_broke_is_not_watched() -> None:
    after = Aftermath()
    assert not after.note(refused(1.0), None, [])
    assert not after.back


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_no_hostile_text_gets_into_the_line(text: str) -> None:
    after = Aftermath()
    known = facts()._replace(record=Record(text, text, 60))
    after.note(broken(), known, [])
    assert after.note(refused(1001.0)._replace(reason=text), None, [])
    assert not hostile.forbidden(after.told()[0])
    assert len(after.told()[0]) < 1000


@pytest.mark.parametrize("live", [False, True], ids=["polling", "heard"])
def test_a_record_that_comes_to_be_again_is_found_where_nothing_is_heard_too(
    tmp_path: Path, live: bool
) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None
    found: list[Seen] = []
    follower = Follower(board, found.append, board.view(ended=False))
    follower.begin()
    follower.complete()
    board.force_release(claim.task.name, "hung", by="ada@desk")
    follower.heard([".dibs/journal/x", claim.task.name])
    follower.look()
    assert not any(seen.ghosts for seen in found)
    record = tmp_path / "board/.dibs/claims" / claim.name
    record.write_text("{}")
    follower.live = live
    if live:
        follower.heard([f".dibs/claims/{claim.name}"])
    for _ in range(3):
        follower.look()
    assert [seen.ghosts for seen in found if seen.ghosts] == [(claim.name,)], "it is told once"


# The brake


def silences(count: int, hosts: int, *, apart: float = 1.0) -> list[Silence]:
    """Claims with a beat period of 20 s that were last heard one after the other."""
    beats = [int((1000 + n * apart) * SECOND) for n in range(count)]
    period = 20 * SECOND
    return [Silence(b, b + period, f"web-{n % hosts}", f"t{n}") for n, b in enumerate(beats)]


def test_one_host_that_stops_is_no_reason_to_suspect_the_storage() -> None:
    brake = Brake()
    brake.fell_silent(silences(50, 1, apart=0.1), 60, 105.0)
    assert not brake.why(105.0)
    stray = Silence(1000 * SECOND, 1020 * SECOND, "gpu-1", "stray")
    brake.fell_silent([stray], 60, 106.0)
    assert not brake.why(106.0)


def test_silence_on_many_hosts_within_one_beat_brakes_until_it_was_well_for_a_while() -> None:
    brake = Brake()
    for n, silence in enumerate(silences(12, 3)):
        brake.fell_silent([silence], 40, 100.0 + n)
    assert (
        f"12 claims on 3 hosts fell silent at {clock(1011 * SECOND)}, within one beat"
        in brake.why(112.0)
    )
    assert brake.why(111.0 + HEALTHY - 1)
    assert not brake.why(111.0 + HEALTHY + 1)


def test_claims_whose_leases_end_at_other_times_may_have_fallen_silent_together() -> None:
    brake = Brake()
    first, *later = silences(4, 2, apart=0)
    brake.fell_silent([first], 5, 100.0)
    assert not brake.why(100.0)
    brake.fell_silent(later, 5, 140.0)
    assert brake.why(140.0)


def test_silence_on_many_hosts_one_beat_after_the_other_does_not_brake() -> None:
    brake = Brake()
    brake.fell_silent(silences(8, 8, apart=21), 10, 100.0)
    assert not brake.why(100.0)


def test_a_few_that_fall_silent_among_many_do_not_brake() -> None:
    brake = Brake()
    brake.fell_silent(silences(8, 3), 400, 108.0)
    assert not brake.why(108.0)


def test_a_slow_touch_and_a_clock_that_jumps_brake() -> None:
    brake = Brake()
    brake.probed(0.2, 10.0)
    assert not brake.why(10.0)
    brake.probed(2.5, 11.0)
    assert "2.5 s" in brake.why(11.0)
    brake = Brake()
    brake.sampled(1_000_000_000, 1_000_000_000, 0.0, 10.0)
    brake.sampled(3_000_000_000, 3_100_000_000, 0.0, 12.0)
    assert not brake.why(12.0)
    brake.sampled(64_000_000_000, 4_000_000_000, 0.0, 13.0)
    assert "jumped by +60 s" in brake.why(13.0)


def test_a_touch_without_an_answer_brakes_and_its_late_answer_is_no_jump_of_the_clock() -> None:
    brake = Brake()
    brake.sampled(1 * SECOND, 1 * SECOND, 0.0, 1.0)
    brake.touching(2.0, 2.5)
    brake.touching(0.0, 99.0)
    assert not brake.why(2.5)
    brake.touching(2.0, 9.0)
    assert "a touch has no answer for 7s" in brake.why(9.0)
    brake.sampled(22 * SECOND, 2 * SECOND, 20.0, 22.0)
    brake.probed(20.0, 22.0)
    brake.sampled(24 * SECOND, 24 * SECOND, 0.0, 24.0)
    assert "a touch took 20.0 s" in brake.why(24.0)


def test_a_disk_that_does_not_answer_or_was_lost_brakes() -> None:
    brake = Brake()
    brake.fared(Status(fresh=1.0, busy=10.0), 12.0)
    assert not brake.why(12.0)
    brake.fared(Status(fresh=1.0, busy=10.0), 15.0)
    assert "no answer for 5s" in brake.why(15.0)
    brake.fared(Status(fresh=1.0, trouble="missing"), 16.0)
    assert "it was missing" in brake.why(16.0 + HEALTHY)
    brake.fared(Status(fresh=70.0), 76.1)
    assert not brake.why(76.1)


def test_a_brake_that_was_unlocked_stays_so_until_it_was_well() -> None:
    brake = Brake()
    brake.probed(5.0, 10.0)
    brake.unlock()
    assert not brake.why(11.0)
    assert not brake.why(10.0 + HEALTHY + 1)
    brake.probed(5.0, 200.0)
    assert brake.why(200.0)


def test_the_model_tells_the_brake_who_fell_silent_together_and_not_what_was_so_before() -> None:
    for opened_before in (False, True):
        model = still() if opened_before else BoardModel({})
        names = [f"t{n}.f1.w-{n:010X}.claimed" for n in range(6)]
        tasks = [task_of(name) for name in names]
        model.tasks = {task.name: task for task in tasks}
        found = {t.name: facts(host=f"web-{n % 2}")._replace(task=t) for n, t in enumerate(tasks)}
        stale = dict.fromkeys(names, dibs.Verdict.EXPIRED)
        model.apply(Seen(came=tuple(tasks), facts=found, stale=stale))
        assert bool(model.brake.why(time.monotonic())) == opened_before


# On the screen


def test_the_board_says_who_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None

    def commit() -> None:
        with pytest.raises(dibs.Lost):
            claim.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(board.force_release, claim.task.name, "hung")
        await until(pilot, lambda: "1 available" in text_of(app), 5)
        await asyncio.to_thread(commit)
        host = dibs.this_host().name
        words = f"agent-7 on {host} came back: its claim #1 is void"
        await until(pilot, lambda: words in text_of(app), 5)
        assert app.board_screen is not None
        app.board_screen.hand.do("wall")
        await until(pilot, lambda: bool(app.screen.query("#wall-banner")))
        await until(pilot, lambda: words in text_of(app), 5)
        await pilot.press("escape")
        await until(pilot, lambda: type(app.screen).__name__ == "BoardScreen")
        await pilot.press("escape")
        await until(pilot, lambda: "came back" not in text_of(app), 5)

    drive(tmp_path / "board", steps, size=(140, 40))


def test_a_clock_that_jumps_under_the_board_locks_acts_on_many_until_the_word_is_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "board").mkdir()
    world = World(tmp_path)
    board = opened(Movable(tmp_path / "board", world))
    for n in range(3):
        board.add(f"task-{n}")
        assert board.claim(owner="agent-7", ttl=30) is not None

    def opener(path: str, **_: object) -> dibs.Board:
        return opened(Movable(Path(path), world))

    reader = Reader(board.path, open_board=opener)
    app = DibsApp(reader, Config(still=0), remembered=Remembered())

    async def steps(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.model.whole)
        world.step(60)
        await until(pilot, lambda: "the board's clock jumped by +60 s" in text_of(app))
        await until(pilot, lambda: "3 stale" in text_of(app))
        await pilot.press("4", "asterisk", "X")
        await until(pilot, lambda: "locked: the board's clock jumped" in text_of(app))
        assert app.board_screen is not None
        app.board_screen.hand.do("brake")
        await pilot.press(*"release")
        await until(pilot, lambda: "Acts on many are locked" not in text_of(app))
        await pilot.pause(0.1)
        await pilot.press("X")
        await until(pilot, lambda: "Force-release 3 tasks?" in text_of(app))

    async def run() -> None:
        reader.start()
        try:
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await steps(pilot)
        finally:
            reader.stop()
            reader.join(5)

    asyncio.run(run())


def stopped(worker: subprocess.Popen[bytes]) -> list[int]:
    """Every process of the worker's session, stopped: it, its guard and its command."""
    pids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == worker.pid:
                os.kill(int(entry.name), signal.SIGSTOP)
                pids.append(int(entry.name))
    return pids


def test_a_real_worker_that_was_stopped_and_goes_on_is_seen_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-7")
    run = ["run", "--ttl", "2", "--owner", "agent-7", "--", "sh", "-c", "echo > begun; sleep 30"]
    worker = subprocess.Popen(
        [*DIBS, "-d", str(board.path), *run],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, (tmp_path / "begun").exists)
        pids = stopped(worker)
        assert len(pids) >= 3
        (claim,) = board.find("task-7")
        await asyncio.to_thread(board.force_release, claim.name, "stopped", by="ada@desk")
        other = await asyncio.to_thread(board.claim, "task-7", owner="web-9")
        assert other is not None
        await until(pilot, lambda: "web-9" in text_of(app))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        words = "came back: its claim #1 is void; #2 belongs to web-9"
        await until(pilot, lambda: f"agent-7 on {dibs.this_host().name} {words}" in text_of(app))
        assert await asyncio.to_thread(worker.wait, 10) == 5
        assert [e.verb for e in board.history("task-7")][-1] == "refused"
        assert [task.owner for task in board.find("task-7")] == ["web-9"]

    try:
        drive(tmp_path / "board", steps, size=(160, 40))
    finally:
        for pid in stopped(worker):
            os.kill(pid, signal.SIGKILL)
        worker.wait(10)
