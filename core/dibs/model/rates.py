"""Rates: events per minute over ten minutes, the same for `stats` and the dashboard.

The backlog is what has to be done: the available tasks, and those that start again later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf, nan
from typing import TYPE_CHECKING

from dibs.model.events import NOTHING_MOVED

if TYPE_CHECKING:
    from dibs.model.holder import Holder

WINDOW = 600
"""Seconds over which a rate is computed."""
LEAST = 60
"""The least of these seconds if the log does not reach back further."""
KINDS = {
    "claim": "claims",
    "resume": "claims",
    "acquire": "claims",
    "done": "dones",
    "fail": "fails",
    "reap": "reaps",
    "add": "adds",
}
TOTALS = KINDS | {
    "release": "releases",
    "force-release": "force-releases",
    "requeue": "requeues",
    "park": "parks",
    "undo": "undos",
    "refused": "late-holders",
}
"""The verbs that are counted since the log began, with the name of each count."""
MOVES = ("available", "later", "failed")
"""The states whose earlier counts follow from the names in the log."""
_RECENT = (120, 60)
"""Shorter windows, in seconds: tasks that were added at once leave them sooner."""
_CLEAR = 0.75
"""Adds per finished task below which a backlog clearly shrinks, though the window is short."""
_FEW = 3
"""Finished tasks per minute below which a short window says nothing."""
_KEPT = 3600
_MINUTES = 60
_UNMOVED = frozenset(NOTHING_MOVED)
_AHEAD = 5
"""Seconds by which a writer's estimate of the time may be ahead."""


class Rates:
    """Counts of each kind of event, by second.

    >>> isinstance(board.log.rates(0.0), dibs.Rates)
    True
    """

    def __init__(self) -> None:
        self.seconds: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS.values()}
        self.ended: dict[tuple[str, str], Counter[int]] = {}
        """The counts of `done` and `fail` by verb and owner, by minute."""
        self.moved: dict[str, Counter[int]] = {state: Counter() for state in MOVES}
        """How many more tasks were in each of these states after a second than before it."""
        self.begins: float | None = None
        """Since when all events are counted. None: longer than was asked for. Infinity: nothing
        has happened yet."""
        self.complete = True
        """False if part of the log could not be read; rates are then lower bounds."""

    def copy(self) -> Rates:
        """A copy that is counted separately."""
        found = Rates()
        found.seconds = {kind: counts.copy() for kind, counts in self.seconds.items()}
        found.ended = {key: counts.copy() for key, counts in self.ended.items()}
        found.moved = {state: counts.copy() for state, counts in self.moved.items()}
        found.begins, found.complete = self.begins, self.complete
        return found

    def note(self, verb: str, at: float, count: int = 1) -> None:
        """Count one event, or several of one second."""
        if self.begins == inf:  # nothing had happened yet
            self.begins = at
        kind = KINDS.get(verb)
        if kind is None:
            return
        seconds = self.seconds[kind]
        seconds[int(at)] += count
        if len(seconds) > 2 * _KEPT:
            for old in sorted(seconds)[:-_KEPT]:
                del seconds[old]

    def note_move(self, verb: str, src: str, dst: str, at: float, count: int = 1) -> None:
        """Count the change of a name in the states of `MOVES`."""
        before, after = _moved_state(src), _moved_state(dst)
        if before != after and verb not in _UNMOVED:
            self._count_move(before, int(at), -count)
            self._count_move(after, int(at), count)

    def _count_move(self, state: str, second: int, change: int) -> None:
        if not state:
            return
        seconds = self.moved[state]
        seconds[second] += change
        if len(seconds) > 2 * _KEPT:
            for old in sorted(seconds)[:-_KEPT]:
                del seconds[old]

    def note_end(self, verb: str, owner: str, at: float, count: int = 1) -> None:
        """Count how an owner ended a claim: with `done` or `fail`."""
        minutes = self.ended.setdefault((verb, owner), Counter())
        minutes[int(at // 60)] += count
        if len(minutes) > 2 * _MINUTES:
            for old in sorted(minutes)[:-_MINUTES]:
                del minutes[old]

    def ends(self, now: float) -> dict[str, tuple[int, int]]:
        """How many claims each owner ended in the last hour: done, and failed."""
        found: dict[str, tuple[int, int]] = {}
        first = int(now // 60) - _MINUTES + 1
        for (verb, owner), minutes in self.ended.items():
            count = sum(n for minute, n in minutes.items() if minute >= first)
            if count:
                done, failed = found.get(owner, (0, 0))
                is_done = verb == "done"
                found[owner] = (done + count * is_done, failed + count * (not is_done))
        return found

    def per_minute(self, kind: str, now: float, more: int = 0) -> float:
        """The rate now, with `more` events that the log does not have yet."""
        return per_minute(self.seconds[kind], now, self.begins, more)


def _moved_state(name: str) -> str:
    """The state of `MOVES` that an exact name of a log has; empty if none.

    Every name here is that of a task: a lock is `.held`, or in a folder of its own.
    """
    if name.endswith((".available", ".later")):
        return "later" if name[-1] == "r" else "available"
    return "failed" if name.startswith("failed/") else ""


def per_minute(seconds: Counter[int], now: float, begins: float | None, more: int = 0) -> float:
    """The rate over the window that ends now, or over the counted part of it."""
    start = now - WINDOW
    if begins is not None and begins > start:
        start = min(begins, now)
    first, last = int(start) + (start == now - WINDOW), int(now) + _AHEAD
    count = sum(n for second, n in seconds.items() if first <= second <= last) + more
    return 60 * count / max(LEAST, now - start)


def expired_lately(stale: Iterable[Holder], now: int) -> int:
    """How many stale claims expired within the window; the log does not have them yet."""
    start = now - WINDOW * 1_000_000_000
    return sum(holder.beat + holder.ttl * 1_000_000_000 >= start for holder in stale)


def drain_time(rates: Rates, now: float, backlog: int) -> float:
    """In how many seconds the backlog is done, at the rates of now.

    Infinity if it does not shrink, NaN if that is not known yet.
    """
    if not backlog:
        return 0.0
    shrinks = rates.per_minute("dones", now) - rates.per_minute("adds", now)
    begins = -inf if rates.begins is None else rates.begins
    for window in _RECENT:
        if shrinks > 0:
            break
        start = max(begins, now - window)
        dones = per_minute(rates.seconds["dones"], now, start)
        adds = per_minute(rates.seconds["adds"], now, start)
        if dones >= _FEW and adds <= _CLEAR * dones:
            shrinks = dones - adds
    if shrinks > 0:
        return 60 * backlog / shrinks
    return nan if begins > now - _RECENT[0] else inf
