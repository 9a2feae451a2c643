"""Short texts for times, rates and counts; the longer a time, the coarser its unit."""

from __future__ import annotations

import math
import time

MINUTE, HOUR, DAY = 60, 3600, 86_400
_LONGEST = 9999 * DAY
UNREAD = "…"
"""What stands in place of a number that is still being read."""


def short(seconds: float | None) -> str:
    """A duration in at most five cells: `8s`, `3m20s`, `12m`, `1h05`, `31h`, `3d`."""
    if seconds is None or math.isnan(seconds):
        return ""
    total = int(min(max(seconds, 0), _LONGEST))
    if total < MINUTE:
        return f"{total}s"
    if total < 10 * MINUTE:
        return f"{total // MINUTE}m{total % MINUTE // 10}0s"
    if total < HOUR:
        return f"{total // MINUTE}m"
    if total < 10 * HOUR:
        return f"{total // HOUR}h{total % HOUR // MINUTE:02}"
    return f"{total // HOUR}h" if total < 2 * DAY else f"{total // DAY}d"


def brief(seconds: float) -> str:
    """A duration in its greatest unit, in at most three cells up to 99 days: `59s`, `3m`, `2d`."""
    total = int(min(max(seconds, 0), _LONGEST))
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if total >= size:
            return f"{total // size}{unit}"
    return f"{total}s"


def step(seconds: float | None) -> float:
    """The seconds until `short` of a growing duration changes."""
    if seconds is None or math.isnan(seconds) or seconds >= _LONGEST:
        return math.inf
    if seconds < 1:
        return 1 - seconds
    unit = _unit(seconds)
    return unit - seconds % unit


def clock(at: float) -> str:
    """The local time of day of a timestamp in seconds, or in nanoseconds as boards have it."""
    return _formatted("%H:%M:%S", at / 1e9 if abs(at) >= 1e15 else at, "--:--:--")


def when(at: float) -> str:
    """The local date and time of a timestamp in seconds."""
    return _formatted("%Y-%m-%d %H:%M:%S", at, "unknown time")


def counted(count: int, what: str) -> str:
    """A count with its noun: `1 host`, `2 hosts`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def many(count: int) -> str:
    """A count in at most five cells: `9,999`, `12.4k`, `124k`, `1.2M`."""
    if count < 10_000:
        return f"{count:,}"
    for size, unit in ((1000, "k"), (1_000_000, "M")):
        part = count / size
        if part < 999.5:
            return f"{part:.{1 if part < 99.95 else 0}f}{unit}"
    return "999M"


def few(count: int) -> str:
    """A count in at most four cells: `999`, `1.2k`, `12k`, `124k`, `1.2M`; empty for none."""
    if count < 1000:
        return str(count) if count else ""
    for size, unit in ((1000, "k"), (1_000_000, "M")):
        part = count / size
        if part < 999.5:
            return f"{part:.{1 if part < 9.95 else 0}f}{unit}"
    return "999M"


def rate(per_minute: float) -> str:
    """A rate in at most eight cells: `0/min`, `2.5/min`, `120/min`, `1.2k/min`."""
    if not math.isfinite(per_minute):
        return "?/min"
    for limit, size, unit in ((999.5, 1, ""), (999_500, 1e3, "k"), (9.995e8, 1e6, "M")):
        if per_minute < limit:
            number = max(per_minute, 0) / size
            return f"{number:.{1 if number < 9.95 else 0}f}".removesuffix(".0") + f"{unit}/min"
    return "999M/min"


def _unit(seconds: float) -> int:
    """The unit to which `short` rounds a duration down."""
    if seconds < MINUTE:
        return 1
    if seconds < 10 * MINUTE:
        return 10
    if seconds < 10 * HOUR:
        return MINUTE
    return HOUR if seconds < 2 * DAY else DAY


def _formatted(form: str, at: float, otherwise: str) -> str:
    try:
        return time.strftime(form, time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return otherwise
