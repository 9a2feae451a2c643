"""A widget of strips that sends only changed cells to the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dibs_tui.widgets.plain_lines import plain_lines


class Canvas(Widget):
    """Shows the given lines; an unchanged screen costs nothing."""

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

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the screen in this region."""
        return plain_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        line, cells = _line(self._lines, y), self.size.width
        if line.cell_length == cells:
            return line
        return line.adjust_cell_length(cells, self.rich_style)


def _line(lines: Sequence[Strip], y: int) -> Strip:
    return lines[y] if y < len(lines) else Strip.blank(0)


def _differing(one: Strip, two: Strip) -> tuple[int, int]:
    """The first and the last differing cell of two lines."""
    if one is two or one == two:
        return 0, 0
    old, new = list(one), list(two)
    while old and new and old[-1] == new[-1]:  # most of a row stays: a clock in it does not
        del old[-1], new[-1]
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    start = sum(segment.cell_length for segment in old[:same])
    ours, theirs = _cells(old[same:]), _cells(new[same:])
    if len(ours) != len(theirs):
        return 0, max(one.cell_length, two.cell_length)
    places = [n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    return (start + places[0], start + places[-1] + 1) if places else (0, 0)


def _cells(segments: Iterable[Segment]) -> list[tuple[object, ...]]:
    """The cells of a part of a line; a wide character takes two."""
    cells: list[tuple[object, ...]] = []
    for text, style, _ in segments:
        if text.isascii():
            cells += [(char, style, 0) for char in text]
            continue
        for char in text:
            width = Segment(char).cell_length
            cells += [(char, style, n) for n in range(width)]
    return cells
