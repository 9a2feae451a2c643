"""Interleaved rounds: every contender gets the same noise, and only ratios are judged."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol


class Contender(Protocol):
    """Something that does a number of operations while the clock runs."""

    def fill(self, count: int) -> None:
        """Prepare `count` operations; this is not timed."""

    def run(self, count: int) -> None:
        """Do `count` operations; this is timed."""


class Spread(NamedTuple):
    """A median with its quartiles."""

    mid: float
    low: float
    high: float


class Limit(NamedTuple):
    """The limit of a measure."""

    kind: Literal["at most", "below", "at least"]
    value: float
    of: Literal["ratio", "measured"] = "ratio"

    def holds(self, value: float) -> bool:
        if self.kind == "at least":
            return value >= self.value
        return value <= self.value if self.kind == "at most" else value < self.value


class Row(NamedTuple):
    """One line of a results table."""

    what: str
    measured: float | None = None
    unit: str = "s"
    against: str = ""
    baseline: float | None = None
    ratio: Spread | None = None
    limit: Limit | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "NOT MEASURED"
        if self.limit is None:
            return "shown"
        judged = self.measured if self.limit.of == "measured" else self.ratio and self.ratio.mid
        return "ok" if judged is not None and self.limit.holds(judged) else "OVER"


def interleave(
    contenders: Mapping[str, Contender],
    rounds: int,
    chunk: int | Mapping[str, int],
    settle: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """The seconds per operation of each contender in each round, in rounds of shuffled order.

    The first round warms the caches and is dropped. `settle` is called before each clock starts:
    on a disk no contender should pay for unwritten data of `fill`.
    """
    order = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in order}
    chance = random.Random(1)
    for _ in range(rounds + 1):
        chance.shuffle(order)
        for name in order:
            count = chunk if isinstance(chunk, int) else chunk[name]
            contenders[name].fill(count)
            settle()
            start = time.perf_counter()
            contenders[name].run(count)
            times[name].append((time.perf_counter() - start) / count)
    return {name: found[1:] for name, found in times.items()}


def spread(values: Sequence[float]) -> Spread:
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(mid, low, high)


def compare(
    what: str,
    measured: Sequence[float],
    against: str,
    baseline: Sequence[float],
    limit: Limit | None = None,
    unit: str = "s",
    note: str = "",
) -> Row:
    """A row whose ratio is the median of the ratios of the rounds, not a ratio of medians."""
    ratio = spread([a / b for a, b in zip(measured, baseline, strict=True)])
    mid = statistics.median
    return Row(what, mid(measured), unit, against, mid(baseline), ratio, limit, note)
