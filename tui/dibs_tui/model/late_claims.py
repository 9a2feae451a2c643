"""The claims whose beat is overdue by their own cadence, found without looking at all claims."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_STRAY = 2
"""Outdated entries are removed once there are this many times more entries than claims."""


class LateClaims:
    """Which claims are late. A beat costs one entry in a heap, and a claim on time nothing."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        """When the next beat of each claim is overdue, in nanoseconds of the board's clock."""
        self._order: list[tuple[int, str]] = []
        self._late: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._late

    def note(self, name: str, due: int) -> None:
        """Note a beat: the next one is overdue at `due`; 0 if that is not known yet."""
        self._late.discard(name)
        if not due:
            self._due.pop(name, None)
            return
        self._due[name] = due
        heappush(self._order, (due, name))
        if len(self._order) > _STRAY * len(self._due) + 1000:
            self._order = [(due, name) for name, due in self._due.items()]
            heapify(self._order)

    def drop(self, name: str) -> None:
        """Forget a claim that has ended."""
        self._due.pop(name, None)
        self._late.discard(name)

    def overdue(self, now: int) -> list[str]:
        """The claims that have become late since this was asked last."""
        found = []
        while self._order and self._order[0][0] < now:
            due, name = heappop(self._order)
            if self._due.get(name) == due and name not in self._late:
                self._late.add(name)
                found.append(name)
        return found
