"""The names whose time has come, found without looking at all names."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_STRAY = 2
"""Outdated entries are removed once there are this many times more entries than names."""


class DueTimes:
    """Which names are due. A new time costs one entry in a heap, and a name not due nothing."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        """When each name is due, in nanoseconds of the board's clock."""
        self._order: list[tuple[int, str]] = []
        self._come: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._come

    @property
    def any_came(self) -> bool:
        """Whether any name is due."""
        return bool(self._come)

    def note(self, name: str, due: int) -> None:
        """Note when a name is due, in place of an earlier time; 0 if that is not known yet."""
        self._come.discard(name)
        if not due:
            self._due.pop(name, None)
            return
        self._due[name] = due
        heappush(self._order, (due, name))
        if len(self._order) > _STRAY * len(self._due) + 1000:
            self._order = [(due, name) for name, due in self._due.items()]
            heapify(self._order)

    def drop(self, name: str) -> None:
        """Forget a name that is gone."""
        self._due.pop(name, None)
        self._come.discard(name)

    def came(self, now: int) -> list[str]:
        """The names that have become due since this was asked last."""
        found = []
        while self._order and self._order[0][0] < now:
            due, name = heappop(self._order)
            if self._due.get(name) == due and name not in self._come:
                self._come.add(name)
                found.append(name)
        return found
