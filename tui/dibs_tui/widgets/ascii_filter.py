"""Draws the complete screen in ASCII, for terminals and fonts without its glyphs."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from dibs_tui.text.glyphs import ascii_of


class AsciiFilter(LineFilter):
    """Replaces glyphs wherever they are drawn, frames and graphs too, cell by cell."""

    def __init__(self, *, strict: bool) -> None:
        """`strict`: the terminal shows nothing but ASCII, so other text becomes `?`."""
        super().__init__()
        self._strict = strict

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same cells in ASCII."""
        return [
            segment
            if segment.text.isascii()
            else Segment(ascii_of(segment.text, strict=self._strict), segment.style)
            for segment in segments
        ]
