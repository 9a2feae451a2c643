"""Why the tasks of a board failed last: from the log's past, and from what happens."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.reasons import FAILURES, lost_host, may_have_reason
from dibs.model.task import DONE
from dibs_tui.model.filter_terms import about_reason
from dibs_tui.text.ages import many

if TYPE_CHECKING:
    from dibs import Event, Holder, Task

VARIES = "#"
"""Stands for a number or an address in which the reasons of one cause differ."""
PARKED = "parked"
"""The reason of a parking without one."""
_LEAST_PRUNED = 1000
_LONG = 200
_without_exit = re.compile(r"^exit \d{1,3}: ").sub
_find_number = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{6,}\b"
    r"|(?:[0-9a-fA-F]{1,4}:){2,}[0-9a-fA-F:]*"
    r"|\d+(?:[.:]\d+)*"
)
"""Addresses of memory and of hosts, UUIDs, hexadecimal numbers of some length, other numbers."""


class LastFailure(NamedTuple):
    """When and where the last attempt at a task failed."""

    at: float
    """Unix seconds on the board's clock."""
    host: str
    """The host of the worker; empty if it is not known."""
    owner: str
    parked: bool = False
    """Whether a person decided so."""
    pattern: str = ""
    """What failures of the same cause have in common; empty without a reason."""


def why_incomplete(unread: int, terms: str) -> str:
    """Why rows that match a filter may be missing, so that it stands for no act; empty if none."""
    if not unread or not about_reason(terms):
        return ""
    count = "1 reason is" if unread == 1 else f"{many(unread)} reasons are"
    return f"locked: {count} not read yet, so rows that match may be missing; wait a moment"


class LastReasons:
    """The last reason of each id, and the tasks whose reasons are not read yet."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        """The reason of the last failure or parking, by id; `parked` if a parking has none."""
        self.failures: dict[str, LastFailure] = {}
        """When and where the last attempt failed, by id; the same ids as in `texts`."""
        self.unread: dict[str, Task] = {}
        """The tasks that may have a reason which is not read yet, by id."""
        self.reading = False
        """Whether the log is still searched for earlier reasons."""
        self.prune_at = _LEAST_PRUNED
        """From so many reasons on, those of ids that are gone are looked for."""

    def begin(self, tasks: Mapping[str, Task]) -> None:
        """The log is searched from now on: no reason is certain before it was read."""
        self.reading = True
        self.unread = {task.id: task for task in tasks.values() if may_have_reason(task)}

    def end(self) -> Collection[Task]:
        """The log has nothing more: what was not found has no reason; the tasks concerned."""
        self.reading = False
        left, self.unread = self.unread, {}
        for ident in left:
            self.forget(ident)
        return left.values()

    def went(self, task: Task) -> None:
        """A name is gone."""
        known = self.unread.get(task.id)
        if known is not None and known.name == task.name:
            del self.unread[task.id]

    def came(self, task: Task) -> None:
        """A name is new."""
        if self.reading and may_have_reason(task) and task.id not in self.texts:
            self.unread[task.id] = task

    def note(self, event: Event, holder: Holder | None) -> None:
        """An event that says why its task is not done, or that it is done.

        It replaces the reason of its id, also by none: the earlier one belongs to another failure.
        """
        self.unread.pop(event.id, None)
        self.forget(event.id)
        parked = event.verb == "park"
        reason = event.reason or (PARKED if parked else "")
        if reason and event.verb in FAILURES:
            before, lost = event.before, lost_host(event)
            host = holder.host if holder is not None else lost.host if lost is not None else ""
            owner = before.owner if before is not None else ""
            self.texts[event.id] = reason
            pattern = sys.intern(pattern_of(reason))  # thousands may have the same
            self.failures[event.id] = LastFailure(event.at, host, owner, parked, pattern)

    def note_past(self, event: Event) -> Task | None:
        """An event from before the first one that was reported; the task whose reason it has."""
        task = self.unread.get(event.id)
        if task is not None:
            self.note(event, None)
        return task

    def about(self, ident: str) -> bool:
        """Whether the id has a reason, or may have one."""
        return ident in self.texts or ident in self.unread

    def forget(self, ident: str) -> None:
        """The id has no reason."""
        self.texts.pop(ident, None)
        self.failures.pop(ident, None)

    def prune(self, tasks: Mapping[str, Task]) -> None:
        """Forget the ids that are not on the board."""
        kept = {task.id for task in tasks.values() if task.state != DONE}
        for ident in [ident for ident in self.texts if ident not in kept]:
            self.forget(ident)
        self.prune_at = max(_LEAST_PRUNED, 2 * len(self.texts))


def last_line(reason: str) -> str:
    """The last line of a reason that is not blank; failures are compared by it."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return lines[-1][:_LONG] if lines else ""


def pattern_of(reason: str) -> str:
    """What failures with one cause have in common: the last line without exit code and numbers."""
    return _find_number.sub(VARIES, _plain(reason))


def common_line(reasons: Iterable[str]) -> str:
    """The last line of reasons with one pattern, with `VARIES` for each number that differs."""
    lines = [_plain(reason) for reason in dict.fromkeys(reasons)]
    numbers = zip(*map(_find_number.findall, lines), strict=False)
    same = iter([found[0] if len({*found}) == 1 else VARIES for found in numbers])
    return _find_number.sub(lambda _: next(same, VARIES), lines[0])


def _plain(reason: str) -> str:
    line = last_line(reason)
    return _without_exit("", line) or line
