"""Failures with one cause: tasks whose last attempts ended with the same line but for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.task import FAILED, LATER
from dibs_tui.model.last_reasons import VARIES, LastFailure, common_line
from dibs_tui.text.ages import clock, counted

if TYPE_CHECKING:
    from dibs import Task
    from dibs.model.filters import Test
    from dibs_tui.model.board import BoardModel

TOGETHER = 3
"""From so many tasks on, failures with the same last line are one problem."""
TIMES = "\u00d7"
_WORDS = 8
_SAMPLE = 50
"""So many tasks of a group say whether a number is the same in all of them."""


class SharedFailure(NamedTuple):
    """What many failed tasks have in common."""

    pattern: str
    """Their last line with `VARIES` for each number and address, which identifies the group."""
    line: str
    """Their last line with `VARIES` where they differ; not cleaned."""
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
        """How many are failed and how many later, if both; since when, on how many hosts."""
        waits = len(self.tasks) - self.ended
        mixed = 0 < waits < len(self.tasks)
        parts = [f"{self.ended:,} failed", f"{waits:,} later"] if mixed else []
        parts += [f"since {clock(self.since)}"] if self.since else []
        parts += [self.where] if self.where else []
        return " · ".join(parts)

    @property
    def terms(self) -> str:
        """The filter that shows them: the pattern's first plain words are in their reasons."""
        words = [w for w in self.pattern.split() if w.isascii() and w.isprintable()]
        words = [part for word in words if len(part := max(word.split(VARIES), key=len)) > 2]
        return " ".join(f"reason~{word}" for word in words[:_WORDS])


def shared_failures(model: BoardModel, test: Test | None) -> Iterator[SharedFailure]:
    """The groups of failed and later tasks whose last lines differ in numbers at most."""
    alike: dict[str, list[Task]] = {}
    failures = model.failures
    for task in model.failing.values():
        if task.state in (FAILED, LATER) and (failure := failures.get(task.id)) is not None:
            alike.setdefault(failure.pattern, []).append(task)
    alike.pop("", None)
    for pattern, tasks in alike.items():
        shown = tasks if test is None else [task for task in tasks if test(model.entry(task))]
        if len(shown) >= TOGETHER:
            yield _shared(pattern, shown, model)


def _shared(pattern: str, tasks: list[Task], model: BoardModel) -> SharedFailure:
    known = model.failures
    found = [known[task.id] for task in tasks if task.id in known]
    since = min((failure.at for failure in found), default=0.0)
    line = common_line(model.reasons[task.id] for task in tasks[:_SAMPLE])
    return SharedFailure(pattern, line, tuple(tasks), since, _where(found))


def _where(found: list[LastFailure]) -> str:
    """The number of hosts; of owners only if no host is known, since a host has many of them."""
    hosts = {failure.host for failure in found if failure.host}
    owners = {failure.owner for failure in found if failure.owner}
    if hosts:
        return counted(len(hosts), "host")
    return counted(len(owners), "owner") if owners else ""
