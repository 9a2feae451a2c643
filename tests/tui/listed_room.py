"""A list on a screen of its own, driven by a pilot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from dibs_tui.config import Config
from dibs_tui.messages import FilterAsked, Inspected
from dibs_tui.model.board import BoardModel
from dibs_tui.themes import THEMES
from dibs_tui.widgets.listing import Shown
from tests.tui.listed import event

CONFIG = Config(still=0)
BAR = " ▁▂▃▄▅▆▇█"
"""What the scroll bar is made of."""


class Room(App[None]):
    """One list on a screen of its own; what it says is written down."""

    def __init__(self, shown: Shown[Any]) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.shown = shown
        self.told: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.shown

    def on_mount(self) -> None:
        self.shown.focus()
        self.shown.show()

    def on_inspected(self, event: Inspected) -> None:
        self.told.append(event)

    def on_filter_asked(self, event: FilterAsked) -> None:
        self.told.append(event)

    @property
    def lines(self) -> list[str]:
        """What stands in the list, without its frame and its scroll bar."""
        strips = self.screen._compositor.render_strips()
        return [strip.text[1:-1].rstrip(BAR) for strip in strips][1:-1]

    @property
    def notices(self) -> list[str]:
        """What was notified."""
        return [notice.message for notice in self._notifications]


Steps = Callable[[Room, Pilot[None]], Awaitable[None]]


def room(shown: Shown[Any], steps: Steps, size: tuple[int, int] = (100, 20)) -> None:
    """Show a list alone and do something with it."""

    async def run() -> None:
        app = Room(shown)
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())


def look(shown: Shown[Any]) -> None:
    """Let a list take over what there is at once, however lately it did."""
    shown.pause(False)
    shown.show()


async def enter(app: Room, pilot: Pilot[None]) -> Message | None:
    """What Enter on the cursor's line said."""
    app.told.clear()
    app.shown.enter()
    await pilot.pause()
    return app.told[0] if app.told else None


def happened(model: BoardModel, count: int, first: int = 0) -> None:
    """So many tasks were added, one a second."""
    for n in range(first, first + count):
        model.note(event("add", f"t{n}", "", f"t{n}.available", "ada@h", ago=-n))
