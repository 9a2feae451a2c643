"""Which waiting task to try next, without listing the directory for every claim.

One listing gives the head of the queue, by priority and then by name. Processes that meet leave
each other: after two losses a claimant goes on in another slice of the head. No name is tried twice
in one go, because a listing may show for long what a lookup denies.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs import names
from dibs.beside import carriers, good_until
from dibs.names import AVAILABLE, DEFAULT_PRIORITY, Task
from dibs.store import PATIENCE

if TYPE_CHECKING:
    from dibs.store import Store

HEAD = 4096
SLICE = 64
LOSSES = 2
_bare = re.compile(r"[A-Za-z0-9_-]{1,120}\.available").fullmatch
_priority = re.compile(r"\.f[0-9]+(?:a[0-9]+)?p([0-9])\.available").search


class Queue:
    """The head of one board's queue as this process last saw it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slices: list[list[str]] = []
        self._losses = 0
        self._tried: set[str] = set()
        """The names that could not be had since the iteration began."""
        self._until = 0
        self._patience = 0
        """Until when slices are given up; after that the head is walked to its end."""
        self._crowded = False
        """Other claimants were met since the last listing, so the next one starts elsewhere."""
        self._left = False
        """A slice was given up, so an empty head does not mean an empty queue."""

    def __iter__(self) -> Iterator[Task]:
        """Tasks to try, best first, from what was seen last and then from one new listing."""
        start = self._store.port.boottime()
        self._tried.clear()
        self._patience = start + PATIENCE
        if start < self._until:
            yield from self._drain()
        while True:
            self._left = False
            self.refill()
            yield from self._drain()
            if not self._left:
                return

    def lost(self, task: Task) -> None:
        """Another worker was faster, or the name is denied: after the second time go elsewhere."""
        self._tried.add(task.name)
        self._losses += 1

    def passed(self, task: Task) -> None:
        """This one cannot be claimed, and that says nothing of those beside it."""
        self._tried.add(task.name)

    def _drain(self) -> Iterator[Task]:
        while self._slices:
            if not self._slices[-1]:
                self._slices.pop()
            elif self._losses >= LOSSES and self._store.port.boottime() < self._patience:
                self._losses = 0
                self._crowded = self._left = True
                self._slices.pop()  # whoever is in it empties it
                self._jump()
            else:
                task = names.read(self._slices[-1].pop())
                if task is not None:
                    yield task

    def _jump(self) -> None:
        """Put another slice of the same priority in front, by chance."""
        slices, same = self._slices, 0
        if not slices or not slices[-1]:
            return
        front = _priority_of(slices[-1][-1])
        while same < len(slices) and _priority_of(slices[-1 - same][-1]) == front:
            same += 1
        n = len(slices) - 1 - int(self._store.port.nonce(), 16) % same
        slices[n], slices[-1] = slices[-1], slices[n]

    def refill(self) -> None:
        """List the directory and keep the head of what waits."""
        store = self._store
        start = store.port.boottime()
        listed = store.listing()
        by_priority: dict[int, list[str]] = {}
        waiting = [n for n in listed if n.endswith(".available") and n not in self._tried]
        if waiting:  # else a waiter need not sort thousands of claims
            listed.sort()
            waiting.sort()
        for name in waiting:
            by_priority.setdefault(_priority_of(name), []).append(name)
        size = max(HEAD, len(listed) // 16)
        slices: list[list[str]] = []
        for priority in sorted(by_priority, reverse=True):
            head = [n for n in by_priority[priority][:size] if not doubled(listed, n)]
            size -= len(head)
            slices += [head[at : at + SLICE][::-1] for at in range(0, len(head), SLICE)]
        self._slices = slices[::-1]
        self._losses = 0
        if self._crowded:
            self._crowded = False
            self._jump()
        self._until = good_until(start, store.port.boottime())


def _priority_of(name: str) -> int:
    m = _priority(name) if name[-12:-11] == "p" else None
    return int(m[1]) if m else DEFAULT_PRIORITY


def doubled(listed: list[str], name: str) -> bool:
    """Whether a sorted listing holds another name of the same id: then neither is claimed."""
    if _bare(name):  # most are, and their neighbours tell
        at = bisect_left(listed, begin := name[: -len(AVAILABLE)])
        if listed[at] == name and not any(n.startswith(begin) for n in listed[at + 1 : at + 2]):
            return False
    task = names.read(name)
    return task is None or any(other.name != name for other in carriers(listed, task.id))
