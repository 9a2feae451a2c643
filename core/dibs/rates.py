"""How much happens: events per minute over the last ten, the same for `stats` and the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.facts import Facts

WINDOW = 600
"""Seconds that a rate is taken over."""
LEAST = 60
"""Seconds that a rate is taken over where the journals do not reach back further."""
KINDS = {
    "claim": "claims",
    "resume": "claims",
    "acquire": "claims",
    "done": "dones",
    "fail": "fails",
    "reap": "reaps",
    "add": "adds",
}
_KEPT = 3600
_AHEAD = 5
"""Seconds by which a writer's reckoning of the time may be ahead."""


class Rates:
    """Counts of each kind of event by the second it happened in."""

    def __init__(self) -> None:
        self.seconds: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS.values()}
        self.begins: float | None = None
        """Since when all is counted: None where that is longer ago than was asked for, infinity
        where nothing ever happened."""
        self.complete = True
        """False where a journal could not be read: every rate is then a lower bound."""

    def note(self, verb: str, at: float) -> None:
        """Count an event."""
        if self.begins == inf:  # nothing had happened yet
            self.begins = at
        kind = KINDS.get(verb)
        if kind is None:
            return
        seconds = self.seconds[kind]
        seconds[int(at)] += 1
        if len(seconds) > 2 * _KEPT:
            for old in sorted(seconds)[:-_KEPT]:
                del seconds[old]

    def per_minute(self, kind: str, now: float, more: int = 0) -> float:
        """The rate now, with so many more events that no journal has."""
        return per_minute(self.seconds[kind], now, self.begins, more)


def per_minute(seconds: Counter[int], now: float, begins: float | None, more: int = 0) -> float:
    """The rate over a window that ends now, or over as much of it as was counted."""
    start = now - WINDOW
    if begins is not None and begins > start:
        start = min(begins, now)
    first, last = int(start) + (start == now - WINDOW), int(now) + _AHEAD
    count = sum(n for second, n in seconds.items() if first <= second <= last) + more
    return 60 * count / max(LEAST, now - start)


def silent(stale: Iterable[Facts], now: int) -> int:
    """How many of the stale claims expired within the window: no journal has them yet."""
    start = now - WINDOW * 1_000_000_000
    return sum(facts.beat + facts.ttl * 1_000_000_000 >= start for facts in stale)
