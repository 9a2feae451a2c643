"""A dashboard on a real board, driven by a pilot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from dibs_tui.widgets.table import TaskTable
from tests.patience import PATIENCE

Drive = Callable[[DibsApp, Pilot[None]], Awaitable[None]]
SIZE = (120, 40)


@asynccontextmanager
async def dashboard(
    path: Path | str,
    *,
    size: tuple[int, int] = SIZE,
    config: Config | None = None,
    remembered: Remembered | None = None,
    wall: bool = False,
    terms: str = "",
) -> AsyncIterator[tuple[DibsApp, Pilot[None]]]:
    """The dashboard, once it has read the complete board or reports why it cannot."""
    config = config or Config(still=0)
    source = BoardSource(str(path), poll=config.poll)
    app = DibsApp(source, config, remembered=remembered or Remembered(), wall=wall, terms=terms)
    source.start()
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: app.model.complete or bool(source.health.trouble))
            await pilot.pause()
            yield app, pilot
    finally:
        source.stop(PATIENCE)
        assert app.saving.acquire(timeout=PATIENCE), "the view is still being written"


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        late = asyncio.get_running_loop().time() >= deadline
        assert not late, f"it never became true:\n{text_of(pilot.app)}"
        await pilot.pause(0.02)


def drive(
    path: Path | str,
    steps: Drive,
    *,
    size: tuple[int, int] = SIZE,
    config: Config | None = None,
    remembered: Remembered | None = None,
    wall: bool = False,
    terms: str = "",
) -> None:
    """Run some steps on the dashboard."""

    async def run() -> None:
        async with dashboard(
            path, size=size, config=config, remembered=remembered, wall=wall, terms=terms
        ) as (app, pilot):
            await steps(app, pilot)

    asyncio.run(run())


def text_of(app: App[None]) -> str:
    """The text on the screen."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    assert len(lines) == height
    assert width
    return "\n".join(strip.text.rstrip() for strip in lines)


def filled(board: dibs.Board, count: int = 12) -> None:
    """Add this many tasks to a board."""
    for number in range(count):
        board.add(f"task-{number:02}", b"work")


def table(app: DibsApp, panel: str) -> TaskTable:
    """The table of a panel."""
    screen = app.board_screen
    assert screen is not None
    return screen.body.tables[panel]
