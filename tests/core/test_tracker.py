"""The tracker of one open board: what it finds and reports."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import MappingProxyType

import pytest

from dibs import Sample, Task
from dibs.files.engine import open_directory
from dibs.model import delta as deltas
from dibs.model.delta import Delta
from dibs.model.sample import SECOND
from tests.filesystems.hostile.faults import Faults
from tests.filesystems.hostile.mount import hostile
from tests.filesystems.hostile.mount import why_not as why_no_hostile

AGE = 3.0


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A directory of shell workers that has not changed for a while."""
    path = tmp_path / "plain"
    path.mkdir()
    for name in ("a.claimed", "b.available", "a.lock"):
        (path / name).write_text("1 web-1")
    time.sleep(AGE)  # no one can set the ctime of a file
    return path


def ages(found: list[Delta]) -> list[float]:
    """The ages of the claim in all deltas, each by the clock of its delta."""
    return [
        holder.age(delta.now) for delta in found if delta.now for holder in delta.holders.values()
    ]


def clock(found: list[Delta]) -> Sample:
    """The clock that was reported last."""
    now = found[-1].now
    assert now is not None
    return now


def test_the_clock_is_read_before_the_first_claim_is_reported(plain: Path) -> None:
    found = list[Delta]()
    open_directory(plain).track(found.append).begin()
    assert found[0].exact
    assert ages(found)[0] >= AGE - 0.1


@pytest.mark.parametrize("local", [False, True])
def test_on_a_read_only_board_ages_grow_and_are_lower_bounds(plain: Path, local: bool) -> None:
    board, found = open_directory(plain, read_only=True), list[Delta]()
    tracker = board.track(found.append, local=local)
    tracker.begin()
    first = clock(found)
    for _ in range(3):
        time.sleep(0.2)
        tracker._read_clock()
    assert not tracker.exact
    tracker.report_since([])
    assert clock(found).fs - first.fs >= 0.55 * SECOND, "the newest observed time stands still"
    assert (ages(found)[0] >= AGE - 0.1) is local
    assert sorted(os.listdir(plain)) == ["a.claimed", "a.lock", "b.available"]


def test_a_read_of_the_clock_is_announced_before_and_after(tmp_path: Path) -> None:
    board, said = open_directory(tmp_path / "board", create=True), list[float]()
    start = time.monotonic()
    board.track(lambda delta: None, touching=said.append).begin()
    assert said[0] >= start
    assert said[1:] == [0.0]


@pytest.mark.parametrize("hinted", [False, True], ids=["polling", "hinted"])
def test_a_recreated_record_is_found_even_without_hints(tmp_path: Path, hinted: bool) -> None:
    board = open_directory(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None
    found: list[Delta] = []
    tracker = board.track(found.append)
    tracker.begin()
    tracker.complete()
    board.force_release(claim.task.name, "hung", by="ada@desk")
    tracker.hinted([".dibs/journal/x", claim.task.name])
    tracker.look(hinted=False)
    assert not any(delta.late_beats for delta in found)
    record = tmp_path / "board/.dibs/records" / claim.name
    record.write_text("{}")
    if hinted:
        tracker.hinted([f".dibs/records/{claim.name}"])
    for _ in range(3):
        tracker.look(hinted=hinted)
    late = [delta.late_beats for delta in found if delta.late_beats]
    assert late == [(claim.name,)], "it is reported once"


@pytest.mark.skipif(bool(why_no_hostile()), reason=f"NOT TRIED: {why_no_hostile()}")
@pytest.mark.parametrize(("faults", "full"), [(Faults(tick=SECOND), True), (Faults(), False)])
def test_a_clock_with_full_seconds_is_noticed(faults: Faults, full: bool, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    open_directory(tmp_path / "below", create=True)
    with hostile(tmp_path / "below", tmp_path / "place") as mount, mount.wrong(faults):
        tracker = open_directory(mount.place).track(lambda delta: None)
        assert not tracker.ticks_in_seconds, "nothing was read yet"
        for _ in range(2):
            tracker._read_clock()
        assert tracker.ticks_in_seconds == full


# Many names at once


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a delta to a few names, so that a test need not make many."""
    monkeypatch.setattr(deltas, "PART", 4)


def add_names(path: Path, *numbers: int) -> set[str]:
    names = {f"t{n:02}.available" for n in numbers}
    for name in names:
        (path / name).touch()
    return names


def named(tasks: tuple[Task, ...]) -> set[str]:
    return {task.name for task in tasks}


@pytest.mark.usefixtures("few")
def test_many_changes_are_reported_in_parts_and_only_the_last_is_complete(
    tmp_path: Path,
) -> None:
    board, found = open_directory(tmp_path, create=True), list[Delta]()
    names = add_names(tmp_path, *range(10))
    tracker = board.track(found.append)
    tracker.begin()
    assert [len(delta.added) for delta in found] == [4, 4, 2]
    assert [delta.more for delta in found] == [True, True, False]
    assert set().union(*(named(delta.added) for delta in found)) == names
    for n in range(9):
        claim = board.claim(f"t{n:02}")
        assert claim is not None
        claim.done()
    tracker.complete()
    later = found[3:]
    assert [(len(d.removed), len(d.added)) for d in later] == [
        (4, 0),
        (4, 0),
        (1, 4),
        (0, 4),
        (0, 1),
    ]
    assert [delta.complete for delta in found] == [False] * 7 + [True]
    assert [bool(delta.events) for delta in later] == [False] * 4 + [True]
    found.clear()
    add_names(tmp_path, *range(20, 26))
    tracker.forget_marks()
    tracker.look(hinted=False)
    assert [len(delta.added) for delta in found if delta.added] == [4, 2]
    assert all(delta.complete for delta in found), "the complete board was reported before"


@pytest.mark.usefixtures("few")
def test_the_next_tracker_reports_what_was_not_reported(tmp_path: Path) -> None:
    board, found = open_directory(tmp_path, create=True), list[Delta]()
    names = add_names(tmp_path, *range(10))

    def fails_at_the_third(delta: Delta) -> None:
        if len(found) == 2:
            raise OSError("the disk")
        found.append(delta)

    first = board.track(fails_at_the_third)
    with pytest.raises(OSError, match="the disk"):
        first.begin()
    known = set().union(*(named(delta.added) for delta in found))
    assert first.reported().keys() == known
    gone = sorted(known)[0]
    (tmp_path / gone).unlink()
    found.clear()
    second = board.track(found.append, first)
    second.begin()
    assert set().union(*(named(delta.added) for delta in found)) == names - known
    assert set().union(*(named(delta.removed) for delta in found)) == {gone}
    assert second.reported().keys() == names - {gone}


def test_the_next_tracker_of_a_board_knows_the_ended_and_the_stale_claims(tmp_path: Path) -> None:
    board, found = open_directory(tmp_path, create=True), list[Delta]()
    board.acquire("free").release()
    for ident in ("done", "stale"):
        board.add(ident)
    done, stale = board.claim("done"), board.claim("stale", ttl=60)
    assert done is not None
    assert stale is not None
    done.done()
    record = tmp_path / ".dibs/records" / stale.name
    os.utime(record, (0, time.time() - 100))
    first = board.track(found.append)
    first.begin()
    first.complete()
    assert {name for delta in found for name in delta.stale} == {stale.task.name}
    os.utime(record)
    found.clear()
    second = board.track(found.append, first)
    second.begin()
    second.complete()
    second.look(hinted=False)
    assert not any(delta.added or delta.removed for delta in found), "nothing came and nothing went"
    assert [delta.stale[stale.task.name] for delta in found if delta.stale] == [None]


def test_a_delta_is_immutable(tmp_path: Path) -> None:
    board, found = open_directory(tmp_path / "board", create=True), list[Delta]()
    board.add("a")
    board.claim("a", ttl=60)
    tracker = board.track(found.append)
    tracker.begin()
    tracker.complete()
    for delta in found:
        for mapping in (delta.holders, delta.stale, delta.since):
            assert isinstance(mapping, MappingProxyType)
        assert isinstance(delta.added, tuple)
        assert isinstance(delta.events, tuple)
