"""How much happens, for sparklines; the rates themselves are the core's, as `stats` has them."""

from __future__ import annotations

from collections import Counter

from dibs import Rates

MINUTES = 30
_BARS = "▁▂▃▄▅▆▇█"


def by_minute(rates: Rates, kind: str, now: float) -> list[int]:
    """The counts of the last half hour, the running minute last."""
    minutes: Counter[int] = Counter()
    for second, count in rates.seconds[kind].items():
        minutes[second // 60] += count
    this = int(now // 60)
    return [minutes[minute] for minute in range(this - MINUTES + 1, this + 1)]


def sparkline(counts: list[int], cells: int) -> str:
    """The newest counts as bars, one to a cell; nothing at all is a blank."""
    counts = counts[-cells:]
    top = max(counts, default=0)
    if not top:
        return "·" * len(counts)
    return "".join("·" if not n else _BARS[(n * len(_BARS) - 1) // top] for n in counts)
