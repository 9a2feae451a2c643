"""One line of a table: a task with everything that its cells need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.text.glyphs import STATES

if TYPE_CHECKING:
    from dibs import Entry, Task

GLYPHS = {state: glyph for state, (glyph, _) in STATES.items()}
"""The glyph of each state, unique so that no state depends on colour alone."""
URGENCY = {
    word: n
    for n, word in enumerate(
        (
            "asked",
            "stale",
            "failed",
            "late",
            "claimed",
            "held",
            "available",
            "later",
            "free",
            "done",
        )
    )
}


class TaskLine(NamedTuple):
    """One task as a table shows it."""

    task: Task
    entry: Entry
    state: str
    """The state of the task, or `late` for a claim whose beat is overdue, or `gone`."""
    id: str
    """The id, safe for a terminal."""
    verdict: str
    reason: str
    changed: bool
    """Whether the task changed since the last key."""
    age_prefix: str = ""
    """`≥` if the ages may be higher because the board's clock cannot be read."""
    usual: str = ""
    """How long its kind of task usually takes, if this claim takes unusually long."""
    took: float | None = None
    """How many seconds its last claim took, of a task that ended."""
    overdue: bool = False
    """Whether an available task has waited for too long."""
    fold: str = ""
    """`closed` or `open` for the line of many tasks, `member` for one of them below it."""
    alike: bool = False
    """Whether a member of a fold has the same evidence as the line above it."""
