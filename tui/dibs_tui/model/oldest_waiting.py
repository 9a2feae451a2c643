"""Finds the tasks that have waited longest without scanning the board."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from dibs import Task


class OldestWaiting:
    """A heap of the available tasks by waiting time; tasks that are gone are skipped."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._enough = 1000

    def note(self, name: str, since: int) -> None:
        """Note since when a task waits."""
        if name.endswith(".available"):
            heappush(self._heap, (since, name))

    def first(self, tasks: Mapping[str, Task]) -> tuple[int, str] | None:
        """The task on the board that has waited longest, and since when."""
        heap = self._heap
        if len(heap) > self._enough:
            self._thin(tasks)
        while heap and heap[0][1] not in tasks:
            heappop(heap)
        return heap[0] if heap else None

    def first_many(self, tasks: Mapping[str, Task], until: int, most: int) -> dict[str, int]:
        """The tasks that wait since `until` or longer and since when, the longest first.

        The heap is walked from its root, so the cost does not depend on its length.
        """
        heap, found, gone = self._heap, dict[str, int](), 0
        edge = [(heap[0], 0)] if heap else []
        while edge and len(found) < most:
            (since, name), at = heappop(edge)
            if since > until:
                break
            if name in tasks:
                found.setdefault(name, since)
            else:
                gone += 1
            for child in range(2 * at + 1, min(2 * at + 3, len(heap))):
                heappush(edge, (heap[child], child))
        if gone > len(found) + 1000:
            self._thin(tasks)
        return found

    def _thin(self, tasks: Mapping[str, Task]) -> None:
        """Remove tasks that are gone."""
        self._heap[:] = {item for item in self._heap if item[1] in tasks}
        heapify(self._heap)
        self._enough = 1000 + 2 * len(self._heap)
