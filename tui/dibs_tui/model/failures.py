"""Failures with one cause: tasks whose last attempts ended with the same line but for numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.task import FAILED, LATER
from dibs_tui.text.ages import clock, counted

if TYPE_CHECKING:
    from dibs import Task
    from dibs.model.filters import Test
    from dibs_tui.model.board import BoardModel

TOGETHER = 3
"""From so many tasks on, failures with the same last line are one problem."""
TIMES = "\u00d7"
VARIES = "#"
"""Stands for a number or an address in which the reasons of one cause differ."""
_WORDS, _LONG = 8, 200
_without_exit = re.compile(r"^exit \d{1,3}: ").sub
_without_numbers = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{6,}\b"
    r"|(?:[0-9a-fA-F]{1,4}:){2,}[0-9a-fA-F:]*"
    r"|\d+(?:[.:]\d+)*"
).sub
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


class SharedFailure(NamedTuple):
    """What many failed tasks have in common."""

    pattern: str
    """Their last line with `VARIES` for each number and address, which identifies the group."""
    line: str
    """The last line of their reasons if that is the same, else the pattern; not cleaned."""
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
        parts = []
        parts += [f"{waits:,} later"] if 0 < waits < len(self.tasks) else []
        parts += [f"since {clock(self.since)}"] if self.since else []
        parts += [self.where] if self.where else []
        return " · ".join(parts)

    @property
    def terms(self) -> str:
        """The filter that shows them: the pattern's first plain words are in their reasons."""
        words = [w for w in self.pattern.split() if w.isascii() and w.isprintable()]
        words = [part for word in words if len(part := max(word.split(VARIES), key=len)) > 2]
        return " ".join(f"reason~{word}" for word in words[:_WORDS])


def last_line(reason: str) -> str:
    """The last line of a reason that is not blank; failures are compared by it."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return lines[-1][:_LONG] if lines else ""


def pattern_of(reason: str) -> str:
    """What failures with one cause have in common: the last line without exit code and numbers."""
    line = last_line(reason)
    return _without_numbers(VARIES, _without_exit("", line) or line)


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
    known, reasons = model.failures, model.reasons
    found = [known[task.id] for task in tasks if task.id in known]
    since = min((failure.at for failure in found), default=0.0)
    first = reasons[tasks[0].id]
    same = all(reasons[task.id] == first for task in tasks)
    line = _without_exit("", last_line(first)) or last_line(first) if same else pattern
    return SharedFailure(pattern, line, tuple(tasks), since, _where(found))


def _where(found: list[LastFailure]) -> str:
    """The number of hosts; of owners only if no host is known, since a host has many of them."""
    hosts = {failure.host for failure in found if failure.host}
    owners = {failure.owner for failure in found if failure.owner}
    if hosts:
        return counted(len(hosts), "host")
    return counted(len(owners), "owner") if owners else ""
