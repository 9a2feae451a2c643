"""Lines of strips of which only the cells that differ are sent to the terminal again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Canvas(Widget):
    """Shows the lines that it was given last; a screen that stands still costs nothing."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Strip] = ()

    def put(self, lines: Sequence[Strip]) -> None:
        """Show these lines."""
        before, self._lines = self._lines, lines
        for y in range(self.size.height):
            start, end = _differing(_line(before, y), _line(lines, y))
            if start < end:
                self.refresh(Region(start, y, end - start, 1))

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        base = self.rich_style
        return _line(self._lines, y).apply_style(base).adjust_cell_length(self.size.width, base)


def _line(lines: Sequence[Strip], y: int) -> Strip:
    return lines[y] if y < len(lines) else Strip.blank(0)


def _differing(one: Strip, two: Strip) -> tuple[int, int]:
    """The cells between which two lines differ."""
    if one == two:
        return 0, 0
    ours, theirs = _cells(one), _cells(two)
    if len(ours) != len(theirs):
        return 0, max(len(ours), len(theirs))
    places = [n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    return (places[0], places[-1] + 1) if places else (0, 0)


def _cells(strip: Strip) -> list[tuple[object, ...]]:
    """Each cell of a line; a wide character takes two."""
    cells: list[tuple[object, ...]] = []
    for text, style, _ in strip:
        for char in text:
            width = Segment(char).cell_length
            cells += [(char, style, n) for n in range(width)]
    return cells
