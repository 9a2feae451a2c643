"""The breaker of a worker that loops: after failures in a row it waits instead of burning tasks."""

from __future__ import annotations

from dibs.model.errors import BadName, short
from dibs.model.sample import SECOND

_FIRST, _LONGEST = 5, 60
"""Seconds of the first wait, and of the longest; each wait is twice the one before."""


class Breaker:
    """Opens after failures in a row, then lets one task through as a probe after each wait."""

    def __init__(self, limit: int) -> None:
        """A limit of 0 turns it off."""
        if type(limit) is not int or limit < 0:
            raise BadName(f"breaker must be a number of failures from 0, got {short(limit)}")
        self._limit = limit
        self.failures = 0
        """The number of failures since the last success."""
        self.wait = 0
        """Seconds of the present wait; 0 while the breaker is closed."""
        self._until = 0
        self._waiting = False
        self._probe = ""

    @property
    def waiting(self) -> bool:
        """Whether no task is to be claimed now."""
        return self._waiting

    def left(self, now: int) -> float:
        """Seconds until a task may be claimed."""
        return max(0.0, (self._until - now) / SECOND) if self._waiting else 0.0

    def over(self, now: int) -> bool:
        """Whether a wait has just ended: the next task is the probe."""
        if not self._waiting or now < self._until:
            return False
        self._waiting = False
        return True

    def allows(self) -> bool:
        """Whether to claim a task now; while a probe runs, no other is claimed."""
        return not self._waiting and not self._probe

    def began(self, claim: str) -> None:
        """A task was claimed; after a wait it is the probe."""
        if self.wait:
            self._probe = claim

    def ended(self, claim: str, outcome: str, now: int) -> bool:
        """A claim ended; whether the breaker opens, for the first time or again."""
        probed = claim == self._probe
        if probed:
            self._probe = ""
        if outcome == "done":
            self.failures = self.wait = 0
            self._waiting, self._probe = False, ""
        if outcome not in ("failed", "lost", "uncertain"):
            return False
        self.failures += 1
        # What was claimed before the wait says nothing new.
        if not self._limit or (self.wait and not probed) or self.failures < self._limit:
            return False
        self.wait = min(2 * self.wait, _LONGEST) if self.wait else _FIRST
        self._until, self._waiting = now + self.wait * SECOND, True
        return True
