"""Keeps the waiting time of tasks whose priority was changed.

A new priority is a new name, and the file system gives it a new time. So the time of the old name
is carried over: from the name that went, or from the log's events about both names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from dibs import Event, Task
from dibs.model.task import AVAILABLE

_KEPT = 5000
_CHANGED = "prioritize"

Key = tuple[str, int, int]
K = TypeVar("K")
V = TypeVar("V")


class WaitTimes:
    """When tasks began to wait, across changes of their priority."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        """When the task of a name began to wait, in nanoseconds."""
        self._left: dict[Key, tuple[str, int]] = {}
        self._made: dict[str, int] = {}
        """When a waiting name was made, by the log."""

    def went(self, tasks: Iterable[Task], since: Mapping[str, int]) -> None:
        """Note names that are gone; the names that replace them may come later."""
        for task in tasks:
            at = since.get(task.name)
            if task.state == AVAILABLE and at is not None:
                _keep(self._left, _key(task), (task.name, at))

    def came(self, tasks: Iterable[Task]) -> dict[str, int]:
        """When these tasks began to wait, for those that replace a name of another priority."""
        found = {}
        for task in tasks if self._left else ():  # at the start a large board comes in one delta
            name, at = self._left.get(_key(task), ("", 0))
            if name and name != task.name and task.state == AVAILABLE:
                found[task.name] = at
                _keep(self._since, task.name, at)
        return found

    def note(self, event: Event, since: Mapping[str, int]) -> int | None:
        """Note an event; returns when its task began to wait if it changed the priority."""
        if event.dst.endswith(f".{AVAILABLE}") and event.verb != _CHANGED:
            _keep(self._made, event.dst, int(event.at * 1e9))
        if event.verb != _CHANGED:
            return None
        src = event.src
        at = self._since.get(event.dst) or self._since.get(src) or since.get(src)
        at = at or self._made.get(src)
        if at is not None:
            _keep(self._since, event.dst, at)
        return at

    def corrected(self, since: Mapping[str, int]) -> dict[str, int]:
        """These times from the disk, replaced where the task is known to wait for longer."""
        return {name: min(at, self._since.get(name, at)) for name, at in since.items()}


def _key(task: Task) -> Key:
    """What a new priority leaves unchanged: a claim raises the fence, a failure the attempts."""
    return task.id, task.fence, task.attempts


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
