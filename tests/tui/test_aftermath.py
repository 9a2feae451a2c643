"""What is watched after an act, and when the storage is the suspect rather than the workers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event
from dibs.names import read
from dibs_tui.app import DibsApp
from dibs_tui.model.aftermath import Aftermath
from dibs_tui.model.brake import HEALTHY, Brake
from tests.tui.live import drive, text_of, until

OLD = "task-7.f7.agent-7-0123456789"


def broken(at: float = 1000.0, verb: str = "force-release") -> Event:
    return Event(at, verb, "task-7", f"{OLD}.claimed", "task-7.f7.available", "ada", "gone")


def refused(at: float) -> Event:
    return Event(at, "refused", "task-7", OLD, "", "agent-7", "done")


@pytest.mark.parametrize("verb", ["force-release", "reap"])
def test_a_holder_that_tries_to_commit_after_its_claim_was_broken_is_told_of_once(
    verb: str,
) -> None:
    newer = read("task-7.f8.web-9-0123456789.claimed")
    assert newer is not None
    after = Aftermath()
    assert not after.note(broken(verb=verb), 60.0, [])
    assert after.note(refused(1050.0), None, [newer])
    assert not after.note(refused(1051.0), None, [newer])
    (line,) = after.back.values()
    assert "agent-7 came back for task-7 and tried to done" in line
    assert "#7 is void; #8 belongs to web-9" in line


def test_a_beat_of_a_void_claim_counts_as_well_and_only_while_it_is_watched() -> None:
    after = Aftermath()
    after.note(broken(), 60.0, [])
    assert not after.heard("task-9.f1.x-0123456789", 1010.0, [])
    assert after.heard(OLD, 1010.0, [])
    after.clear()
    assert not after.heard(OLD, 5000.0, [])


def test_a_claim_that_nobody_broke_is_not_watched() -> None:
    after = Aftermath()
    assert not after.note(refused(1.0), None, [])
    assert not after.back


def test_one_host_that_stops_is_no_reason_to_suspect_the_storage() -> None:
    brake = Brake()
    for number in range(50):
        brake.fell_silent("web-3", 100.0 + number / 10, 60)
    assert not brake.why(105.0)


def test_silence_on_many_hosts_within_one_moment_brakes_until_it_was_well_for_a_while() -> None:
    brake = Brake()
    for number in range(12):
        brake.fell_silent(f"web-{number % 3}", 100.0 + number, 40)
    assert "3 hosts" in brake.why(112.0)
    assert brake.why(112.0 + HEALTHY - 2)
    assert not brake.why(112.0 + HEALTHY)


def test_a_few_that_fall_silent_among_many_do_not_brake() -> None:
    brake = Brake()
    for number in range(8):
        brake.fell_silent(f"web-{number % 3}", 100.0 + number, 400)
    assert not brake.why(108.0)


def test_a_slow_touch_and_a_clock_that_jumps_brake() -> None:
    brake = Brake()
    brake.probed(0.2, 10.0)
    assert not brake.why(10.0)
    brake.probed(2.5, 11.0)
    assert "2.5 s" in brake.why(11.0)
    brake = Brake()
    brake.sampled(1_000_000_000, 1_000_000_000, 10.0)
    brake.sampled(3_000_000_000, 3_100_000_000, 12.0)
    assert not brake.why(12.0)
    brake.sampled(64_000_000_000, 4_000_000_000, 13.0)
    assert "jumped by +60 s" in brake.why(13.0)


def test_a_brake_that_was_unlocked_stays_so_until_it_was_well() -> None:
    brake = Brake()
    brake.probed(5.0, 10.0)
    brake.unlock()
    assert not brake.why(11.0)
    assert not brake.why(10.0 + HEALTHY + 1)
    brake.probed(5.0, 200.0)
    assert brake.why(200.0)


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
        await until(pilot, lambda: "agent-7 came back for task-1" in text_of(app), 5)
        await pilot.press("escape")
        await until(pilot, lambda: "came back" not in text_of(app), 5)

    drive(tmp_path / "board", steps, size=(140, 40))
