"""Moments as an argument gives them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from dibs.model.errors import BadName, short
from dibs.model.names import NOT_BEFORE_MAX

_match_unix = re.compile(r"@([0-9]{1,18})").fullmatch
_match_clock = re.compile(r"([0-9]{1,2}):([0-9]{2})").fullmatch


def moment(text: str, now: float | None = None) -> float:
    """The unix seconds of `14:30` (the next one), an ISO date and time, or `@1790000000`.

    Without an offset the time zone is this host's.
    """
    found = _moment(text, now)
    if found > NOT_BEFORE_MAX:
        latest = datetime.fromtimestamp(NOT_BEFORE_MAX, UTC).date()
        raise BadName(f"{short(text)} is too late: the latest start is {latest}")
    return max(0.0, found)  # what is past starts at once


def _moment(text: str, now: float | None) -> float:
    if unix := _match_unix(text):
        return float(unix[1])
    here = datetime.fromtimestamp(time.time() if now is None else now)
    try:
        if clock := _match_clock(text):
            found = here.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            return (found if found > here else found + timedelta(days=1)).timestamp()
        if "-" in text:
            return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    raise BadName(
        f"{short(text)} is not a moment: write 14:30, 2026-01-31T14:30, "
        "or unix seconds as @1790000000"
    )
