"""Copying to and from a directory: what is in the way, and what is not copied, is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs.copying import copy
from tests.contract.command import Command


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    """A paused board with a task."""
    made = dibs.open(tmp_path / "board", create=True)
    made.add("a")
    made.pause_claims("moving", locks=True)
    return made


def test_a_folder_of_other_files_is_no_other_board(board: dibs.Board, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    for name in "notes\n.txt", "b", "c", "d":
        (folder / name).touch()
    command = Command(board.location.where)
    said = command("copy", board.location.where, str(folder), code=2)
    assert f"{folder} is no board, and not empty: it has b, c, d and 1 more" in said
    assert sorted(path.name for path in folder.iterdir()) == ["b", "c", "d", "notes\n.txt"]


def test_a_file_is_no_place_for_a_board(board: dibs.Board, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = Command(board.location.where)(
        "copy", board.location.where, str(tmp_path / "file"), code=1
    )
    assert str(tmp_path / "file") in said


def test_a_board_is_not_copied_into_itself(board: dibs.Board, tmp_path: Path) -> None:
    folder = Path(board.location.where)
    (tmp_path / "link").symlink_to(folder)
    names = sorted(folder.iterdir())
    for target in (folder / "sub", folder / ".dibs" / "sub", tmp_path / "link" / "sub" / "sub"):
        with pytest.raises(dibs.BadName, match="is inside of"):
            copy(folder, target)
    assert sorted(folder.iterdir()) == names
    copy(folder, tmp_path / "board2")  # beside it, with a name that begins the same


def test_another_board_is_named_as_that(board: dibs.Board, tmp_path: Path) -> None:
    dibs.open(tmp_path / "other", create=True).add("b")
    with pytest.raises(dibs.Refused, match=r"is another board already: .* needs no `init`"):
        copy(board.location.where, tmp_path / "other")


def test_files_that_are_no_tasks_are_named(board: dibs.Board, tmp_path: Path) -> None:
    folder = Path(board.location.where)
    (folder / "notes\n").touch()
    assert copy(folder, tmp_path / "1").omitted == (r"1 file that is no task: notes\x0a",)
    for number in range(4):
        (folder / f"more-{number}.txt").touch()
    (omitted,) = copy(folder, tmp_path / "2").omitted
    assert omitted.startswith("5 files that are no tasks: ")
    assert omitted.endswith(" and 2 more")
