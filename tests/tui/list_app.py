"""An app that shows one list, driven by a pilot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from dibs import Board, Health, Location
from dibs_tui.model.board import BoardModel
from dibs_tui.settings.config import Config
from dibs_tui.settings.themes import THEMES
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import FilterRequested, InspectRequested
from tests.tui.board_models import event

CONFIG = Config(still=0)
BAR = " ┃│"
"""The characters of the scroll bar."""


class Unread(NamedTuple):
    """A source whose board was never read."""

    label: str = "/board"
    location: Location = Location("/board", "/board", "/board")
    health: Health = Health()

    def open_board(self) -> Board:
        raise AssertionError("there is no board to open")


class ListApp(App[None]):
    """One list in its own app; the messages that it posts are recorded."""

    def __init__(self, shown: ListView[Any]) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.shown = shown
        self.messages: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.shown

    def on_mount(self) -> None:
        self.shown.focus()
        self.shown.show()

    def on_inspect_requested(self, event: InspectRequested) -> None:
        self.messages.append(event)

    def on_filter_requested(self, event: FilterRequested) -> None:
        self.messages.append(event)

    @property
    def lines(self) -> list[str]:
        """The lines of the list, without its band, its cursor and its scroll bar."""
        strips = self.screen._compositor.render_strips()[1:]
        return [strip.text[1:].rstrip(BAR) for strip in strips]

    @property
    def band(self) -> str:
        """The band above the lines."""
        return self.screen._compositor.render_strips()[0].text

    @property
    def notices(self) -> list[str]:
        """The notifications so far."""
        return [notice.message for notice in self._notifications]


Steps = Callable[[ListApp, Pilot[None]], Awaitable[None]]


def show_list(shown: ListView[Any], steps: Steps, size: tuple[int, int] = (100, 20)) -> None:
    """Show a list alone and run some steps on it."""

    async def run() -> None:
        app = ListApp(shown)
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())


def look(shown: ListView[Any]) -> None:
    """Make a list show the current rows at once, even if it has just done so."""
    shown.pause(False)
    shown.show()


async def enter(app: ListApp, pilot: Pilot[None]) -> Message | None:
    """The message that Enter posts on the cursor's row."""
    app.messages.clear()
    app.shown.enter()
    await pilot.pause()
    return app.messages[0] if app.messages else None


def happened(model: BoardModel, count: int, first: int = 0) -> None:
    """Add this many tasks, one a second."""
    for n in range(first, first + count):
        model.note(event("add", f"t{n}", "", f"t{n}.available", "ada@h", ago=-n))
