"""The names that wait for their time: who makes them, and who finds them due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dibs.files import moves
from dibs.model import delays, names
from dibs.model.errors import DibsError, NotDue
from dibs.model.safe_text import command
from dibs.model.sample import SECOND
from dibs.model.task import LATER, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

_END = f".{LATER}"
_MARGIN = SECOND // 100
"""How far the time of a touched file may be behind the clock: one tick of the kernel."""


class MadeDue(NamedTuple):
    """The result of one pass that makes due tasks available."""

    tasks: tuple[Task, ...]
    next: float | None
    """Seconds until the next task is due; None if none waits."""
    refused: tuple[str, ...]
    """One line for each due task that could not be made available."""


def later_name(
    store: BoardFiles, task: Task, attempts: int, delay: float, since: int | None = None
) -> str:
    """The name of a task that starts `delay` seconds after `since`, or after now.

    Where the clock cannot be read it starts at once: a delay is only advice.
    """
    stamp = task.stamp._replace(attempts=attempts, not_before=0)
    if delay > 0:
        now, exact = store.clock.now_or_newest(0)
        if exact:
            at = delays.start_after(now.fs if since is None else since, delay, now.fs)
            stamp = stamp._replace(not_before=at)
    return names.unclaimed_name(task.id, stamp)


def available_name(task: Task) -> str:
    """The name of a later task once it is due."""
    return names.unclaimed_name(task.id, task.stamp._replace(not_before=0))


def due_of(store: BoardFiles, listed: Iterable[str]) -> list[Task]:
    """The due tasks among these names; notes for waiters when the next one is due.

    The clock is read only if there is a later task.
    """
    later = [task for task in map(names.read, listed) if task is not None and task.state == LATER]
    if not later:
        store.due_at = 0
        return []
    now, exact = store.clock.now_or_newest(0)
    if not exact:
        store.due_at = 0
        return []
    due = [task for task in later if delays.is_due(task, now.fs)]
    waits = [task for task in later if not delays.is_due(task, now.fs)]
    wait = delays.next_start(waits, now.fs)
    store.due_at = 0 if wait is None else now.boot + int(wait * SECOND) + _MARGIN
    return due


def make_due(store: BoardFiles, listed: Iterable[str]) -> MadeDue:
    """Make every due task of a listing available, for workers that look only for that."""
    made: list[Task] = []
    refused: list[str] = []
    for task in due_of(store, [name for name in listed if name.endswith(_END)]):
        try:
            moved = moves.shift(store, task, available_name(task), "due")
            made += [moved] if moved is not None else []
        except DibsError as error:
            refused.append(f"{task.name}: {error}")
    left = store.due_at - store.port.boottime() if store.due_at else None
    return MadeDue(tuple(made), None if left is None else max(0, left) / SECOND, tuple(refused))


def refuse_early(store: BoardFiles, task: Task) -> None:
    """Raise `NotDue` if a later task that was asked for by its id starts only later."""
    now, exact = store.clock.now_or_newest(0)
    if not exact or delays.is_due(task, now.fs):
        return
    left = (task.not_before * SECOND - now.fs) / SECOND
    store.due_at = now.boot + int(left * SECOND) + _MARGIN
    raise NotDue(
        f"{task.id!r} starts in {left:.0f} s: wait, or start it now with "
        f"`{command('requeue', task.name)}`",
        task,
        "",
        left,
        "",
    )
