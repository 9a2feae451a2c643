"""A list of tasks as people paste it: each line resolved to the one exact name that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs import names
from dibs.errors import BadName, NotExact
from dibs.names import DONE, FAILED
from dibs.store import tell
from dibs.view import View

if TYPE_CHECKING:
    from dibs.names import Task
    from dibs.store import Store


class Resolved(NamedTuple):
    """What one line of a list means; the line is as foul as whoever wrote it."""

    given: str
    name: str = ""
    """The exact name to act on; empty where there is none."""
    why: str = ""
    """Why there is none, in words."""
    now: tuple[Task, ...] = ()
    """What carries that id instead; empty for an unknown one."""


def resolve(store: Store, text: str) -> list[Resolved]:
    """The failed or done task that each line means; blank lines, comments and repeats are left out.

    An exact name stands for itself, whether it is there or not: the act finds that out.
    """
    lines = dict.fromkeys(line.strip(" \t\r") for line in text.removeprefix("\ufeff").split("\n"))
    given = [line for line in lines if line and not line.startswith("#")]
    found = _by_id(store, {line for line in given if not _exact(line)})
    each = [_of_id(line, found[line]) if line in found else Resolved(line, line) for line in given]
    first: dict[str, Resolved] = {}
    for line in each:
        first.setdefault(_claim(line), line)
    return [_once(line, first[_claim(line)]) for line in each]


def _claim(line: Resolved) -> str:
    """What two lines share that stand for one task, in whichever folder it is given."""
    return line.name.rpartition("/")[2]


def _once(line: Resolved, first: Resolved) -> Resolved:
    """The line itself, or why there is nothing more to do for one that repeats another."""
    tasks = [t for t in map(names.read_any, (line.name, first.name)) if t is not None]
    if not line.name or line is first or not tasks:
        return line
    why = f"it is the same task as {first.given!a}, further up in the list"
    return Resolved(line.given, why=why, now=tuple(tasks[:1]))


def _exact(text: str) -> bool:
    try:
        names.exact(text)
    except NotExact:
        return False
    return True


def _by_id(store: Store, wanted: set[str]) -> dict[str, list[Task]]:
    """Every name of these ids; listed again where one has none, because a listing can miss it."""
    found: dict[str, list[Task]] = {ident: [] for ident in wanted}
    view = View(store)
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
    ended = [task for task in found if task.state in (DONE, FAILED)]
    if not found:
        try:
            names.escape(ident)
        except BadName as error:
            return Resolved(ident, why=str(error))
        return Resolved(ident, why="no task of that id is on this board")
    if len(ended) < len(found):
        return Resolved(ident, why=f"it is on the board already; {tell(now)}", now=now)
    if len(ended) > 1:
        return Resolved(ident, why=f"give the exact name of one of them; {tell(now)}", now=now)
    return Resolved(ident, ended[0].name)
