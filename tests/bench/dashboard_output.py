"""What the dashboard writes to the terminal: over ssh each byte is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from tests.bench.dashboard_setup import LIVE, Stage, stage
from tests.bench.harness import Limit, Row
from tests.bench.places import Setup

TITLE = "Dashboard: output"

_ROWS = 45
"""The rows of the terminal; its columns are those of every benchmark, 160."""
_WARM = 10.0
"""Seconds after which the demo's workers are all at work."""
_LIMIT = 20.0


def run(setup: Setup) -> Iterator[Row]:
    seconds, rounds = setup.amount(40, 3), setup.amount(3, 1)
    with stage(setup) as found:
        boards = [_written(found, seconds) for _ in range(rounds)]
        walls = [_written(found, seconds, "--wall") for _ in range(rounds)]
        for what, rates in (("the board", boards), ("the wall", walls)):
            limit = Limit("at most", _LIMIT, "measured")
            yield Row(
                f"{what} on the demo, 160 x {_ROWS}", median(rates), "KB/s", limit=limit,
                note=found.note,
            )  # fmt: skip


def _written(found: Stage, seconds: float, *flags: str) -> float:
    """The kilobytes a second that a demo writes."""
    with found.dibs("demo", *flags, rows=_ROWS) as terminal:
        terminal.wait(LIVE)
        time.sleep(min(_WARM, seconds))
        before, start = len(terminal.written), time.monotonic()
        time.sleep(seconds)
        rate = (len(terminal.written) - before) / (time.monotonic() - start) / 1000
        terminal.leave()
        return rate
