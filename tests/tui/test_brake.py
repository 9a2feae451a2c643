"""When the storage or the clock is the suspect rather than the workers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.ages import clock
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.memory import Remembered
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import HEALTHY, Brake
from dibs_tui.model.causes import Silence
from dibs_tui.model.seen import Seen, Status
from dibs_tui.reader import Reader
from tests.core.tools import Movable, World, opened
from tests.tui.listed import SECOND, facts, still, task_of
from tests.tui.live import text_of, until


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
        await pilot.press(*"release", "space", *"the", "space", *"brake", "enter")
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
