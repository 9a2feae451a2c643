"""Helpers for tests of the inspector."""

from __future__ import annotations

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.inspect import InspectScreen
from dibs_tui.settings.memory import Remembered
from dibs_tui.widgets.inspector import Inspector
from dibs_tui.widgets.page import Page
from tests.tui.live import until

WITH_PANE = Remembered(panel="all", pane=True)


def claimed(board: dibs.Board, ident: str, payload: bytes = b"", **terms: object) -> dibs.Claim:
    """Add a task and claim it."""
    board.add(ident, payload)
    claim = board.claim(ident, **terms)  # type: ignore[arg-type]
    assert claim is not None
    return claim


def page_of(app: DibsApp) -> Page:
    """The page of the full view."""
    return app.screen.query_one("#inspected", Page)


def pane_of(app: DibsApp) -> Inspector:
    """The pane beside the tables."""
    return app.screen.query_one(Inspector)


async def opened(
    app: DibsApp, pilot: Pilot[None], ident: str, tab: str = "", until_text: str = ""
) -> Page:
    """Open the full view of a task, and wait for a text or until its log has been read."""
    task = next(task for task in app.model.tasks.values() if task.id == ident)
    assert app.board_screen is not None
    screen = app.board_screen.inspect_screen(task, tab)
    await app.push_screen(screen)
    page = page_of(app)
    if until_text:
        await until(pilot, lambda: until_text in page.text)
    else:
        await until(pilot, lambda: log_read(screen))
    return page


def log_read(screen: InspectScreen) -> bool:
    """Whether the log has been read."""
    details = screen._inspection.details
    return details is not None and details.known.events is not None
