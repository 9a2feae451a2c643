"""What the dashboard costs while nothing happens, and while nothing happens but heartbeats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import dibs
from tests.bench.dashboard_setup import Stage, share, stage
from tests.bench.harness import Limit, Row
from tests.bench.places import Setup

TITLE = "Dashboard: idle"

_TASKS = 10_000
_CLAIMS = 500
_TTL = 60.0
_MINUTE = 62.0


def run(setup: Setup) -> Iterator[Row]:
    seconds, rounds = setup.amount(25, 2), setup.amount(3, 1)
    with stage(setup) as found:
        still, born, claimed = found.board(_TASKS), time.monotonic(), _claimed(found)
        with found.textual() as terminal:
            terminal.wait(b"nothing but a label")
            yield Row("an empty Textual app", share(terminal, seconds), "% of a core")
        if not setup.quick:  # until then the ages that are shown change every second
            time.sleep(max(0.0, born + _MINUTE - time.monotonic()))
        with found.fleet("beat", claimed, _TTL):
            shares = [_share(found, claimed, seconds) for _ in range(rounds)]
        yield _row(f"{_CLAIMS} claims beating at ttl {_TTL:g}", shares, 1.0, found.note)
        shares = [_share(found, still, seconds) for _ in range(rounds)]
        yield _row("a still board, a minute old", shares, 0.3)
        shares = [_share(found, found.board(_TASKS), seconds)]
        yield _row("a still board, just made: every row shown ages by the second", shares, None)


def _row(what: str, shares: list[float], limit: float | None, note: str = "") -> Row:
    judged = None if limit is None else Limit("at most", limit, "measured")
    return Row(f"{_TASKS:,} tasks, {what}", median(shares), "% of a core", limit=judged, note=note)


def _claimed(found: Stage) -> Path:
    path = found.board(_TASKS)
    board = dibs.open(path)
    for n in range(_CLAIMS):
        assert board.claim(owner=f"worker-{n % 50}", ttl=_TTL) is not None
    return path


def _share(found: Stage, board: Path, seconds: float) -> float:
    with found.dashboard(board) as terminal:
        found.settle(terminal)
        return share(terminal, seconds)
