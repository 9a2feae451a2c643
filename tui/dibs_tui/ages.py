"""Times, rates and counts as the board shows them: short, and coarser the older they are."""

from __future__ import annotations

import math
import time

MINUTE, HOUR, DAY = 60, 3600, 86_400
_LONGEST = 9999 * DAY


def short(seconds: float | None) -> str:
    """A span of time in at most five cells: `8s`, `3m20s`, `12m`, `1h05`, `31h`, `3d`."""
    if seconds is None or math.isnan(seconds):
        return ""
    whole = int(min(max(seconds, 0), _LONGEST))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return f"{whole // MINUTE}m{whole % MINUTE // 10}0s"
    if whole < HOUR:
        return f"{whole // MINUTE}m"
    if whole < 10 * HOUR:
        return f"{whole // HOUR}h{whole % HOUR // MINUTE:02}"
    return f"{whole // HOUR}h" if whole < 2 * DAY else f"{whole // DAY}d"


def step(seconds: float | None) -> float:
    """After how many more seconds `short` of a growing span reads differently."""
    if seconds is None or math.isnan(seconds) or seconds >= _LONGEST:
        return math.inf
    if seconds < 1:
        return 1 - seconds
    unit = _unit(seconds)
    return unit - seconds % unit


def clock(at: float) -> str:
    """The local time of day of a moment in seconds, or in nanoseconds as the board has it."""
    return _told("%H:%M:%S", at / 1e9 if abs(at) >= 1e15 else at, "--:--:--")


def when(at: float) -> str:
    """The local date and time of a moment in seconds."""
    return _told("%Y-%m-%d %H:%M:%S", at, "no known time")


def counted(count: int, what: str) -> str:
    """So many of a thing, in the number that grammar wants: `1 host`, `2 hosts`."""
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


def rate(per_minute: float) -> str:
    """So many a minute, in at most eight cells: `0/min`, `2.5/min`, `120/min`, `1.2k/min`."""
    if not math.isfinite(per_minute):
        return "?/min"
    for limit, size, unit in ((999.5, 1, ""), (999_500, 1e3, "k"), (9.995e8, 1e6, "M")):
        if per_minute < limit:
            number = max(per_minute, 0) / size
            return f"{number:.{1 if number < 9.95 else 0}f}".removesuffix(".0") + f"{unit}/min"
    return "999M/min"


def _unit(seconds: float) -> int:
    """The steps in which a span of that length is told."""
    if seconds < MINUTE:
        return 1
    if seconds < 10 * MINUTE:
        return 10
    if seconds < 10 * HOUR:
        return MINUTE
    return HOUR if seconds < 2 * DAY else DAY


def _told(form: str, at: float, otherwise: str) -> str:
    try:
        return time.strftime(form, time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return otherwise
