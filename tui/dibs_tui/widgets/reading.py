"""The text of a dialog: as long as it likes, and moved by keys while the focus is elsewhere."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

_WIDTH, _BESIDE, _AROUND = 92, 7, 10
"""The dialog's own width, and the columns and lines of it that are not text."""
_LEAST = 4
"""Lines that the text has at least, before what stays below it gives way."""


class Reading(VerticalScroll):
    """Laid out anew only for another text; the screen is `-long` when the text has no room."""

    def __init__(self, text: str) -> None:
        super().__init__(id="reading", can_focus=False)
        self._text = Text(text)
        self._below = 0
        """Lines of what must stay in sight below it."""

    def compose(self) -> ComposeResult:
        """The text."""
        yield Static(self._text, id="act-text")

    def show(self, text: Text, below: Text | None = None) -> Text:
        """Another text, or the same, and what stays in sight below it: all that has room there.

        What has none stands at the beginning of the text instead; returns what is left below.
        """
        below = below if below is not None else Text()
        lines = self._lines(below)
        if lines + _AROUND + _LEAST > self.app.size.height:
            text, below, lines = Text("\n").join([below, text]), Text(), 0
        if (text, lines) != (self._text, self._below):
            self._text, self._below = text, lines
            static = self.query_one(Static)
            static.update(text)
            # A layout that was still owed when the text came takes the old one's height.
            self.call_after_refresh(static.refresh, layout=True)
            self.fit()
        return below

    def _lines(self, text: Text) -> int:
        width = min(_WIDTH, self.app.size.width) - _BESIDE
        return len(text.wrap(self.app.console, max(20, width))) if text else 0

    def fit(self) -> None:
        """Take the whole screen for what is longer, and say that it can be moved."""
        lines = self._lines(self._text) + self._below
        long = lines + _AROUND > self.app.size.height
        self.screen.set_class(long, "-long")
        assert isinstance(self.parent, Widget)
        self.parent.border_subtitle = Content("↑ ↓ PgUp PgDn: more" if long else "")

    def move(self, by: int) -> None:
        """Move it by so many lines."""
        self.scroll_relative(y=by, animate=False)
