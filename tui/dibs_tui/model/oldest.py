"""Which task has waited longest, without looking at all of them again."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from dibs import Task


class Oldest:
    """A heap of waiting tasks by the time since when they wait; those that are gone are skipped."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []

    def note(self, name: str, since: int) -> None:
        """A task waits since then."""
        if name.endswith(".available"):
            heappush(self._heap, (since, name))

    def first(self, tasks: Mapping[str, Task]) -> tuple[int, str] | None:
        """The longest waiting of those that are still there."""
        heap = self._heap
        if len(heap) > 1000 and len(heap) > 4 * len(tasks):
            heap[:] = [item for item in heap if item[1] in tasks]
            heapify(heap)
        while heap and heap[0][1] not in tasks:
            heappop(heap)
        return heap[0] if heap else None
