"""Resolve each line of a pasted list of tasks to one exact name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.answers import Resolved
from dibs.model.errors import BadName, NotExact
from dibs.model.task import ASKED, DONE, FAILED, LATER, describe

if TYPE_CHECKING:
    from dibs.model.task import Task

_NO_NAME = (
    "it is neither an exact name nor an id: give one per line, "
    "such as the `claim` of each line of `dibs --json ls state=failed`"
)


def resolve(text: str, by_id: Callable[[set[str]], Mapping[str, Sequence[Task]]]) -> list[Resolved]:
    """The task of each line that can be requeued; blank lines, comments and repeats are left out.

    An exact name is passed on unchecked: the act itself finds out whether it still exists.
    `by_id` finds what has these ids now.
    """
    given = names.lines_of(names.check_text("a list", text))
    found = by_id({line for line in given if not _exact(line) or _may_be_id(line)})
    each = [
        _of_id(line, found[line]) if found.get(line) or not _exact(line) else Resolved(line, line)
        for line in given
    ]
    first: dict[str, Resolved] = {}
    for line in each:
        first.setdefault(_claim(line), line)
    return [_once(line, first[_claim(line)]) for line in each]


def _claim(line: Resolved) -> str:
    """The task of a line without its folder, which is the same for two lines on one task."""
    return line.name.rpartition("/")[2]


def _once(line: Resolved, first: Resolved) -> Resolved:
    """The line itself, or the reason why it is skipped if it repeats another one."""
    tasks = [t for t in map(names.read_any, (line.name, first.name)) if t is not None]
    if not line.name or line is first or not tasks:
        return line
    why = f"it is the same task as {first.given!r} on an earlier line"
    return Resolved(line.given, why=why, now=tuple(tasks[:1]))


def _may_be_id(line: str) -> bool:
    """Whether an exact name is none that can be requeued, so that it may be an id that looks so."""
    task = names.read_any(line)
    return task is None or task.state not in (DONE, FAILED, LATER, ASKED)


def _exact(text: str) -> bool:
    try:
        names.exact(text)
    except NotExact:
        return False
    return True


def _of_id(ident: str, found: Sequence[Task]) -> Resolved:
    now = tuple(found)
    ended = [task for task in found if task.state in (DONE, FAILED, LATER, ASKED)]
    if not found:
        try:
            names.escape(ident)
        except BadName:
            return Resolved(ident, why=_NO_NAME)
        if "  " in ident:
            return Resolved(ident, why=_NO_NAME)
        return Resolved(ident, why="this board has no task with that id")
    if len(ended) < len(found):
        state = next(task.state for task in found if task not in ended)
        why = f"there is nothing to requeue: it is {state}; {describe(now)}"
        return Resolved(ident, why=why, now=now)
    if len(ended) > 1:
        return Resolved(ident, why=f"give the exact name of one of them; {describe(now)}", now=now)
    return Resolved(ident, ended[0].name)
