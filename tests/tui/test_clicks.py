"""Tabs, counts and panel titles are clicked: by a driver, and with a terminal's mouse sequences."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.board import BoardScreen
from tests.tui.live import drive, filled, text_of, until
from tests.tui.tmux import SIZES, tmux

TABS = {
    "2 avail": "available", "3 claimed": "claimed", "4 stale": "stale", "5 failed": "failed",
    "6 done": "done", "7 locks": "locks", "8 problems": "problems", "9 owners": "owners",
    "0 feed": "feed", "1 all": "all", "claimed 0": "claimed",
}  # fmt: skip
"""What is clicked, and the view that it opens."""


def opened(screen: BoardScreen, view: str) -> bool:
    """Whether a view is open."""
    return screen.body.view == view


def place(text: str, words: str) -> tuple[int, int]:
    """The column and the row of the last letter of these words."""
    for y, line in enumerate(text.split("\n")):
        if (x := line.find(words)) >= 0:
            return x + len(words) - 1, y
    raise AssertionError(f"{words} is not on\n{text}")


@pytest.mark.parametrize("size", SIZES)
def test_every_tab_and_its_count_can_be_clicked(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: all(tab in text_of(app) for tab in TABS))
        for tab, view in TABS.items():
            await pilot.click(offset=place(text_of(app), tab))
            await until(pilot, partial(opened, screen, view))

    drive(path, steps, size=size)


def test_the_title_of_a_panel_opens_its_view(path: Path, board: dibs.Board) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "5 ✗ failed" in text_of(app))
        await pilot.click(offset=place(text_of(app), "5 ✗ failed"))
        await until(pilot, lambda: app.board_screen is not None
                    and app.board_screen.body.view == "failed")  # fmt: skip

    drive(path, steps)


@pytest.mark.parametrize("size", SIZES)
def test_a_click_of_a_real_terminal_opens_a_tab(tmp_path: Path, size: tuple[int, int]) -> None:
    filled(dibs.open(tmp_path / "board", create=True), 3)
    with tmux(tmp_path, size, tmp_path / "board") as shown:
        shown.shows("● live", "claimed 0")
        for tab, seen in (("5 failed", "5 ✗ failed"), ("2 avail", "2 ○ available 3")):
            x, y = place(shown.text, tab)
            shown.type(f"\x1b[<0;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}m")
            shown.shows(f"▌{seen}")
