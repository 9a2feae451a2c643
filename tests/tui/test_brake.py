"""The brake: when the storage or the clock is in doubt rather than the workers."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Holder
from dibs.files.engine import FilesBoard
from dibs.files.reader_thread import watch_directory
from dibs.model.delta import Delta
from dibs.model.health import Health, Trouble
from dibs.proofs import beside
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import HEALTHY, Brake
from dibs_tui.model.causes import MissedBeat, causes
from dibs_tui.model.folds import folds_of
from dibs_tui.model.owners import held
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import problems
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from dibs_tui.text.ages import clock
from tests.core.tools import Movable, World, opened
from tests.tui.board_models import NOW, SECOND, holder, put, still, task_of
from tests.tui.live import drive, text_of, until


def silences(count: int, hosts: int, *, apart: float = 1.0) -> list[MissedBeat]:
    """Claims with a beat period of 20 s whose last beats came one after the other."""
    beats = [int((1000 + n * apart) * SECOND) for n in range(count)]
    period = 20 * SECOND
    return [MissedBeat(b, b + period, f"web-{n % hosts}", f"t{n}") for n, b in enumerate(beats)]


def test_one_host_that_stops_is_no_reason_to_suspect_the_storage() -> None:
    brake = Brake()
    brake.note_stale(silences(50, 1, apart=0.1), 60, 105.0)
    assert not brake.why(105.0)
    stray = MissedBeat(1000 * SECOND, 1020 * SECOND, "gpu-1", "stray")
    brake.note_stale([*silences(50, 1, apart=0.1), stray], 60, 106.0)
    assert not brake.why(106.0)


def test_silence_on_many_hosts_within_one_beat_engages_the_brake_until_one_is_back() -> None:
    brake = Brake()
    stale = silences(12, 3)
    for n in range(12):
        brake.note_stale(stale[: n + 1], 40, 100.0 + n)
    assert (
        f"12 claims on 3 hosts stopped beating at {clock(1011 * SECOND)}, within one heartbeat"
        in brake.why(112.0)
    )
    assert brake.why(111.0 + 60 * HEALTHY), "nothing says that the storage is well"
    brake.note_stale(stale[1:], 40, 9000.0, back=["t0"])
    assert "come back" in brake.why(9000.0)
    brake.note_stale(stale[1:], 40, 9001.0)
    assert brake.stopped == 0
    assert brake.why(9000.0 + HEALTHY - 1)
    assert not brake.why(9000.0 + HEALTHY + 1), "the others have stopped alone"


def test_the_brake_of_claims_that_are_gone_is_held_for_a_while() -> None:
    brake = Brake()
    brake.note_stale(silences(12, 3), 40, 100.0)
    brake.note_stale([], 28, 500.0)
    assert brake.why(500.0 + HEALTHY - 1)
    assert not brake.why(500.0 + HEALTHY + 1)


def test_a_person_who_allows_bulk_acts_allows_them_for_these_claims_only() -> None:
    brake = Brake()
    brake.note_stale(silences(12, 3), 40, 100.0)
    assert brake.stopped == 12
    brake.unlock()
    brake.note_stale(silences(12, 3), 40, 200.0)
    assert not brake.why(200.0)
    later = [one._replace(beat=one.beat + 900 * SECOND, due=one.due + 900 * SECOND, name=f"x{n}")
             for n, one in enumerate(silences(12, 3))]  # fmt: skip
    brake.note_stale([*silences(12, 3), *later], 40, 300.0)
    assert brake.why(300.0)
    assert brake.stopped == 12


def test_claims_with_different_leases_can_have_stopped_together() -> None:
    brake = Brake()
    first, *later = silences(4, 2, apart=0)
    brake.note_stale([first], 5, 100.0)
    assert not brake.why(100.0)
    brake.note_stale([first, *later], 5, 140.0)
    assert brake.why(140.0)


def test_silence_on_many_hosts_at_different_times_does_not_engage_the_brake() -> None:
    brake = Brake()
    brake.note_stale(silences(8, 8, apart=21), 10, 100.0)
    assert not brake.why(100.0)


def test_a_few_stale_claims_among_many_do_not_engage_the_brake() -> None:
    brake = Brake()
    brake.note_stale(silences(8, 3), 400, 108.0)
    assert not brake.why(108.0)


def test_a_slow_touch_or_a_jumping_clock_engages_the_brake() -> None:
    brake = Brake()
    brake.note_probe(0.2, 10.0)
    assert not brake.why(10.0)
    brake.note_probe(2.5, 11.0)
    assert "2.5 s" in brake.why(11.0)
    brake = Brake()
    brake.note_clock(1_000_000_000, 1_000_000_000, 0.0, 10.0)
    brake.note_clock(3_000_000_000, 3_100_000_000, 0.0, 12.0)
    assert not brake.why(12.0)
    brake.note_clock(64_000_000_000, 4_000_000_000, 0.0, 13.0)
    assert "jumped by +60 s" in brake.why(13.0)


def test_an_unanswered_touch_engages_the_brake_and_its_late_answer_is_no_clock_jump() -> None:
    brake = Brake()
    brake.note_clock(1 * SECOND, 1 * SECOND, 0.0, 1.0)
    brake.note_health(Health(fresh=1.0, touching=2.0), 2.5)
    brake.note_health(Health(fresh=99.0), 99.0)
    assert not brake.why(2.5)
    brake.note_health(Health(fresh=1.0, touching=2.0), 9.0)
    assert "no answer to a test write for 7s" in brake.why(9.0)
    brake.note_clock(22 * SECOND, 2 * SECOND, 20.0, 22.0)
    brake.note_probe(20.0, 22.0)
    brake.note_clock(24 * SECOND, 24 * SECOND, 0.0, 24.0)
    assert "a test write took 20.0 s" in brake.why(24.0)


def test_a_hanging_or_lost_disk_engages_the_brake() -> None:
    brake = Brake()
    brake.note_health(Health(fresh=1.0, busy=10.0), 12.0)
    assert not brake.why(12.0)
    brake.note_health(Health(fresh=1.0, busy=10.0), 15.0)
    assert "no answer for 5s" in brake.why(15.0)
    brake.note_health(Health(fresh=1.0, trouble=Trouble.MISSING), 16.0)
    assert "unavailable: missing" in brake.why(16.0 + HEALTHY)
    brake.note_health(Health(fresh=70.0), 76.1)
    assert not brake.why(76.1)


def test_a_short_outage_locks_for_less_than_other_signs_of_trouble() -> None:
    brake = Brake()
    brake.note_health(Health(fresh=1.0, trouble=Trouble.FAILED), 100.0)
    brake.note_health(Health(fresh=103.0), 103.0)
    assert "was unavailable for 3s" in brake.why(103.0)
    assert brake.left(103.0) == 20.0
    assert not brake.why(124.0)


def test_a_short_outage_does_not_shorten_what_was_suspected_before() -> None:
    brake = Brake()
    brake.note_probe(5.0, 99.0)
    brake.note_health(Health(fresh=1.0, trouble=Trouble.FAILED), 100.0)
    brake.note_health(Health(fresh=103.0), 103.0)
    assert brake.left(103.0) == HEALTHY - 4


def test_a_released_brake_stays_released_until_all_is_well() -> None:
    brake = Brake()
    brake.note_probe(5.0, 10.0)
    brake.unlock()
    assert not brake.why(11.0)
    assert not brake.why(10.0 + HEALTHY + 1)
    brake.note_probe(5.0, 200.0)
    assert brake.why(200.0)


@pytest.mark.parametrize("opened_before", [True, False])
def test_the_brake_judges_the_board_as_it_is_also_at_its_opening(opened_before: bool) -> None:
    model = still() if opened_before else BoardModel()
    names = [f"t{n}.f1.w-{n:010X}.claimed" for n in range(6)]
    tasks = [task_of(name) for name in names]
    found = {t.name: holder(host=f"web-{n % 2}")._replace(task=t) for n, t in enumerate(tasks)}
    stale = dict.fromkeys(names, dibs.Verdict.EXPIRED)
    model.apply(Delta(added=tuple(tasks), holders=found, stale=stale))
    assert "6 claims on 2 hosts stopped beating" in model.brake.why(time.monotonic())
    assert model.brake.why(time.monotonic() + 9000)
    model.apply(Delta(stale={names[0]: None}))
    assert "come back" in model.brake.why(time.monotonic())
    assert not model.brake.why(time.monotonic() + HEALTHY + 1)


def silent_board(
    ages: dict[str, list[float]], ttl: float = 120.0, boot: list[int] | None = None
) -> BoardModel:
    """A board with a claim for each age of a last beat, by host; those beyond the ttl expired."""
    model = still() if boot is None else BoardModel(lambda: boot[0])
    model.apply(Delta(now=NOW))
    found, stale = dict[str, Holder](), dict[str, dibs.Verdict | None]()
    for host, beats in ages.items():
        for n, age in enumerate(beats):
            task = task_of(f"{host}-{n}.f1.w-{len(found):010X}.claimed")
            beat = model.now.fs - int(age * SECOND)
            found[task.name] = Holder(task, beat, ttl, beat, f"w-{host}", host)
            if age > ttl:
                stale[task.name] = dibs.Verdict.EXPIRED
    tasks = tuple(holder.task for holder in found.values())
    model.apply(Delta(added=tasks, holders=found, stale=stale))
    return model


def test_the_first_claim_that_expires_engages_the_brake_if_all_others_missed_their_beats() -> None:
    ages = {f"web-{n}": [121.0 - n, *(90.0 + m for m in range(9))] for n in range(4)}
    model = silent_board(ages)
    assert len(model.stale) == 1
    assert "40 claims on 4 hosts stopped beating" in model.brake.why(time.monotonic())


def test_late_claims_of_a_host_that_beats_do_not_engage_the_brake() -> None:
    """A dead host, and two long-running holders elsewhere that never beat."""
    model = silent_board({"gpu-1": [121.0] * 9, "web-1": [100.0, 101.0, 3.0]})
    assert not model.brake.stopped


def test_claims_without_a_stale_one_do_not_engage_the_brake() -> None:
    model = silent_board({"web-1": [100.0] * 5, "web-2": [100.0] * 5})
    assert not model.brake.why(time.monotonic())


def test_a_late_claim_that_beats_again_counts_as_one_that_came_back() -> None:
    model = silent_board({"web-1": [121.0] + [100.0] * 5, "web-2": [100.0] * 5})
    assert model.brake.stopped == 11
    name = next(name for name in model.holders if name not in model.stale)
    held = model.holders[name]
    model.apply(Delta(holders={name: held._replace(beat=model.now.fs)}))
    model.tick()
    assert "come back" in model.brake.why(time.monotonic())
    assert not model.brake.stopped


def test_a_plan_that_is_open_when_the_brake_engages_is_not_executed(tmp_path: Path) -> None:
    for n in range(3):
        board = dibs.open(tmp_path, host="web-0")
        board.add(f"t{n}")
        assert board.claim(owner=f"w{n}", ttl=1) is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "stale 3" in text_of(app))
        await pilot.press("4", "asterisk", "X")
        await until(pilot, lambda: "3 will be released" in text_of(app))
        app.model.brake.note_probe(5.0, time.monotonic())
        await until(pilot, lambda: "⊘ the storage is slow" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: "locked: the storage is slow" in text_of(app))

    drive(tmp_path, steps)
    assert len(list(tmp_path.glob("*.claimed"))) == 3


def test_processes_that_have_exited_say_nothing_about_the_storage() -> None:
    model = BoardModel()
    names = [f"t{n}.f1.w-{n:010X}.claimed" for n in range(6)]
    tasks = [task_of(name) for name in names]
    found = {t.name: holder(host=f"web-{n % 2}")._replace(task=t) for n, t in enumerate(tasks)}
    stale = dict.fromkeys(names, dibs.Verdict.DEAD)
    model.apply(Delta(added=tuple(tasks), holders=found, stale=stale))
    assert not model.brake.why(time.monotonic())


def test_a_dashboard_opened_after_all_stopped_offers_the_check_and_no_release(
    tmp_path: Path,
) -> None:
    here = dibs.this_host()
    for n in range(4):
        board = dibs.open(tmp_path, host=f"web-{n}")
        board.add(f"t{n}")
        assert board.claim(owner=f"w{n}", ttl=1) is not None
    assert here.name not in ("web-0", "web-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.model.brake.stopped == 4)
        await pilot.press("8")
        await until(pilot, lambda: "dibs check --probe" in text_of(app))
        await pilot.press("X")
        await pilot.pause()
        assert "Force-release" not in text_of(app)
        await pilot.press("4", "asterisk")
        screen = app.board_screen
        assert screen is not None
        left, _ = screen.frame._keys.now(filtering=False)
        assert {key.command for key in left if key.locked} == {"force-release", "requeue", "park"}
        await pilot.press("X")
        await until(pilot, lambda: "locked: 4 claims on 4 hosts stopped beating" in text_of(app))
        assert app.board_screen is not None
        app.board_screen.commands.run("brake")
        await pilot.pause(0.1)
        await until(pilot, lambda: "type `4` to allow acts on many claims" in text_of(app))
        await pilot.press("4", "enter")
        await until(pilot, lambda: not app.model.brake.why(time.monotonic()))
        await pilot.press("X")
        await until(pilot, lambda: "Force-release 4 claims" in text_of(app))

    drive(tmp_path, steps)


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

    def opener(path: str, **_: object) -> FilesBoard:
        return opened(Movable(Path(path), world))

    opens = partial(watch_directory, open_board=opener)
    source = BoardSource(board.location.where, watch=opens)
    app = DibsApp(source, Config(still=0), remembered=Remembered())

    async def steps(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.model.complete)
        world.step(60)
        await until(pilot, lambda: "the board's clock jumped by +60 s" in text_of(app))
        await until(pilot, lambda: "stale 3" in text_of(app))
        await pilot.press("4", "asterisk", "X")
        await until(pilot, lambda: "locked: the board's clock jumped" in text_of(app))
        assert app.board_screen is not None
        app.board_screen.commands.run("brake")
        await pilot.press(*"allow", "space", *"bulk", "space", *"acts", "enter")
        await until(pilot, lambda: "Bulk acts are locked" not in text_of(app))
        await pilot.pause(0.1)
        await pilot.press("X")
        await until(pilot, lambda: "Force-release 3 claims" in text_of(app))

    async def run() -> None:
        source.start()
        try:
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await steps(pilot)
        finally:
            source.stop(5)

    asyncio.run(run())


def test_a_board_opened_in_mid_lease_knows_that_its_claims_are_late() -> None:
    model = silent_board({"web-1": [80.0] * 5, "web-2": [80.0, 59.0]})
    late = [claim.holder.age(model.now) for claim in held(model) if claim.late]
    assert late == [80.0] * 6
    assert [group.title[:5] for group in problems(model, Config())] == ["late:"]
    assert not model.cadence(next(iter(model.holders))), "that is assumed, not seen"


def test_the_brake_engages_between_two_reports_as_claims_become_late() -> None:
    boot = [NOW.boot]
    model = silent_board({"web-1": [28.0] * 3, "web-2": [28.0] * 9}, boot=boot)
    task = task_of("short.f1.w-00000000FF.claimed")
    beat = model.now.fs - 31 * SECOND
    short = {task.name: Holder(task, beat, 30, beat, "w", "web-1")}
    model.apply(Delta(added=(task,), holders=short, stale={task.name: dibs.Verdict.EXPIRED}))
    assert not model.brake.stopped, "the others may beat"
    boot[0] += 34 * SECOND
    model.tick()
    assert (model.brake.stopped, len(model.stale)) == (13, 1)


def test_claims_count_as_beating_only_while_they_beat() -> None:
    model = silent_board({"web-1": [121.0] * 4 + [100.0, 80.0, 80.0]})
    (cause,) = causes(model, held(model))
    assert cause.reason.endswith(", 3 others have not beaten for 1m20s")
    (fold,) = folds_of(model, ["stale"], None)
    assert "3 others have not beaten for 1m20s" in fold.note
    (line,) = beside(
        model.holders["web-1-0.f1.w-0000000000.claimed"], model.now, model.holders.values()
    )
    assert line.text.startswith("6 other claims on web-1, none has beaten for 80 s")


def test_the_probe_is_offered_only_for_a_directory_and_no_worker_while_the_storage_is_suspect(
    tmp_path: Path,
) -> None:
    dibs.open(tmp_path)
    app = DibsApp(BoardSource(str(tmp_path)), Config(), remembered=Remembered())
    assert app.model.check_command == f"`dibs -d {tmp_path} check --probe`"
    url = "http://127.0.0.1:9"
    assert not DibsApp(BoardSource(url), Config(), remembered=Remembered()).model.check_command

    model = silent_board({"web-1": [121.0] * 5, "web-2": [121.0] * 5})
    put(model, "t.available")
    model.apply(Delta(complete=True, since={"t.available": model.now.fs - 900 * SECOND}))
    (line,) = [line for line in lines_of(model, problems(model, Config())) if not line.problem.rank]
    assert line.does == ""
    assert not model.untaken()
    model.check_command = app.model.check_command
    (line,) = [line for line in lines_of(model, problems(model, Config())) if not line.problem.rank]
    assert line.does == "dibs check --probe"
    model.brake.unlock()
    assert model.untaken() == 1
