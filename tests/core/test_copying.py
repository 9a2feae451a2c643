"""A board can be copied, restored from a backup, or abandoned: its tasks stay plain files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "core/FILESYSTEMS.md").read_text()


@pytest.fixture
def board(scratch: Path) -> dibs.Board:
    """One task done, one failed, one claimed, two available, one of them with an escaped name."""
    made = dibs.open(scratch / "board", create=True)
    for ident in ("done", "failed", "claimed", "waits", "v1.2"):
        made.add(ident, ident.encode())
    made.claim("done", owner="me").done()  # type: ignore[union-attr]
    made.park("failed.available", "why")
    made.claim("claimed", owner="me")
    return made


def copied(board: dibs.Board, *without: str) -> dibs.Board:
    """The board as `cp -a` copies it, maybe without some folders."""
    place = Path(board.location.where).with_name("copy")
    subprocess.run(["cp", "-a", board.location.where, place], check=True)
    for name in without:
        shutil.rmtree(place / name)
    return dibs.open(place)


def states(board: dibs.Board) -> dict[str, str]:
    return {entry.id: entry.state for entry in board.entries()}


def test_a_complete_copy_is_a_working_board(board: dibs.Board) -> None:
    copy = copied(board)
    assert states(copy) == states(board)
    assert copy.check() == []
    with pytest.raises(dibs.Exists):
        copy.add("done")
    again = copy.claim("waits", owner="another")
    assert again is not None
    assert again.payload() == b"waits"
    requeued = copy.requeue(copy.find("done")[0].name)
    after = copy.claim(requeued.id, owner="another")
    assert after is not None
    assert after.fence == 2, "one above the copied one"


def test_a_claim_in_a_copy_keeps_its_owner_until_its_ttl_is_over(board: dibs.Board) -> None:
    copy = copied(board)
    (claimed,) = copy.find("claimed")
    assert not copy.reap().tasks
    with pytest.raises(dibs.Held):
        copy.claim("claimed", owner="another")
    assert copy.attach(claimed.stem).done().state == "done"
    assert board.find("claimed")[0].state == "claimed", "each copy is a separate board"


def test_removed_journals_lose_only_the_history(board: dibs.Board) -> None:
    before = states(board)
    for file in (Path(board.location.where) / ".dibs/journal").iterdir():
        file.unlink()
    again = dibs.open(board.location.where)
    assert states(again) == before
    assert again.check() == []
    requeued = board.requeue(board.find("done")[0].name)
    claim = again.claim(requeued.id)
    assert claim is not None
    assert claim.fence == 2, "one above what it was"
    history = [event.verb for event in dibs.open(board.location.where).log.of("done")]
    assert history == ["requeue", "claim"]


def test_a_copy_without_its_folder_of_records_has_all_its_tasks_and_adds_none_twice(
    board: dibs.Board,
) -> None:
    copy = copied(board, ".dibs")
    assert states(copy) == states(board)
    assert {i: copy.payload(copy.find(i)[0]) for i in ("waits", "v1.2")} == {
        "waits": b"waits",
        "v1.2": b"v1.2",
    }
    for ident in ("done", "claimed", "new"):
        with pytest.raises(dibs.StorageError, match="check --repair"):
            copy.add(ident)
    copy.repair()
    for ident in ("done", "failed", "claimed", "waits", "v1.2"):
        with pytest.raises(dibs.Exists):
            copy.add(ident)
    copy.add("new")
    assert states(copy) == states(board) | {"new": "available"}


def leave(place: Path) -> None:
    """Abandon a board as the page describes."""
    (script,) = re.findall(r"^```sh\n(if .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    subprocess.run(["sh", "-eu", "-c", script], cwd=place, check=True, timeout=PATIENCE)


def test_a_directory_that_is_no_board_stays_unchanged(scratch: Path) -> None:
    (scratch / "done").mkdir()
    for name in ("notes.v1.available", "done/my.own.txt"):
        (scratch / name).touch()
    leave(scratch)
    assert (scratch / "notes.v1.available").exists()
    assert (scratch / "done/my.own.txt").exists()


def test_an_abandoned_board_keeps_its_tasks_under_plain_names(board: dibs.Board) -> None:
    leave(Path(board.location.where))
    left = {
        str(p.relative_to(board.location.where))
        for p in Path(board.location.where).rglob("*")
        if p.is_file()
    }
    assert {"waits", "v1=2E2", "failed/failed", "done/done"} <= left
    assert (Path(board.location.where) / "done/done").read_bytes() == b"done"
    assert not (Path(board.location.where) / ".dibs").exists()


def test_unknown_fields_of_a_later_version_in_a_record_are_ignored(board: dibs.Board) -> None:
    (task,) = board.find("claimed")
    record = Path(board.location.where) / ".dibs/records" / task.stem
    fields = json.loads(record.read_text()) | {"colour": "green"}
    record.write_text(json.dumps(fields))
    holder = board.holder(task)
    assert holder is not None
    assert (holder.flaw, holder.owner) == ("", "me")


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)(?:::(test_[a-z0-9_]+))?`", PAGE)
    assert len(named) > 10
    for file, name in named:
        text = (ROOT / file).read_text()
        assert not name or f"def {name}(" in text, (file, name)
