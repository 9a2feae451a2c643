"""What becomes of tasks where `.dibs` was lost, wholly or in part, or is older than the board."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.core.tools import Place

STAMPED = ["w.f1.zoe-00000000A1.claimed", "w.f3.available", "w.f0p3.available", "w.f0a1.available"]
ENDED = ["done/w.f1.zoe-00000000A1", "failed/w.f0.op-00000000A1"]


def names(path: Path) -> list[str]:
    """Every name of a task, live or ended."""
    live = [p.name for p in path.iterdir() if p.name not in (".dibs", "done", "failed")]
    return sorted(live) + sorted(
        f"{folder}/{p.name}" for folder in ("done", "failed") for p in (path / folder).glob("*")
    )


def laid(scratch: Path, *found: str) -> Path:
    """A directory with names that dibs made, and nothing else of dibs."""
    path = scratch / "board"
    for name in found:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"payload")
    return path


@pytest.mark.parametrize("name", STAMPED + ENDED)
def test_where_all_records_are_lost_no_second_task_of_an_id_is_made(
    scratch: Path, name: str
) -> None:
    path = laid(scratch, name)
    board = dibs.open(path)
    for ident in ("w", "new"):
        with pytest.raises(dibs.StorageError, match="check --repair"):
            board.add(ident)
    assert names(path) == [name]
    assert board.repair() == []
    with pytest.raises(dibs.Exists):
        board.add("w")
    assert board.add("new").fence == 0
    assert names(path) == sorted([name, "new.available"], key=lambda n: ("/" in n, n))


@pytest.mark.parametrize("name", STAMPED + ENDED)
def test_one_repair_is_enough_where_all_records_are_lost(scratch: Path, name: str) -> None:
    board = dibs.open(laid(scratch, name))
    assert [f.kind for f in board.check() if f.fault and f.kind != "stale"] == ["known"]
    board.repair()
    assert not (Path(board.path) / ".dibs/known/lost").exists()
    with pytest.raises(dibs.Exists):
        dibs.open(board.path).add("w")


def test_workers_go_on_where_all_records_are_lost_and_no_fence_comes_back(scratch: Path) -> None:
    board = dibs.open(laid(scratch, "w.f3.available"))
    claim = board.claim("w", owner="me")
    assert claim is not None
    assert claim.fence == 4
    claim.done()
    board.repair()
    with pytest.raises(dibs.Exists):
        board.add("w")
    board.purge()
    board.forget("w")
    assert board.add("w").fence == 5


def test_a_process_that_ran_on_while_all_records_were_lost_adds_no_id_twice(place: Place) -> None:
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
def test_a_shell_that_comes_first_lets_no_id_be_added_twice(fleet: Fleet, name: str) -> None:
    fleet.offer("other")
    (fleet.path / name).parent.mkdir(exist_ok=True)
    (fleet.path / name).touch()
    assert fleet.run("claim_task other").returncode == 0
    board = fleet.board()
    with pytest.raises(dibs.StorageError, match="check --repair"):
        board.add("w")
    board.repair()
    with pytest.raises(dibs.Exists):
        board.add("w")
    assert [p for p in (fleet.path / ".dibs").iterdir() if p.name.startswith("known.")] == []


def test_names_that_shells_made_are_no_sign_of_lost_records(scratch: Path, fleet: Fleet) -> None:
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
