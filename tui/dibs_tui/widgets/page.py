"""A page of lines that can be scrolled; only those in the window are ever drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dibs_tui.model.rows import EMPTY, Row
from dibs_tui.themes import STATES

_LOOKS = ("text", "muted", "strong", "key", "heading", "chosen")


class Page(ScrollView):
    """Lines with the names of their looks."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"page--{look}" for look in (*_LOOKS, *STATES)}
    DEFAULT_CSS = """
    Page { background: $background; overflow: hidden scroll;
        scrollbar-size-vertical: 1; scrollbar-color: $panel; scrollbar-color-hover: $muted;
        scrollbar-background: $background; }
    Page > .page--text { color: $foreground; background: $background; }
    Page > .page--muted { color: $muted; }
    Page > .page--strong { text-style: bold; }
    Page > .page--key { color: $primary; }
    Page > .page--heading { color: $primary; text-style: bold; }
    Page > .page--chosen { color: $background; background: $primary; text-style: bold; }
    Page:nocolor > .page--chosen { text-style: bold reverse; }
    """ + "".join(f"Page > .page--{state} {{ color: $state-{state}; }}\n" for state in STATES)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Row] = ()
        """What is shown; given by `put` only."""
        self._styles: dict[str, Style] = {}

    @property
    def cells(self) -> int:
        """How wide a line may be."""
        return max(8, self.scrollable_content_region.width)

    @property
    def text(self) -> str:
        """What the page says."""
        return "\n".join("".join(text for text, _ in line) for line in self.lines)

    def put(self, lines: Sequence[Row]) -> None:
        """Show these lines; the place in them stays."""
        before, self.lines = self.lines, lines
        self._lengthen(max(len(lines), self.size.height))
        top = int(self.scroll_y)
        window = range(top, top + self.size.height)
        changed = [n - top for n in window if _line(lines, n) != _line(before, n)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _lengthen(self, length: int) -> None:
        """Another length lays out nothing anew, for the scroll bar has its place in any case."""
        self.set_reactive(Page.virtual_size, Size(self.cells, length))
        self.vertical_scrollbar.window_virtual_size = length
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        base, line = self._look("text"), _line(self.lines, int(self.scroll_y) + y)
        segments = [Segment(text, base + self._look(look)) for text, look in line]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def notify_style_update(self) -> None:
        """Another theme."""
        self._styles.clear()
        super().notify_style_update()

    def _look(self, name: str) -> Style:
        if name not in self._styles:
            partial = name != "text"
            self._styles[name] = self.get_component_rich_style(f"page--{name}", partial=partial)
        return self._styles[name]


def _line(lines: Sequence[Row], number: int) -> Row:
    return lines[number] if number < len(lines) else EMPTY
