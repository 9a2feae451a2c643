"""Since when tasks wait whose priority was changed: that rename is no new beginning.

A file system gives the new name a time of its own, so what the old name had is carried over: from
a name that was seen to go, or from what the journal says of the change and of the name before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from dibs import Event, Task
from dibs.names import AVAILABLE

_KEPT = 5000
_CHANGED = "prioritise"

Key = tuple[str, int, int]
K = TypeVar("K")
V = TypeVar("V")


class Waited:
    """What is known of tasks whose priority was changed."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        """Since when a name waits really, in nanoseconds."""
        self._left: dict[Key, tuple[str, int]] = {}
        self._made: dict[str, int] = {}
        """When the journal says that a waiting name came to be."""

    def went(self, tasks: Iterable[Task], since: Mapping[str, int]) -> None:
        """Names that are gone; what took over from them may come later."""
        for task in tasks:
            at = since.get(task.name)
            if task.state == AVAILABLE and at is not None:
                _keep(self._left, _key(task), (task.name, at))

    def came(self, tasks: Iterable[Task]) -> dict[str, int]:
        """Since when those of these names wait that are another priority of one that went."""
        found = {}
        for task in tasks if self._left else ():  # a long board comes at once
            name, at = self._left.get(_key(task), ("", 0))
            if name and name != task.name and task.state == AVAILABLE:
                found[task.name] = at
                _keep(self._since, task.name, at)
        return found

    def heard(self, event: Event, since: Mapping[str, int]) -> int | None:
        """Since when the name waits that an event tells of, where its priority was changed."""
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
        """These times, as the disk has them, with the beginnings that are known to be earlier."""
        return {name: min(at, self._since.get(name, at)) for name, at in since.items()}


def _key(task: Task) -> Key:
    """What a change of the priority leaves; a claim raises the fence, a failure the attempts."""
    return task.id, task.fence, task.attempts


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
