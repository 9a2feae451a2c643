"""The keys of the last row on a row whose task has left the board."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from tests.tui.live import drive, filled, table, text_of, until


def test_no_act_is_offered_on_a_row_that_has_just_left(path: Path, board: dibs.Board) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        await until(pilot, lambda: "P park" in text_of(app).split("\n")[-1])
        at = table(app, "available").cursor_task
        assert at is not None
        assert board.claim(at.id) is not None
        await until(pilot, lambda: at.name not in app.model.tasks)
        await until(pilot, lambda: "P park" not in text_of(app).split("\n")[-1])

    drive(path, steps, config=Config(still=3600))
