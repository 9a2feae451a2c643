"""Failures with one cause: tasks whose last attempts ended with the same line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.task import FAILED, LATER
from dibs_tui.text.ages import clock, counted

if TYPE_CHECKING:
    from dibs import Task
    from dibs.model.filters import Test
    from dibs_tui.model.board import BoardModel

TOGETHER = 3
"""From so many tasks on, failures with the same last line are one problem."""
_WORDS, _LONG = 8, 200


class LastFailure(NamedTuple):
    """When and where the last attempt at a task failed."""

    at: float
    """Unix seconds on the board's clock."""
    host: str
    """The host of the worker; empty if it is not known."""
    owner: str


class SharedFailure(NamedTuple):
    """What many failed tasks have in common."""

    line: str
    """The last line of their reasons; not cleaned."""
    tasks: tuple[Task, ...]
    since: float
    """When the first of them failed; 0 if that is not known."""
    where: str
    """On how many hosts, or of how many owners if no host is known."""

    @property
    def ended(self) -> int:
        """How many are failed; the others are later, and are tried again."""
        return sum(task.state == FAILED for task in self.tasks)

    @property
    def text(self) -> str:
        """How many are later beside failed ones, since when, and on how many hosts or owners."""
        waits = len(self.tasks) - self.ended
        parts = [self.line]
        parts += [f"{waits:,} later"] if 0 < waits < len(self.tasks) else []
        parts += [f"since {clock(self.since)}"] if self.since else []
        parts += [self.where] if self.where else []
        return " · ".join(parts)

    @property
    def terms(self) -> str:
        """The filter that shows them: the line's first plain words are in their reasons."""
        words = [w for w in self.line.split() if w.isascii() and w.isprintable()]
        return " ".join(f"reason~{word}" for word in words[:_WORDS])


def last_line(reason: str) -> str:
    """The last line of a reason that is not blank; failures are compared by it."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return lines[-1][:_LONG] if lines else ""


def shared_failures(model: BoardModel, test: Test | None) -> Iterator[SharedFailure]:
    """The groups of failed and later tasks with the same last line."""
    alike: dict[str, list[Task]] = {}
    for task in model.failing.values():
        if task.state in (FAILED, LATER) and (line := last_line(model.reasons.get(task.id, ""))):
            alike.setdefault(line, []).append(task)
    for line, tasks in alike.items():
        shown = tasks if test is None else [task for task in tasks if test(model.entry(task))]
        if len(shown) >= TOGETHER:
            yield _shared(line, shown, model.failures)


def _shared(line: str, tasks: list[Task], known: Mapping[str, LastFailure]) -> SharedFailure:
    found = [known[task.id] for task in tasks if task.id in known]
    since = min((failure.at for failure in found), default=0.0)
    return SharedFailure(line, tuple(tasks), since, _where(found))


def _where(found: list[LastFailure]) -> str:
    """The number of hosts; of owners only if no host is known, since a host has many of them."""
    hosts = {failure.host for failure in found if failure.host}
    owners = {failure.owner for failure in found if failure.owner}
    if hosts:
        return counted(len(hosts), "host")
    return counted(len(owners), "owner") if owners else ""
