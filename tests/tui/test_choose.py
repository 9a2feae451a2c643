"""The dialogs that choose a table's columns: readable without colour."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.choose import ChooseColumns
from dibs_tui.settings.config import Config
from tests.tui.dialogs import without_waiting
from tests.tui.live import drive, text_of, until

pytestmark = pytest.mark.fast("dibs_tui.screens")


def test_shown_and_hidden_columns_have_different_signs_and_keys_move_and_toggle_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, tmp_path)
    dibs.open(tmp_path / "board", create=True).add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        table = app.board_screen.body.tables["available"]
        await pilot.press("2", "c")
        await until(pilot, lambda: isinstance(app.screen, ChooseColumns))
        assert list(table.columns) == ["id", "priority", "waiting", "tries"]
        assert "✓ pri" in text_of(app)
        assert "· owner" in text_of(app)
        await pilot.press("j", "space", "right")
        await until(pilot, lambda: "· pri" in text_of(app))
        assert app.screen.query_one(OptionList).highlighted == 2
        await pilot.press("up", "left", "enter")
        await until(pilot, lambda: app.screen is app.board_screen)
        assert list(table.columns) == ["waiting", "id", "tries"]

    drive(tmp_path / "board", steps, config=Config(still=0, colour=False))
