"""The cost of the dashboard on an idle board, and on one with only heartbeats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dibs
from tests.bench.dashboard_setup import Stage, share, stage
from tests.bench.harness import Limit, Row, compare
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
        clocks, stills, beats, walls = [], [], [], []
        with found.fleet("beat", claimed, _TTL):  # all the time: a claim that waits would be stale
            if not setup.quick:  # until then the ages on the screen change every second
                time.sleep(max(0.0, born + _MINUTE - time.monotonic()))
            for _ in range(rounds):
                clocks.append(_clock(found, seconds))
                stills.append(_share(found, still, seconds))
                walls.append(_share(found, still, seconds, "--wall"))
                beats.append(_beating(found, claimed, seconds))
        for what, shares, limit in (
            ("a still board, a minute old", stills, Limit("at most", 2)),
            (f"{_CLAIMS} claims beating at ttl {_TTL:g}", beats, Limit("at most", 6)),
            ("just made, so that rows age by the second", [_young(found, seconds)] * rounds, None),
        ):
            yield compare(
                f"{_TASKS:,} tasks, {what}", shares, "a Textual app with a clock", clocks, limit,
                "% of a core", found.note,
            )  # fmt: skip

        yield compare(
            f"{_TASKS:,} tasks, the wall on a still board", walls, "the board", stills,
            Limit("at most", 1), "% of a core", found.note,
        )  # fmt: skip


def _clock(found: Stage, seconds: float) -> float:
    with found.clock() as terminal:
        terminal.wait(b"nothing but a clock")
        time.sleep(found.pause)
        return share(terminal, seconds)


def _young(found: Stage, seconds: float) -> float:
    return _share(found, found.board(_TASKS), seconds)


def _claimed(found: Stage) -> Path:
    path = found.board(_TASKS)
    board = dibs.open(path)
    for n in range(_CLAIMS):
        assert board.claim(owner=f"worker-{n % 50}", ttl=_TTL) is not None
    return path


def _beating(found: Stage, board: Path, seconds: float) -> float:
    with found.dibs(board) as terminal:
        found.settle(terminal)
        measured = share(terminal, seconds)
        if b"EXPIRED" in terminal.written:
            raise RuntimeError("a claim became stale: the machine was too busy for its beats")
        return measured


def _share(found: Stage, board: Path, seconds: float, *flags: str) -> float:
    with found.dibs(*flags, board) as terminal:
        found.settle(terminal)
        return share(terminal, seconds)
