"""A few styled lines, as high as their number."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from dibs_tui.model.rows import EMPTY, Row, plain
from dibs_tui.widgets.looks import strip_of


class Lines(Widget):
    """Lines that do not scroll; `put` changes them."""

    DEFAULT_CSS = "Lines { height: auto; width: 1fr; }"

    def __init__(self, *, id: str | None = None, ground: str = "raise") -> None:
        super().__init__(id=id)
        self.lines: Sequence[Row] = ()
        """The shown lines; set by `put` only."""
        self._ground = ground

    @property
    def text(self) -> str:
        """The shown text."""
        return "\n".join(map(plain, self.lines))

    def put(self, lines: Sequence[Row]) -> None:
        """Show these lines."""
        if lines != self.lines:
            layout = len(lines) != len(self.lines)
            self.lines = lines
            self.display = bool(lines)
            self.refresh(layout=layout)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row for each line."""
        return len(self.lines)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        line = self.lines[y] if y < len(self.lines) else EMPTY
        return strip_of(self.app, line, self.size.width, self._ground)
