"""The memory of the dashboard, and whether it grows while the board changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import linear_regression, median

from tests.bench.dashboard_setup import Stage, stage
from tests.bench.harness import Limit, Row
from tests.bench.places import Setup

TITLE = "Dashboard: memory"

_MB = 1_000_000
_BASE, _EACH = 60 * _MB, 600
_TASKS = 10_000
_RATE = 2_000
_STEADY = 0.2
"""The share of a run after which all permanent data exists."""


def run(setup: Setup) -> Iterator[Row]:
    with stage(setup) as found:
        for size in (10_000, 100_000, 1_000_000):
            if size <= setup.amount(1_000_000, 100_000):
                with found.dashboard(found.board(size)) as terminal:
                    found.settle(terminal)
                    yield _size(size, terminal.rss())
        yield from _churn(found, setup.amount(1_000_000, 6_000))


def _size(size: int, measured: int) -> Row:
    return Row(
        f"{size:,} tasks",
        measured / _MB,
        "MB",
        limit=Limit("at most", (_BASE + _EACH * size) / _MB, "measured"),
    )


def _churn(found: Stage, changes: int) -> Iterator[Row]:
    """The limit is a tenth of the memory for the names of all changes."""
    board = found.board(_TASKS)
    with found.dashboard(board) as terminal:
        found.settle(terminal)
        before = terminal.rss()
        start = time.monotonic()
        with found.fleet("churn", board, _TASKS, _RATE, changes / _RATE, 0) as fleet:
            samples = []
            while fleet.poll() is None:
                time.sleep(changes / _RATE / 100)
                samples.append((_RATE * (time.monotonic() - start), float(terminal.rss())))
        yield _growth(samples, changes)
        yield Row(
            f"more than before, after {changes:,} changes", (terminal.rss() - before) / _MB, "MB"
        )


def _growth(samples: list[tuple[float, float]], changes: int) -> Row:
    steady = samples[int(_STEADY * len(samples)) :]
    slope = linear_regression(*zip(*steady, strict=True)).slope
    return Row(
        f"growth for each of {changes:,} changes to {_TASKS:,} tasks",
        slope,
        "bytes",
        limit=Limit("at most", 10, "measured"),
        note=f"by the slope of {len(steady)} samples after a fifth of them, "
        f"median {median(rss for _, rss in steady) / _MB:.1f} MB",
    )
