"""A scrolling page of styled lines that draws only those in the window."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dibs_tui.model.rows import EMPTY, Row, plain
from dibs_tui.widgets.looks import strip_of

_THUMB, _RAIL = "┃", "│"
"""The scroll bar's moving part, and the line that it moves on."""


class Page(ScrollView):
    """A page of lines; `put` changes them."""

    DEFAULT_CSS = """
    Page { background: $background; color: $foreground; overflow: hidden scroll;
        scrollbar-size: 0 0; }
    .-troubled Page { color: $faint; }
    """

    def __init__(self, *, id: str | None = None, ground: str = "bg") -> None:
        super().__init__(id=id)
        self.lines: Sequence[Row] = ()
        """The shown lines; set by `put` only."""
        self._ground = ground

    @property
    def cells(self) -> int:
        """The width for a line, beside the scroll bar."""
        return max(8, self.size.width - 1)

    @property
    def overflows(self) -> bool:
        """Whether a part of the lines is out of sight."""
        return len(self.lines) > self.size.height

    @property
    def text(self) -> str:
        """The text of the page."""
        return "\n".join(map(plain, self.lines))

    def put(self, lines: Sequence[Row]) -> None:
        """Show these lines and keep the scroll position."""
        before, self.lines = self.lines, lines
        self._lengthen(max(len(lines), self.size.height))
        top = int(self.scroll_y)
        window = range(top, top + self.size.height)
        changed = [n - top for n in window if _line(lines, n) != _line(before, n)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _lengthen(self, length: int) -> None:
        """Change the length without a layout: the scroll bar is drawn with the lines."""
        if length != self.virtual_size.height:
            self.set_reactive(Page.virtual_size, Size(self.cells, length))
            self.refresh()
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        faint = self.screen.has_class("-troubled")
        line = _line(self.lines, int(self.scroll_y) + y)
        cells, bar = self.size.width, self._bar(y)
        if not bar:
            return strip_of(self.app, line, cells, self._ground, faint=faint)
        found = strip_of(self.app, line, cells - 1, self._ground, faint=faint)
        look = "muted" if bar == _THUMB else "line"
        return Strip.join([found, strip_of(self.app, ((bar, look),), 1, self._ground)])

    def _bar(self, y: int) -> str:
        """The scroll bar on a line of the window; empty if everything is in sight."""
        height, length = self.size.height, len(self.lines)
        if not self.overflows or not height:
            return ""
        thumb = max(1, height * height // length)
        first = int(self.scroll_y) * (height - thumb) // max(1, length - height)
        return _THUMB if first <= y < first + thumb else _RAIL

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Draw the lines that are in the window now, and the scroll bar."""
        super().watch_scroll_y(old, new)
        self.refresh()


def _line(lines: Sequence[Row], number: int) -> Row:
    return lines[number] if number < len(lines) else EMPTY
