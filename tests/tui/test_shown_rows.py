"""A key acts on the row that is shown, at once if the operator's own key brought it there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dibs.files.engine import FilesBoard, open_directory
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from tests.tui.live import drive, until


@pytest.mark.parametrize("view", ["2", "4", "8"])
def test_a_row_that_a_key_brought_into_view_can_be_acted_on_at_once(
    path: Path, board: FilesBoard, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.acting.key_bursts._SETTLED", 3600)  # only a move would be refused
    monkeypatch.setattr(KeyBurstGuard, "burst", False)
    for number in range(3):
        board.add(f"task-{number}")
    claim = board.claim("task-2", owner="web-3", ttl=1)
    assert claim is not None
    view_of = open_directory(path).view()
    while True:
        view_of.scan()
        facts = view_of.facts()
        if any(found.expired(view_of.now(facts.values())[0]) for found in facts.values()):
            break

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: bool(app.model.stale))
        await pilot.press("9", view)
        found = screen.body.cursor_list
        assert found is not None
        await until(pilot, lambda: time.monotonic() - found.shown_since() > 0.15)
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, ActScreen))

    drive(path, steps)
