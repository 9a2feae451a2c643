"""What the tests of the inspector share."""

from __future__ import annotations

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.memory import Remembered
from dibs_tui.screens.inspect import InspectScreen
from dibs_tui.widgets.inspector import Inspector
from dibs_tui.widgets.page import Page
from tests.tui.live import until

WITH_PANE = Remembered(panel="all", pane=True)


def claimed(board: dibs.Board, ident: str, payload: bytes = b"", **terms: object) -> dibs.Claim:
    """A task that was added and claimed."""
    board.add(ident, payload)
    claim = board.claim(ident, **terms)  # type: ignore[arg-type]
    assert claim is not None
    return claim


def page_of(app: DibsApp) -> Page:
    """What the full view shows."""
    return app.screen.query_one("#inspected", Page)


def pane_of(app: DibsApp) -> Inspector:
    """The pane beside the tables."""
    return app.screen.query_one(Inspector)


async def opened(
    app: DibsApp, pilot: Pilot[None], ident: str, tab: str = "", until_text: str = ""
) -> Page:
    """The full view of the task of that id, once the journal was read or a text is there."""
    task = next(task for task in app.model.tasks.values() if task.id == ident)
    screen = InspectScreen(task, app.model, tab, app.commands)
    await app.push_screen(screen)
    page = page_of(app)
    if until_text:
        await until(pilot, lambda: until_text in page.text)
    else:
        await until(pilot, lambda: whole(screen))
    return page


def whole(screen: InspectScreen) -> bool:
    """Whether the journal was read."""
    details = screen._subject.details
    return details is not None and details.known.events is not None
