"""Resolve each line of a pasted list of tasks to one exact name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.files.board_index import BoardIndex
from dibs.model import names
from dibs.model.answers import Resolved
from dibs.model.errors import BadName, NotExact
from dibs.model.task import ASKED, DONE, FAILED, LATER, describe

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.task import Task

_NO_NAME = (
    "it is neither an exact name nor an id: give one per line, "
    "such as the last word of each line of `dibs ls state=failed`"
)


def resolve(store: BoardFiles, text: str) -> list[Resolved]:
    """The task of each line that can be requeued; blank lines, comments and repeats are left out.

    An exact name is passed on unchecked: the act itself finds out whether it still exists.
    """
    given = names.lines_of(names.check_text("a list", text))
    found = _by_id(store, {line for line in given if not _exact(line)})
    each = [_of_id(line, found[line]) if line in found else Resolved(line, line) for line in given]
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


def _exact(text: str) -> bool:
    try:
        names.exact(text)
    except NotExact:
        return False
    return True


def _by_id(store: BoardFiles, wanted: set[str]) -> dict[str, list[Task]]:
    """Every name of these ids; lists twice if one has none, because a listing can miss a name."""
    found: dict[str, list[Task]] = {ident: [] for ident in wanted}
    view = BoardIndex(store)
    for _ in range(2 if wanted else 0):
        view.scan()
        for tasks in found.values():
            tasks.clear()
        for task in view.tasks.values():
            if task.id in wanted:
                found[task.id].append(task)
        if all(found.values()):
            break
    return found


def _of_id(ident: str, found: list[Task]) -> Resolved:
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
