"""How much happens: events per minute, for sparklines, throughput and the time to empty."""

from __future__ import annotations

from collections import Counter

MINUTES = 30
_OVER = 5
KINDS = {
    "claim": "claims",
    "resume": "claims",
    "acquire": "claims",
    "done": "dones",
    "reap": "expiries",
    "add": "adds",
    "fail": "fails",
}
_BARS = "▁▂▃▄▅▆▇█"


class Rates:
    """Counts of each kind of event by the minute they happened in."""

    def __init__(self) -> None:
        self._minutes: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS.values()}

    def note(self, verb: str, at: float) -> None:
        """Something happened."""
        kind = KINDS.get(verb)
        if kind is None:
            return
        minutes = self._minutes[kind]
        minutes[int(at // 60)] += 1
        if len(minutes) > 4 * MINUTES:
            for old in sorted(minutes)[: -2 * MINUTES]:
                del minutes[old]

    def last(self, kind: str, now: float) -> list[int]:
        """The counts of the last half hour, the running minute last."""
        this = int(now // 60)
        return [self._minutes[kind][minute] for minute in range(this - MINUTES + 1, this + 1)]

    def per_minute(self, kind: str, now: float) -> float:
        """The rate over the last five minutes, or over as many as there were."""
        known = [minute for minutes in self._minutes.values() for minute in minutes]
        this = int(now // 60)
        first = max(this - _OVER + 1, min(known, default=this))
        spent = max(10.0, now - first * 60)
        return 60 * sum(self._minutes[kind][m] for m in range(first, this + 1)) / spent


def sparkline(counts: list[int], cells: int) -> str:
    """The newest counts as bars, one to a cell; nothing at all is a blank."""
    counts = counts[-cells:]
    top = max(counts, default=0)
    if not top:
        return "·" * len(counts)
    return "".join("·" if not n else _BARS[(n * len(_BARS) - 1) // top] for n in counts)
