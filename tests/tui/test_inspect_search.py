"""The output of a task: it is searched with `/`, and saved with `e`."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.enter_line import EnterLine
from dibs_tui.screens.inspect import InspectScreen
from tests.tui.inspected import claimed, opened
from tests.tui.live import drive, text_of, until

SIZES = [(80, 24), (120, 40), (200, 60)]


def printed(board: dibs.Board) -> None:
    """A claim that printed 300 lines, three of them with an error."""
    lines = [f"line {n}" + (" Error: disk" if n in (7, 150, 290) else "") for n in range(300)]
    lines[20] += " \x1b[31m" + "wide " * 60 + "needle"
    claimed(board, "task-7").keep_output(1 << 16).keep("\n".join(lines).encode() + b"\n", 0)


async def search(app: DibsApp, pilot: Pilot[None], words: str) -> None:
    """Search for some words."""
    await pilot.press("slash")
    await until(pilot, lambda: isinstance(app.screen, EnterLine))
    await pilot.press(*(["space" if c == " " else c for c in words]), "enter")


@pytest.mark.parametrize("size", SIZES)
def test_the_output_is_searched_and_the_keys_go_to_the_next_and_the_previous_match(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    printed(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7", "output", "line 299")
        assert "/ search" in text_of(app)
        await search(app, pilot, "error")
        await until(pilot, lambda: "3 of 3 lines with error" in text_of(app))
        assert "▸ line 290 Error" in text_of(app)
        await pilot.press("N")
        await until(pilot, lambda: "2 of 3 lines" in text_of(app))
        assert "▸ line 150 Error" in text_of(app)
        await pilot.press("N", "N")
        await until(pilot, lambda: "3 of 3 lines" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "▸ line 7 Error" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "▸" not in text_of(app))
        assert isinstance(app.screen, InspectScreen), "the first Esc ends the search"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(path, steps, size=size)


@pytest.mark.parametrize("wraps", [True, False])
def test_a_match_is_found_where_the_line_is_wrapped_or_cut(
    path: Path, board: dibs.Board, wraps: bool
) -> None:
    printed(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7", "output", "line 299")
        if not wraps:
            await pilot.press("w")
        await search(app, pilot, "wide needle")
        await until(pilot, lambda: "1 of 1 line with wide needle" in text_of(app))
        await until(pilot, lambda: "▸ line 20" in text_of(app))

    drive(path, steps, size=(80, 24))


def test_what_is_not_in_the_output_is_said_and_can_be_changed(
    path: Path, board: dibs.Board
) -> None:
    printed(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7", "output", "line 299")
        await search(app, pilot, "nothing")
        await until(pilot, lambda: "no line has nothing" in text_of(app))
        assert isinstance(app.screen, EnterLine)
        await pilot.press("escape", "1", "slash")
        await until(pilot, lambda: "filter: only in the output (2)" in text_of(app))

    drive(path, steps)


def test_the_output_is_saved_as_clean_text(
    path: Path, board: dibs.Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(board)
    (tmp_path / "to").mkdir()
    monkeypatch.chdir(tmp_path / "to")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7", "output", "line 299")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EnterLine))
        assert "dibs-task-7-output-" in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: "export: output saved to" in text_of(app))
        (saved,) = (tmp_path / "to").iterdir()
        assert saved.suffix == ".log"
        text = saved.read_text()
        assert text.count("\n") == 300
        assert "line 20 \\x1b[31mwide" in text

    drive(path, steps)
