"""The cursor and the marks of a table with folds, after other views and after the claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from tests.tui.live import drive, text_of, until


@pytest.fixture
def stopped(tmp_path: Path) -> dibs.Board:
    """A board with four stale claims of one host."""
    board = dibs.open(tmp_path, host="web-1")
    for n in range(4):
        board.add(f"t{n}")
        assert board.claim(owner=f"w{n}", ttl=1) is not None
    return board


@pytest.mark.parametrize("keys", ["84", "484", "4874"])
def test_the_cursor_goes_into_a_fold_after_another_view(
    stopped: dibs.Board, tmp_path: Path, keys: str
) -> None:
    del stopped

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        table = screen.body.tables["stale"]
        await until(pilot, lambda: "stale 4" in text_of(app))
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.05)
        await pilot.press("enter", "down")
        await until(pilot, lambda: table.is_open and table.cursor_line == 1)
        assert table.cursor_task is not None
        await until(pilot, lambda: not table.selected()[1])

    drive(tmp_path, steps)


def test_a_mark_leaves_with_its_claim_and_is_not_on_the_next_holder(
    stopped: dibs.Board, tmp_path: Path
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        table = screen.body.tables["stale"]
        await until(pilot, lambda: len(app.model.stale) == 4)
        await pilot.press("4", "asterisk")
        await until(pilot, lambda: len(table.marks) == 4)
        assert len(stopped.reap().tasks) == 4
        other = dibs.open(tmp_path, host="web-2")
        for n in range(4):
            assert other.claim(f"t{n}", owner="next") is not None
        await until(pilot, lambda: not table.marks)
        await until(pilot, lambda: table.length == 0)

    drive(tmp_path, steps)
