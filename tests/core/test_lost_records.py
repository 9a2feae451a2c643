"""Boards whose `.dibs` was lost, completely or in part, or is older than the tasks."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.core.tools import Movable, Place, World, opened

STAMPED = ["w.f1.zoe-00000000A1.claimed", "w.f3.available", "w.f0p3.available", "w.f0a1.available"]
ENDED = ["done/w.f1.zoe-00000000A1", "failed/w.f0.op-00000000A1"]


def lost(scratch: Path, *found: str) -> Place:
    """A board with names that dibs made, without its `.dibs`."""
    place = Place(scratch)
    shutil.rmtree(place.path / ".dibs")
    for name in found:
        (place.path / name).parent.mkdir(exist_ok=True)
        (place.path / name).write_bytes(b"payload")
    return place


@pytest.mark.parametrize("name", STAMPED + ENDED)
def test_without_records_no_second_task_of_an_id_is_made(scratch: Path, name: str) -> None:
    place = lost(scratch, name)
    board = place.another()[0]
    for ident in ("w", "new"):
        with pytest.raises(dibs.StorageError, match="check --repair"):
            board.add(ident)
    assert place.names() == [name]
    assert board.repair() == []
    with pytest.raises(dibs.Exists):
        board.add("w")
    assert board.add("new").fence == 0
    assert place.names() == sorted([name, "new.available"])


@pytest.mark.parametrize("name", STAMPED + ENDED)
def test_one_repair_is_enough_if_all_records_are_lost(scratch: Path, name: str) -> None:
    place = lost(scratch, name)
    board = place.another()[0]
    assert [f.kind for f in board.check() if f.fault and f.kind != "stale"] == ["known"]
    board.repair()
    assert not (place.path / ".dibs/known/lost").exists()
    with pytest.raises(dibs.Exists):
        place.another()[0].add("w")


def test_workers_continue_without_records_and_no_fence_repeats(scratch: Path) -> None:
    board = lost(scratch, "w.f3.available").another()[0]
    claim = board.claim("w", owner="me")
    assert claim is not None
    assert claim.fence == 4
    claim.done()
    board.repair()
    with pytest.raises(dibs.Exists):
        board.add("w")
    board.purge(0)
    board.forget("w")
    assert board.add("w").fence == 5


def test_a_process_that_loses_all_records_while_it_runs_adds_no_id_twice(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    shutil.rmtree(place.path / ".dibs")
    for ident in ("x", "new"):
        with pytest.raises(dibs.StorageError, match="check --repair"):
            place.board.add(ident)
    assert place.names() == [claim.task.name]
    claim.done()


@pytest.mark.parametrize("name", STAMPED + ENDED)
def test_a_shell_that_opens_the_board_first_lets_no_id_be_added_twice(
    fleet: Fleet, name: str
) -> None:
    fleet.add("other")
    (fleet.path / name).parent.mkdir(exist_ok=True)
    (fleet.path / name).touch()
    assert fleet.run("claim_task other").returncode == 0
    board = opened(Movable(fleet.path, World(fleet.path.parent)))
    with pytest.raises(dibs.StorageError, match="check --repair"):
        board.add("w")
    board.repair()
    with pytest.raises(dibs.Exists):
        board.add("w")
    assert [p for p in (fleet.path / ".dibs").iterdir() if p.name.startswith("known.")] == []


def test_names_from_shells_do_not_indicate_lost_records(scratch: Path, fleet: Fleet) -> None:
    plain = ["a.available", "b.claimed", "b.lock", "c.claimed-by-web.example", "v1.2.available"]
    for name in (*plain, "disk.free", "notes.f3.txt"):
        (fleet.path / name).write_bytes(b"1700000000 web\n")
    (fleet.path / "done").mkdir()
    (fleet.path / "done/my.own.txt").touch()
    assert fleet.run("claim_task a").returncode == 0
    shutil.rmtree(fleet.path / ".dibs")
    (fleet.path / "a.available").touch()
    for claimed in fleet.path.glob("a.f*"):
        claimed.unlink()
    assert fleet.board().add("new").fence == 0


def lives(place: Place, ident: str, count: int) -> int:
    """Add, finish, purge and forget an id this often; returns the highest fence."""
    fence = 0
    for _ in range(count):
        place.board.add(ident)
        claim = place.board.claim(ident)
        assert claim is not None
        fence = claim.done().fence
        place.board.purge(0)
        place.board.forget(ident)
    return fence


def granted(board: dibs.Board, ident: str) -> int:
    """The fence of the next claim, which is then ended."""
    claim = board.claim(ident)
    assert claim is not None
    return claim.done().fence


def test_an_available_name_without_an_entry_gets_one_when_it_is_claimed(place: Place) -> None:
    (place.path / "q.f3.available").touch()
    assert granted(place.board, "q") == 4
    with pytest.raises(dibs.Exists):
        place.board.add("q")
    place.board.purge(0)
    with pytest.raises(dibs.Exists):
        place.board.add("q")
    place.board.forget("q")
    place.board.add("q")
    assert granted(place.board, "q") == 6, "published at 5, one above the highest"


def test_a_shell_writes_an_entry_for_an_available_name_without_one(fleet: Fleet) -> None:
    board = fleet.board()
    board.add("other")
    (fleet.path / "q.f3.available").touch()
    fleet.sh("claim_task q && done_task")
    with pytest.raises(dibs.Exists):
        board.add("q")


def test_a_later_life_without_its_entries_gets_them_when_it_is_claimed(place: Place) -> None:
    highest = lives(place, "q", 2)
    place.board.add("q")
    for entry in (place.path / ".dibs/known").glob("q.*"):
        entry.unlink()
    assert granted(place.board, "q") > highest
    assert {p.name for p in (place.path / ".dibs/known").iterdir()} >= {"q.2"}
    with pytest.raises(dibs.Exists):
        place.board.add("q")


def test_a_forgotten_id_is_not_added_beside_its_name(place: Place) -> None:
    lives(place, "q", 1)
    place.board.add("q")
    claim = place.board.claim("q")
    assert claim is not None
    (place.path / ".dibs/known/q.1").unlink()
    board = place.another()[0]
    with pytest.raises(dibs.Exists, match=r"q\.f3.*claimed"):
        board.add("q")
    assert place.names() == [claim.task.name]
    assert list((place.path / ".dibs/new").iterdir()) == []
    claim.done()
    with pytest.raises(dibs.Exists):
        board.add("q")


@pytest.mark.parametrize("verb", ["park", "reprioritise"])
def test_a_shells_task_that_an_operator_moved_has_an_entry(place: Place, verb: str) -> None:
    (place.path / "q.available").touch()
    if verb == "park":
        moved = place.board.park("q.available", "why")
    else:
        moved = place.board.prioritize("q.available", 9)
    with pytest.raises(dibs.Exists):
        place.board.add("q")
    assert place.names() == [moved.name]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("way", ["forget", "repair"])
def test_without_gone_forgotten_ids_can_be_added_above_their_fences(
    place: Place, count: int, way: str
) -> None:
    highest = lives(place, "q", count)
    shutil.rmtree(place.path / ".dibs/gone")
    board = place.another()[0]
    with pytest.raises(dibs.Exists, match="forget"):
        board.add("q")
    found = [finding for finding in board.check() if finding.kind == "lives"]
    assert [finding.ids for finding in found] == ([("q",)] if count > 1 else [])
    if way == "repair":
        assert board.repair() == []
        assert [f for f in board.check() if f.kind == "lives"] == []
    board.forget("q")
    assert board.add("q").fence == highest + 1
    assert granted(board, "q") > highest


def test_without_gone_a_vanished_life_does_not_count_as_purged(
    place: Place,
) -> None:
    lives(place, "q", 1)
    place.board.add("q")
    claim = place.board.claim("q")
    assert claim is not None
    (place.path / claim.task.name).unlink()
    shutil.rmtree(place.path / ".dibs/gone")
    for journal in (place.path / ".dibs/journal").iterdir():
        journal.unlink()
    board = place.another()[0]
    board.forget("q")
    assert board.add("q").fence > 1_000_000


def test_without_gone_and_known_fences_jump(place: Place) -> None:
    highest = lives(place, "q", 2)
    place.board.add("q")
    for folder in ("gone", "known"):
        shutil.rmtree(place.path / ".dibs" / folder)
    board = place.another()[0]
    assert board.repair() == []
    assert granted(board, "q") > highest
    board.purge(0)
    board.forget("q")
    board.add("q")
    assert granted(board, "q") > highest + 1


@pytest.mark.parametrize("life", [0, 1])
@pytest.mark.parametrize("content", [b"", b"x\n", b"-1"])
def test_an_unreadable_end_of_a_life_is_reported_and_rewritten(
    place: Place, life: int, content: bytes
) -> None:
    """On a file system without links, an end whose writer was killed is empty."""
    highest = lives(place, "q", 2)
    (place.path / f".dibs/gone/q.{life}").write_bytes(content)
    with pytest.raises(dibs.Exists, match="check --repair"):
        place.board.add("q")
    (finding,) = place.board.check()
    assert (finding.kind, finding.ids) == ("lives", ("q",))
    assert place.board.repair() == []
    assert place.board.check() == []
    place.board.add("q")
    assert granted(place.board, "q") > highest


def test_ids_in_a_later_life_are_no_finding(place: Place) -> None:
    lives(place, "q", 2)
    place.board.add("q")
    assert place.board.check() == []


def age(path: Path) -> None:
    """Make the last entry in `known/` an hour old."""
    os.utime(path / ".dibs/known", (time.time() - 3600,) * 2)


def restored(path: Path, way: str) -> None:
    """Restore the older copy of `.dibs` that `older` made."""
    old, now = path.parent / "older", path / ".dibs"
    if way == "in place":  # as `rsync -a --delete` does
        for folder in (now, *(p for p in now.iterdir() if p.is_dir())):
            then = old / folder.relative_to(now)
            for entry in {p.name for p in folder.iterdir()} - {p.name for p in then.iterdir()}:
                (folder / entry).unlink()
            shutil.copystat(then, folder)
        return
    shutil.rmtree(now)
    if way == "mv":
        old.rename(now)
    elif way == "cp":
        subprocess.run(["cp", "-a", old, now], check=True)
    else:
        now.mkdir()
        subprocess.run(f"tar -C {old} -c . | tar -C {now} -xp", shell=True, check=True)


def older(path: Path) -> None:
    """Copy `.dibs`, an hour after its last id was added."""
    age(path)
    subprocess.run(["cp", "-a", path / ".dibs", path.parent / "older"], check=True)


@pytest.mark.parametrize("way", ["cp", "mv", "tar", "in place"])
@pytest.mark.parametrize("first", ["add", "claim"])
def test_after_an_older_copy_of_the_records_is_restored_no_second_task_of_an_id_is_made(
    place: Place, way: str, first: str
) -> None:
    place.board.add("before")
    older(place.path)
    for ident in ("w", "over", "next"):
        place.board.add(ident)
    claim, over = place.board.claim("w"), place.board.claim("over")
    assert claim is not None
    assert over is not None
    over.done()
    restored(place.path, way)
    if first == "claim":  # its own entry does not hide the loss
        assert place.another()[0].claim("next") is not None
    again = place.another()[0]
    for ident in ("w", "over"):
        with pytest.raises(dibs.StorageError, match="check --repair"):
            again.add(ident)
    assert again.repair() == []
    for ident in ("w", "over", "next", "before"):
        with pytest.raises(dibs.Exists):
            again.add(ident)
    claim.done()
    assert place.another()[0].add("new").fence == 0


def test_a_complete_copy_is_checked_once_and_works(scratch: Path) -> None:
    board = dibs.open(scratch / "board", create=True)
    for ident in ("a", "b"):
        board.add(ident)
    assert board.claim("a") is not None
    copy = scratch / "copy"
    age(Path(board.location.where))
    subprocess.run(["cp", "-a", board.location.where, copy], check=True)
    known = copy / ".dibs/known"
    assert dibs.open(copy).claim("b") is not None
    assert known.stat().st_ctime_ns == known.stat().st_mtime_ns
    assert dibs.open(copy).add("new").fence == 0


@pytest.mark.parametrize("folder", ["done", "failed"])
def test_check_says_what_is_lost_with_the_records_even_if_nothing_has_ended(
    scratch: Path, folder: str
) -> None:
    place = lost(scratch)
    for other in {"done", "failed"} - {folder}:
        (place.path / other).rmdir()
    for found in (place.another()[0].check(), place.another()[0].repair()):
        (finding,) = (each for each in found if each.kind == "lost")
        assert (finding.name, finding.repair, finding.fault) == (".dibs", None, False)
        assert "start again at 1" in finding.text
        assert "restore" in finding.text
    (place.path / folder).rmdir()
    assert [each.kind for each in place.another()[0].check()] == []
