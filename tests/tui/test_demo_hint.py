"""A live demo says in its first minute what to try."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from tests.tui.live import text_of, until

HINT = "a worker dies every 20 s: once a row is stale (▲), X and y release its task"


@pytest.mark.parametrize("hints", [True, False])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_the_hint_of_a_demo_is_hidden_by_escape_and_ends_by_itself(
    path: Path, board: dibs.Board, hints: bool, size: tuple[int, int]
) -> None:
    board.add("task-1")

    async def run() -> None:
        source = BoardSource(str(path))
        app = DibsApp(source, Config(), remembered=Remembered(), temporary=True, hints=hints)
        source.start()
        try:
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: app.model.complete)
                await pilot.pause(0.1)
                app.hints_until += 600 * hints
                if not hints:
                    assert HINT[:20] not in text_of(app)
                    return
                await until(pilot, lambda: HINT[:40] in text_of(app))
                await pilot.press("escape")
                await until(pilot, lambda: HINT[:40] not in text_of(app))
        finally:
            source.stop()

    asyncio.run(run())
