"""A first use that is killed leaves folders on their way to their name, and check knows them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dibs
from dibs.disk import Disk
from dibs.host import this_host
from dibs.store import FOLDERS, Store
from tests.core.tools import Place, in_child, opened

NONCE = "0123456789"
AGE = 3700


def drafts(path: Path) -> list[str]:
    found = [*path.iterdir(), *(path / ".dibs").iterdir(), *(path / ".dibs/free").iterdir()]
    return sorted(str(p.relative_to(path)) for p in found if len(p.name.rpartition(".")[2]) == 10)


def killed_before_rename(path: Path, folder: str) -> None:
    """A process makes that folder, and is killed before it has its name."""

    class Killed(Disk):
        def _rename(self, src: str, dst: str, keep: bool) -> None:
            if dst == f"{path}/{folder}":
                os._exit(9)
            super()._rename(src, dst, keep)

    def use() -> None:
        store = Store(Killed(str(path)), this_host())
        store.open()
        store.ready()

    with pytest.raises(EOFError):  # it died, and answers nothing
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
def test_what_else_was_on_its_way_to_a_name_is_removed_as_well(place: Place, name: str) -> None:
    left = place.path / f"{name}.{NONCE}"
    if name.endswith("probe"):
        left.touch()
    else:
        left.mkdir()
    for _ in range(3):
        place.board.repair()
        place.world.advance(AGE)
    assert not left.exists()


def test_a_first_use_that_is_killed_is_known_before_there_is_a_board(scratch: Path) -> None:
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
