"""The text of an act from the log, and the plan that undoes a bulk act."""

from __future__ import annotations

from dibs import Event
from dibs.model.events import ON_BOARD
from dibs.model.names import read_any
from dibs_tui.acting.plan import ACTS, Act, Target
from dibs_tui.text.ages import clock
from dibs_tui.text.safe import clean

Step = tuple[Event, ...]
"""The events of one act: one for each task."""


def described(step: Step) -> str:
    """An act in a line: time, verb, task and user; and its reason in a second line."""
    event = step[0]
    reason = clean(event.reason.removeprefix(f"{event.by.partition(' ')[0]}:").strip())
    reason = reason if not reason or event.verb in ON_BOARD else f"reason: {reason}"
    return f"{brief(step)} by {clean(event.by)}" + (f"\n{reason}" if reason else "")


def brief(step: Step) -> str:
    """An act in a few words: time, verb and task."""
    event = step[-1]
    what = clean(event.id, 60) if len(step) == 1 else f"{len(step):,} tasks"
    what = "new claims" if event.verb in ON_BOARD else what
    return f"{clock(event.at)} {clean(event.verb)} of {what}"


def undo_plan(step: Step) -> tuple[Act, tuple[Target, ...]]:
    """The act and the targets that undo an act on many tasks."""
    tasks = ((read_any(event.dst), event) for event in step)
    targets = tuple(
        Target(task, task.name, f"→ {_state(event.src)}", "", None, event)
        for task, event in tasks
        if task is not None
    )
    return ACTS["undo"], targets


def _state(name: str) -> str:
    task = read_any(name)
    return task.state if task is not None else ""
