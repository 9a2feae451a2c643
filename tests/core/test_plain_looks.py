"""What is only looked at stays unchanged: no reading verb makes a plain directory a board."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.core.test_cli import Command


@pytest.mark.parametrize(
    "argv", [("show", "a"), ("check",), ("ls",), ("stats",), ("log",), ("status", "door")]
)
def test_a_look_at_a_plain_directory_writes_nothing_there(
    scratch: Path, argv: tuple[str, ...]
) -> None:
    board = scratch / "plain"
    board.mkdir()
    (board / "a.available").touch()
    Command(board)(*argv)
    assert os.listdir(board) == ["a.available"]


def test_a_check_of_shell_claims_makes_no_folders_for_tasks(scratch: Path) -> None:
    board = scratch / "plain"
    board.mkdir()
    (board / "a.claimed").touch()
    (board / "a.lock").write_text("1700000000 web\n")
    Command(board)("check")
    assert not {"done", "failed"} & set(os.listdir(board))
