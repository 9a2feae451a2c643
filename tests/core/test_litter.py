"""A killed first use leaves folders under temporary names, and check recognises them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import dibs
from dibs.files.board_files import FOLDERS, BoardFiles
from dibs.files.disk import Disk
from dibs.host import this_host
from tests.core.tools import NOBODY, Place, in_child, opened

NONCE = "0123456789"
AGE = 3700


def drafts(path: Path) -> list[str]:
    found = [*path.iterdir(), *(path / ".dibs").iterdir(), *(path / ".dibs/free").iterdir()]
    return sorted(str(p.relative_to(path)) for p in found if len(p.name.rpartition(".")[2]) == 10)


def killed_before_rename(path: Path, folder: str) -> None:
    """Let a process make this folder and die before it renames it."""

    class Killed(Disk):
        def _rename_keeping(self, src: str, dst: str) -> None:
            if dst == f"{path}/{folder}":
                os._exit(9)
            super()._rename_keeping(src, dst)

    def use() -> None:
        store = BoardFiles(Killed(str(path)), this_host())
        store.open()
        store.ready()

    with pytest.raises(EOFError):  # it died without a result
        in_child(use)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_whose_maker_was_killed_is_removed_when_it_is_old(
    scratch: Path, folder: str
) -> None:
    place = Place(scratch)
    name = folder if folder.startswith(".dibs") else ".dibs/new"
    (place.path / f"{name}.{NONCE}").mkdir()
    assert place.board.check() == []
    assert drafts(place.path) == [f"{name}.{NONCE}"]
    place.world.advance(AGE)
    place.board.check()
    place.world.advance(AGE)
    (finding,) = place.board.check()
    assert (finding.kind, finding.name) == ("draft", f"{name}.{NONCE}")
    assert place.board.repair() == []
    assert drafts(place.path) == []
    assert place.board.check() == []


@pytest.mark.parametrize("name", [".dibs/free/0a1", ".dibs/probe", ".dibs/known.ABCDEF0123"])
def test_other_temporary_names_are_removed_too(place: Place, name: str) -> None:
    left = place.path / f"{name}.{NONCE}"
    if name.endswith("probe"):
        left.touch()
    else:
        left.mkdir()
    for _ in range(3):
        place.board.repair()
        place.world.advance(AGE)
    assert not left.exists()


def test_a_killed_first_use_is_recognised_before_there_is_a_board(scratch: Path) -> None:
    path = scratch / "plain"
    path.mkdir()
    killed_before_rename(path, ".dibs")
    (left,) = os.listdir(path)
    (finding,) = opened(Disk(str(path))).check()
    assert (finding.kind, finding.name, finding.fault) == ("draft", left, False)
    assert os.listdir(path) == [left]
    board = dibs.open(path, create=True)
    board.add("x")
    assert board.check() == []


def test_a_folder_that_is_not_empty_and_a_link_are_left_alone(place: Place) -> None:
    full = place.path / f".dibs.{NONCE}"
    full.mkdir()
    (full / "notes").write_text("kept")
    link = place.path / f".dibs/past.{NONCE}"
    link.symlink_to(place.path)
    for _ in range(3):
        place.board.repair()
        place.world.advance(AGE)
    assert [finding.kind for finding in place.board.check()] == ["stranger", "stranger"]
    assert (full / "notes").read_text() == "kept"
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="NO OTHER USER WAS TRIED: not root")
def test_a_user_who_cannot_write_gets_each_finding_without_a_repair(scratch: Path) -> None:
    path = scratch / "board"
    path.mkdir()
    board = dibs.open(path)
    for ident in ("alive", "stale"):
        board.add(ident)
    claims = [board.claim(ident, ttl=60) for ident in ("alive", "stale")]
    assert claims[1] is not None
    trial = path / ".dibs/trial.ABCDEF0123"
    trial.mkdir()
    for place in (path / ".dibs/records" / claims[1].task.stem, trial):
        os.utime(place, (time.time() - 7200, time.time() - 7200))
    (path / ".dibs/known.ABCDEF0123").mkdir()
    (path / ".dibs/new/0123456789").touch()
    (path / ".dibs/records/over.f1.w-0123456789").touch()
    (path / "later.available").touch()
    before = {p: p.stat().st_ctime_ns for p in path.rglob("*")}

    def found() -> list[tuple[str, str, bool]]:
        seen = dibs.open(path).check()
        return sorted((f.kind, f.name.partition(".f1")[0], f.repair is None) for f in seen)

    assert in_child(found, uid=NOBODY, umask=0o077) == [
        ("record", ".dibs/records/over", True),
        ("stale", "stale", True),
        ("trial", ".dibs/trial.ABCDEF0123", True),
    ]
    assert {p: p.stat().st_ctime_ns for p in path.rglob("*")} == before
    repairs = {finding.kind: finding.repair is not None for finding in board.check()}
    assert (repairs["record"], repairs["trial"]) == (True, True)


def test_a_claim_that_an_operator_takes_before_its_record_exists_leaves_no_record(
    scratch: Path,
) -> None:
    place = Place(scratch)
    board, port = place.another()
    place.board.add("build")

    def take(path: str) -> None:
        if path.startswith(".dibs/records/"):
            (name,) = (name for name in place.names() if name.endswith(".claimed"))
            place.board.force_release(name, "stuck")

    port.before["create"] = take
    claim = board.claim()
    assert claim is not None
    assert place.records() == [claim.name]
    with pytest.raises(dibs.Lost):
        claim.release()
    assert place.records() == []
    assert place.board.check() == []
