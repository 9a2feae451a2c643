"""One line of parts that can be clicked, each with an action."""

from __future__ import annotations

from collections.abc import Iterable

from textual.events import Click
from textual.message import Message

from dibs_tui.model.rows import Row, plain
from dibs_tui.text.safe import width
from dibs_tui.widgets.page import Page


class Ribbon(Page, can_focus=False):
    """A line of tabs or keys. Not named `Bar`, because Textual's progress bar styles that name."""

    DEFAULT_CSS = "Ribbon { height: 1; scrollbar-size: 0 0; overflow: hidden hidden; }"

    class Clicked(Message):
        """A part was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None, ground: str = "bar") -> None:
        super().__init__(id=id, ground=ground)
        self._places: list[tuple[int, int, str]] = []

    def put_parts(self, parts: Iterable[tuple[str, Row]]) -> None:
        """Show these parts, each with its action."""
        line: Row = ()
        self._places = []
        for action, part in parts:
            start = width(plain(line))
            line += part
            self._places.append((start, width(plain(line)), action))
        self.put([line])

    def on_click(self, event: Click) -> None:
        """Report the action of the part under the pointer."""
        for start, end, action in self._places:
            if start <= event.x < end:
                self.post_message(self.Clicked(action))
