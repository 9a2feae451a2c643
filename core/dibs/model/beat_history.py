"""The beats of each claim: how often they usually come, and whether one is overdue."""

from __future__ import annotations

from typing import NamedTuple

from dibs.model.evidence import LATE

_WEIGHT = 0.3
_MIN_DELAY = 2_000_000_000
_BEATS_NEEDED = 3
"""Beats needed to know the cadence: the first is the claim itself, the second follows soon."""
KEPT = 24


class BeatHistory(NamedTuple):
    """The beats of one claim that a watch saw."""

    beats: tuple[int, ...] = ()
    """The times of the last few beats, newest last."""
    cadence: float = 0.0
    """The usual nanoseconds between two beats; 0 until two beats were seen."""

    def with_beat(self, beat: int) -> BeatHistory:
        """The history after one more beat."""
        if not self.beats or beat <= self.beats[-1]:
            return self if self.beats else BeatHistory((beat,))
        gap = beat - self.beats[-1]
        cadence = gap if not self.cadence else self.cadence + _WEIGHT * (gap - self.cadence)
        return BeatHistory((*self.beats, beat)[-KEPT:], cadence)

    def due(self) -> int:
        """When the next beat is overdue, in nanoseconds of the board's clock; 0 if not known."""
        if len(self.beats) < _BEATS_NEEDED:
            return 0
        return self.beats[-1] + max(_MIN_DELAY, int(LATE * self.cadence))

    def late(self, now: int) -> bool:
        """Whether the next beat is overdue."""
        due = self.due()
        return bool(due) and now > due
