"""The last half hour of a board, or another span, in buckets from what its log counted."""

from __future__ import annotations

from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from dibs_tui.model.frame.braille import Value

if TYPE_CHECKING:
    from collections import Counter

    from dibs import Rates

SPAN = 1800
"""The seconds that a graph of the board shows."""
SMOOTH = 120
"""The seconds over which a flow is averaged: single events would make the line jump."""


def flow(rates: Rates, kind: str, now: float, buckets: int, span: int = SPAN) -> list[Value]:
    """The events of a kind per minute at each bucket, averaged over `SMOOTH` seconds.

    The last bucket is the current one.
    """
    length = span // buckets
    wide = max(1, SMOOTH // length)
    found = _summed(rates.seconds[kind], now, buckets, span, before=wide - 1)
    values: list[Value] = []
    begins, sums = _begins(rates, now), [0, *accumulate(count for count, _ in found)]
    for n in range(buckets):
        end = found[n + wide - 1][1]
        counted = max(1.0, wide * length - max(0.0, end - now))  # a bucket begins with 0 s
        values.append(60 * (sums[n + wide] - sums[n]) / counted if end > begins else None)
    return values


def levels(
    rates: Rates,
    states: tuple[str, ...],
    count: int,
    now: float,
    buckets: int,
    span: int = SPAN,
) -> list[Value]:
    """How many tasks were in these states at the end of each bucket; `count` are there now."""
    found: list[Value] = []
    changes = [_summed(rates.moved[state], now, buckets, span) for state in states]
    level, begins = count, _begins(rates, now)
    for parts in zip(*(reversed(part) for part in changes), strict=True):
        end = parts[0][1]
        found.append(max(0, level) if end > begins else None)
        level -= sum(change for change, _ in parts)
    return found[::-1]


def growth(rates: Rates, states: tuple[str, ...], now: float, buckets: int) -> int:
    """How many more tasks are in these states now than before the first bucket."""
    parts = (_summed(rates.moved[state], now, buckets, SPAN) for state in states)
    return sum(moved for part in parts for moved, _ in part)


def bucket_of(now: float, buckets: int, span: int = SPAN) -> int:
    """The number of the current bucket; a graph shifts when it changes."""
    return int(now) // (span // buckets)


def _begins(rates: Rates, now: float) -> float:
    """Since when the past is known; tasks on a board without any event were not logged."""
    return -inf if rates.begins is None else min(rates.begins, now)


def _summed(
    seconds: Counter[int], now: float, buckets: int, span: int, *, before: int = 0
) -> list[tuple[int, int]]:
    """The sum of each bucket up to the current one, with the second at which it ends.

    `before`: how many buckets before the first one are added in front.
    """
    length, many = span // buckets, buckets + before
    this = bucket_of(now, buckets, span)
    found = [0] * many
    for second, change in seconds.items():
        # A writer's estimate of the time may be a little ahead: such events belong to now.
        at = min(second // length, this) - this + many - 1
        if at >= 0:
            found[at] += change
    return [(total, (this - many + 2 + n) * length) for n, total in enumerate(found)]
