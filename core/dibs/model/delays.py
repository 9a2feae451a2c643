"""When a task that failed or was put off starts again, as pure functions.

A delay is advice to workers: it spreads the retries of an outage. What decides who gets a task
stays the rename, so a clock that was set can make a task early or late, but never lose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from dibs.model.errors import BadName, short
from dibs.model.names import NOT_BEFORE_MAX
from dibs.model.sample import SECOND
from dibs.model.task import LATER, Task

LONGEST = 86_400
"""The longest delay of a failed or released task, in seconds."""
SPREAD = 0.1
"""By which part of itself a delay of the settings varies, so that a herd spreads."""
SET_BACK = 100_000 * SECOND
"""No failed task waits for longer: if it seems to, the clock was set back since."""


def delay_after(retry: Sequence[float], attempts: int) -> float:
    """The seconds that a task waits after that many failures; the last entry repeats."""
    return retry[min(max(attempts, 1), len(retry)) - 1] if retry else 0.0


def spread(delay: float, nonce: str) -> float:
    """A delay between nine and eleven tenths of this one, chosen by a random hex number."""
    part = int(nonce, 16) / (float(16 ** len(nonce)) - 1)
    return float(delay * (1 - SPREAD + 2 * SPREAD * part))


def start_after(start: int, delay: float, now: int) -> int:
    """The whole second at which a task starts, `delay` seconds after `start`; 0 if that is past.

    `start` and `now` are nanoseconds on the board's clock. A start in the future, as of a beat
    before the clock was set back, counts as now.
    """
    at = min(start, now) + round(delay * SECOND)
    return 0 if at <= now else min(-(-at // SECOND), NOT_BEFORE_MAX)


def is_due(task: Task, now: int) -> bool:
    """Whether a task may be claimed at that time, in nanoseconds on the board's clock."""
    at = task.not_before * SECOND
    return at <= now or (task.attempts >= 1 and at > now + SET_BACK)


def next_start(tasks: Iterable[Task], now: int) -> float | None:
    """The seconds until the first of these tasks starts, 0 if one is due; None without any."""
    waits = [
        0.0 if is_due(task, now) else (task.not_before * SECOND - now) / SECOND
        for task in tasks
        if task.state == LATER
    ]
    return min(waits, default=None)


def check_delay(delay: float, longest: float = LONGEST) -> float:
    """The delay in seconds, if it is valid; else `BadName`."""
    number = isinstance(delay, (int, float)) and not isinstance(delay, bool)
    if not number or not 0 <= delay <= longest:
        raise BadName(f"a delay must be 0 to {longest:g} seconds, got {short(delay)}")
    return delay


def check_start(at: float) -> int:
    """The whole second of a start in unix seconds, if a name can hold it; else `BadName`."""
    number = isinstance(at, (int, float)) and not isinstance(at, bool)
    if not number or not 0 <= at <= NOT_BEFORE_MAX:
        raise BadName(f"a start must be unix seconds up to {NOT_BEFORE_MAX}, got {short(at)}")
    return ceil(at)
