"""A board over HTTP: requests a second, a long line, many watchers, and the dashboard."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import dashboard_live
from tests.bench.dashboard_setup import percentile, stage
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup, others_busy, scratch
from tests.bench.served_load import BARE, cycles, line, watched
from tests.serve.server_process import ENV, ServerProcess, add_token

TITLE = "A board over HTTP"

_CLIENTS = (1, 10, 100)
_ROUNDS = 8
_TASKS = 10_000


def run(setup: Setup) -> Iterator[Row]:
    busy = f"{others_busy():.1f} cores were busy with something else"
    with scratch(setup.ram) as where, _server(where / "board") as (url, token):
        with _bare() as bare:
            for count in _CLIENTS:
                yield from _cycles(count, setup.amount(8, 1), bare, (url, token), busy)
        waiters = setup.amount(1000, 50)
        gaps = asyncio.run(line(url, token, waiters))
        what = f"{waiters:,} clients wait for one lock: from a release to the next holder"
        yield Row(f"{what}, p50", percentile(gaps, 50))
        yield Row(f"{what}, the longest", max(gaps), limit=Limit("at most", 0.1, "measured"))
        times = asyncio.run(watched(url, token, 100, setup.amount(100, 5)))
        what = "an event reaches 100 watchers"
        yield Row(f"{what}, p50", percentile(times, 50))
        yield Row(f"{what}, p99", percentile(times, 99), limit=Limit("at most", 0.1, "measured"))
    yield from _dashboard(setup)


def _cycles(
    count: int, seconds: float, bare: str, ours: tuple[str, str], busy: str
) -> Iterator[Row]:
    """Both in turn in short windows, so that other work on the machine slows down both."""
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    slow: list[float] = []
    for _ in range(_ROUNDS + 1):
        for name, (url, token) in (("bare", (bare, "")), ("ours", ours)):
            start = time.monotonic()
            times = asyncio.run(cycles(url, token, count, seconds / _ROUNDS))
            rates[name].append(len(times) / (time.monotonic() - start))
            if name == "ours":
                slow.append(percentile(times, 99))
    what = f"acquire, renew, release, {count} clients"
    yield compare(
        f"{what}: requests",
        rates["ours"][1:],
        "a bare aiohttp handler",
        rates["bare"][1:],
        Limit("at least", 0.5),
        unit="a second",
        note=busy,
    )
    limit = Limit("at most", 0.025, "measured") if count == _CLIENTS[-1] else None
    yield Row(f"{what}: p99", statistics.median(slow[1:]), limit=limit)


def _dashboard(setup: Setup) -> Iterator[Row]:
    """The same changes on the board's dashboard and on one over HTTP."""
    seconds = setup.amount(30, 2)
    with stage(setup) as found:
        here = dashboard_live.watch(found, _TASKS, seconds, changes="told")
        there = dashboard_live.watch(found, _TASKS, seconds, changes="told", served=_served)
    what = f"{_TASKS:,} tasks, 1,000 changes/s, dashboard over HTTP"
    against = "the board's directory"
    yield compare(f"{what}: change to screen, p50", [there.p50], against, [here.p50])
    limit = Limit("at most", 0.4, "measured")
    yield compare(f"{what}: change to screen, p99", [there.p99], against, [here.p99], limit)
    yield compare(f"{what}: processor", [there.share], against, [here.share], unit="% of a core")


@contextmanager
def _served(board: Path) -> Iterator[str]:
    """The address of a server for a board; the token is in the environment."""
    with _server(board) as (url, token):
        os.environ["DIBS_TOKEN"] = token
        try:
            yield url
        finally:
            del os.environ["DIBS_TOKEN"]


@contextmanager
def _server(board: Path) -> Iterator[tuple[str, str]]:
    """A server: its address and a token for it."""
    server = ServerProcess(board)
    try:
        yield server.url, add_token(board, "bench", "operator")
    finally:
        server.stop()


@contextmanager
def _bare() -> Iterator[str]:
    """The address of a handler that only answers."""
    argv = [sys.executable, "-c", BARE]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=ENV) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
