"""A board that cannot be seen does not look live: nothing of it keeps the ink of a state."""

from __future__ import annotations

import asyncio
import os
import time
from colorsys import rgb_to_hls
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from tests.tui.live import SIZE, drive, text_of, until

COLOURED = 0.15
"""The saturation from which a colour is no grey; the greys of every theme stay below it."""


def aged(board: dibs.Board, path: Path) -> None:
    """Fill a board with tasks in every state whose ages change once in minutes only."""
    for number in range(12):
        board.add(f"task-{number:02}", b"work")
    for number in range(3):
        board.park(board.find(f"task-{number:02}")[0].name, "exit code 7")
    claim = board.claim("task-03", owner="web-1", ttl=3600)
    assert claim is not None
    done = board.claim("task-04", owner="web-1")
    assert done is not None
    done.done()
    board.acquire("deploy", owner="web-2", ttl=3600)
    an_hour_ago = time.time() - 3600
    for folder in (path, path / "failed", path / "done"):
        for entry in os.scandir(folder):
            if entry.is_file():
                os.utime(entry, (an_hour_ago, an_hour_ago))


def saturation(segment: Segment) -> float:
    """How far the text of a segment is from a grey, from 0 to 1."""
    style = segment.style
    assert style is not None
    assert style.color is not None
    light = [part / 255 for part in style.color.get_truecolor()]
    return rgb_to_hls(*light)[2] if len(set(light)) > 1 else 0.0


def coloured(app: DibsApp) -> list[str]:
    """The texts with the ink of a state in the panels, the tabs and the graphs."""
    screen = app.board_screen
    assert screen is not None
    parts = [screen.body, screen.frame.tabs, screen.frame.band]
    strips = screen._compositor.render_strips()
    return [
        segment.text.strip()
        for part in parts
        if part.display
        for strip in strips[part.region.y : part.region.bottom]
        for segment in strip
        if segment.text.strip() and saturation(segment) >= COLOURED
    ]


@pytest.mark.parametrize("size", [(80, 24), SIZE, (200, 60)])
def test_nothing_of_a_lost_board_keeps_the_ink_of_a_state(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    aged(board, path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "exit code 7" in text_of(app))
        before = coloured(app)
        assert "✗" in "".join(before), "the failed panel has its ink while the board is seen"
        await asyncio.to_thread(path.rename, path.with_name("away"))
        await until(pilot, lambda: "MISSING" in text_of(app))
        await pilot.pause()
        assert coloured(app) == []
        await asyncio.to_thread(path.with_name("away").rename, path)
        await until(pilot, lambda: "MISSING" not in text_of(app))
        await pilot.pause()
        assert "✗" in "".join(coloured(app)), "and again once the board is back"

    drive(path, steps, size=size)


@pytest.mark.parametrize("view", ["2", "3", "4", "5", "6", "7", "8", "9", "0"])
def test_a_view_that_is_opened_on_a_lost_board_is_dimmed(
    path: Path, board: dibs.Board, view: str
) -> None:
    aged(board, path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(path.rename, path.with_name("away"))
        await until(pilot, lambda: "MISSING" in text_of(app))
        await pilot.press(view)
        await pilot.pause()
        assert [text for text in coloured(app) if text not in ("▌", view)] == []

    drive(path, steps)
