"""One line of a table: a task with everything that its cells need, made when it is painted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dibs import Entry, Task

GLYPHS = {
    "available": "○",
    "claimed": "●",
    "held": "◆",
    "late": "◐",
    "stale": "▲",
    "failed": "✗",
    "done": "✓",
    "free": "◇",
    "gone": "·",
}
"""Every state is told by a glyph, a word and a colour: no two share a glyph."""
URGENCY = {
    word: n
    for n, word in enumerate(("stale", "failed", "claimed", "held", "available", "free", "done"))
}


class Line(NamedTuple):
    """What one line shows."""

    task: Task
    entry: Entry
    state: str
    """The board's word, or `late` for a claim that misses its own cadence, or `gone`."""
    id: str
    """The id as a terminal may see it."""
    verdict: str
    reason: str
    flash: bool
    """It changed a moment ago."""
    least: str = ""
    """What stands before ages that are only the least that they can be."""
