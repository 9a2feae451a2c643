"""How regularly each claim beats: its own cadence, and whether it is late by it."""

from __future__ import annotations

from typing import NamedTuple

from dibs.evidence import LATE

_WEIGHT = 0.3
_LEAST = 2_000_000_000
_ENOUGH = 3
"""From so many on they tell a cadence: the first is the claim itself, the second comes soon."""
KEPT = 24


class Rhythm(NamedTuple):
    """The beats of one claim as this dashboard saw them."""

    beats: tuple[int, ...] = ()
    """When it was heard of, newest last; at most the last few."""
    cadence: float = 0.0
    """The usual nanoseconds between two beats; 0 where fewer than two beats were seen."""

    def heard(self, beat: int) -> Rhythm:
        """The rhythm after one more beat."""
        if not self.beats or beat <= self.beats[-1]:
            return self if self.beats else Rhythm((beat,))
        gap = beat - self.beats[-1]
        cadence = gap if not self.cadence else self.cadence + _WEIGHT * (gap - self.cadence)
        return Rhythm((*self.beats, beat)[-KEPT:], cadence)

    def due(self) -> int:
        """When it will be late, in nanoseconds of the board's clock; 0 where that is not known."""
        if len(self.beats) < _ENOUGH:
            return 0
        return self.beats[-1] + max(_LEAST, int(LATE * self.cadence))

    def late(self, now: int) -> bool:
        """Whether it misses a beat that its own cadence lets expect."""
        due = self.due()
        return bool(due) and now > due
