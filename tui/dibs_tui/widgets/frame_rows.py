"""Rows around the panels; only cells that read differently are sent, and parts can be clicked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.strip import Strip

from dibs_tui.model.frame.pieces import Piece, Pieces
from dibs_tui.text.safe import width
from dibs_tui.widgets.canvas import Canvas
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.messages import RunCommand

_FLAT = ("", "bg", "bar", "raise")
"""The grounds that need no mark where there are no colours."""


class FrameRows(Canvas):
    """Shows rows of pieces; a click on a piece runs its command."""

    DEFAULT_CSS = "FrameRows { height: 1; }"

    def __init__(self, *, id: str, ground: str = "bar") -> None:
        """`ground` is the ink behind everything that has no ground of its own."""
        super().__init__(id=id)
        self._ground = ground
        self._rows: Sequence[Pieces] = ()
        self._dim = False

    @property
    def text(self) -> str:
        """What the rows say."""
        return "\n".join("".join(piece.text for piece in row).rstrip() for row in self._rows)

    def show(self, rows: Sequence[Pieces]) -> None:
        """Show these rows; unchanged ones cost nothing."""
        if tuple(rows) != self._rows:
            self._rows = tuple(rows)
            self._draw()

    def dim(self, dim: bool) -> None:
        """Show everything in the faintest ink, or as it is: dim rows are not up to date."""
        if dim != self._dim:
            self._dim = dim
            self._draw()

    def _draw(self) -> None:
        self.put([self._strip(row) for row in self._rows])

    def _strip(self, row: Pieces) -> Strip:
        base = self._style(Piece("", "text"))
        strip = Strip([Segment(piece.text, self._style(piece)) for piece in row if piece.text])
        return strip.adjust_cell_length(self.app.size.width, base)

    def _style(self, piece: Piece) -> Style:
        ground = piece.ground or self._ground
        ink = "faint" if self._dim else piece.ink
        style = inks_of(self.app).style(ink, ground, bold=piece.bold)
        if piece.struck:
            style += _STRUCK
        return style + _REVERSED if self.app.no_color and ground not in _FLAT else style

    def on_click(self, event: Click) -> None:
        """Run the command of the piece under the pointer."""
        row = self._rows[event.y] if event.y < len(self._rows) else ()
        at = 0
        for piece in row:
            at += width(piece.text)
            if event.x < at:
                if piece.action:
                    self.post_message(RunCommand(piece.action))
                return

    def on_resize(self) -> None:
        """Draw the rows in the new width."""
        self._draw()

    def notify_style_update(self) -> None:
        """Draw the rows in the new theme."""
        super().notify_style_update()
        if self._rows:
            self.call_later(self._draw)


_STRUCK, _REVERSED = Style(strike=True), Style(reverse=True)
