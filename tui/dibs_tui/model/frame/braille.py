"""Graphs of dots: two values in a cell, four heights in a row."""

from __future__ import annotations

from collections.abc import Sequence

DOTS = 4
"""The heights of one row."""
LEAST = 4
"""The least value at the top of a graph, so that one task does not look like a peak."""
_LEFT = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_BLANK = 0x2800
_CELLS = [[chr(_BLANK | left | right) for right in _RIGHT] for left in _LEFT]
"""The cell of two heights."""
_CELLS[0][0] = " "

Value = float | None
"""None where nothing is known."""


def top_of(*series: Sequence[Value]) -> float:
    """The value at the top of graphs on one common scale."""
    return max((v for values in series for v in values if v is not None), default=0) or LEAST


def graph(values: Sequence[Value], top: float, rows: int = 1) -> list[str]:
    """The rows of a filled graph from the top; any value above 0 has a dot."""
    most = rows * DOTS
    heights = [_height(value, max(top, LEAST), most) for value in values]
    heights += [0] * (len(heights) % 2)
    pairs, found = list(zip(heights[::2], heights[1::2], strict=True)), []
    for floor in range(most - DOTS, -1, -DOTS):
        dots = [max(0, min(DOTS, height - floor)) for height in range(most + 1)]
        found.append("".join([_CELLS[dots[left]][dots[right]] for left, right in pairs]))
    return found


def _height(value: Value, top: float, most: int) -> int:
    if not value or value < 0:
        return 0
    return min(most, max(1, round(value * most / top)))
