"""The beats of each claim: how often they usually come, and whether one is overdue."""

from __future__ import annotations

from typing import NamedTuple

from dibs.model.evidence import BEATS, LATE, PER_TTL

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

    assumed: float = 0.0
    """The nanoseconds between two beats that count until the cadence is known; 0 for none."""

    def with_beat(self, beat: int, ttl: float = 0.0) -> BeatHistory:
        """The history after one more beat; with a `ttl` the claim is that of a dibs worker."""
        assumed = ttl * 1e9 / PER_TTL
        if not self.beats or beat <= self.beats[-1]:
            return BeatHistory(self.beats or (beat,), self.cadence, assumed)
        gap = beat - self.beats[-1]
        cadence = gap if not self.cadence else self.cadence + _WEIGHT * (gap - self.cadence)
        return BeatHistory((*self.beats, beat)[-KEPT:], cadence, assumed)

    @property
    def is_known(self) -> bool:
        """Whether enough beats were seen to know the cadence."""
        return len(self.beats) >= _BEATS_NEEDED

    @property
    def silent_from(self) -> int:
        """From when it does not count as beating, in nanoseconds of the board's clock; 0 if never.

        That is before a beat is overdue if the cadence is known, which may vary.
        """
        period = self.cadence if self.is_known else self.assumed
        return self.beats[-1] + max(_MIN_DELAY, int(BEATS * period)) if period else 0

    def due(self) -> int:
        """When the next beat is overdue, in nanoseconds of the board's clock; 0 if not known."""
        if not self.is_known:
            return self.silent_from
        return self.beats[-1] + max(_MIN_DELAY, int(LATE * self.cadence))

    def late(self, now: int) -> bool:
        """Whether the next beat is overdue."""
        due = self.due()
        return bool(due) and now > due
