"""The dashboard while another process changes the board a thousand times a second."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

from tests.bench.dashboard_setup import (
    STEADY,
    Stage,
    percentile,
    stage,
    words,
)
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup
from tests.bench.pty_terminal import Terminal

TITLE = "Dashboard: changes a second"

_RATE = 1000
_JUDGED = 10_000
_PROBES = 20
"""Of a second: tasks that come to the top, where they can be seen."""
_LINES = 12
_TYPE = 0.1


class Measured(NamedTuple):
    """One run of one program."""

    p50: float
    p99: float
    share: float
    """Of a core, in percent."""
    keys: tuple[float, ...] = ()
    made: float = _RATE


def run(setup: Setup) -> Iterator[Row]:
    seconds = setup.amount(30, 2)
    with stage(setup) as found:
        for size in (1_000, 10_000)[setup.amount(0, 1) :]:
            rounds = setup.amount(3, 1) if size == _JUDGED else 1
            ours = [_watch(found, size, seconds) for _ in range(rounds)]
            plain = [_watch(found, size, seconds, plain=True) for _ in range(rounds)]
            yield from _rows(size, ours, plain, found.note)
        for size in (10_000, 100_000)[: setup.amount(2, 1)]:
            yield from _typed(size, _watch(found, size, seconds, typing=True))


def _rows(size: int, ours: list[Measured], plain: list[Measured], busy: str) -> Iterator[Row]:
    what = f"{size:,} tasks, {_RATE:,} changes/s"
    note = f"{median(m.made for m in ours):,.0f} changes a second were made. {busy}".strip()
    for part, unit, value, limit in (
        ("change to screen, p50", "s", "p50", Limit("at most", 0.15, "measured")),
        ("change to screen, p99", "s", "p99", Limit("at most", 0.3, "measured")),
        ("processor", "% of a core", "share", Limit("below", 15, "measured")),
    ):
        yield compare(
            f"{what}: {part}",
            [getattr(m, value) for m in ours],
            "a plain DataTable",
            [getattr(m, value) for m in plain],
            limit if size == _JUDGED else None,
            unit=unit,
            note=note if value == "p50" else "",
        )


def _typed(size: int, measured: Measured) -> Iterator[Row]:
    what = f"{size:,} tasks, {_RATE:,} changes/s, while typing"
    yield Row(f"{what}: a key answered, p50", percentile(measured.keys, 50))
    yield Row(
        f"{what}: a key answered, p99",
        percentile(measured.keys, 99),
        limit=Limit("at most", 0.05, "measured"),
        note=f"{len(measured.keys)} keys, the slowest {max(measured.keys) * 1e3:.0f} ms",
    )
    yield Row(f"{what}: change to screen, p99", measured.p99)
    yield Row(f"{what}: processor", measured.share, "% of a core")


def _watch(
    found: Stage, size: int, seconds: int, *, plain: bool = False, typing: bool = False
) -> Measured:
    probes = _PROBES * seconds
    board = found.board(size, probes=probes, steady=STEADY)
    with (found.plain if plain else found.dashboard)(board) as terminal:
        terminal.wait(words("first"))
        if plain:
            time.sleep(found.pause)
        else:
            found.settle(terminal)
        here, cpu, start = len(terminal.written), terminal.cpu(), time.monotonic()
        with found.fleet("churn", board, size, _RATE, seconds, probes) as fleet:
            keys = _type(terminal, lambda: time.monotonic() < start + seconds) if typing else []
            told = json.loads(fleet.communicate()[0])
        took = time.monotonic() - start
        share = 100 * (terminal.cpu() - cpu) / took
        time.sleep(1)
        seen = [_latency(terminal, ident, at, here) for ident, at in told["renamed"].items()]
    return Measured(
        percentile(seen, 50), percentile(seen, 99), share, tuple(keys), told["made"] / took
    )


def _latency(terminal: Terminal, ident: str, at: float, start: int) -> float:
    """Seconds from a probe's rename to its id on the terminal; a second where it never came."""
    found = terminal.when(ident.encode(), start)
    return found[1] - at if found is not None else 1.0


def _type(terminal: Terminal, going_on: Callable[[], bool]) -> list[float]:
    """Move the cursor up and down; each time until it stands on the line where it belongs."""
    chance, line, down, times = random.Random(1), 0, True, []
    while going_on():
        down = line == 0 or (down and line < _LINES)
        line += 1 if down else -1
        here, at = terminal.send("j" if down else "k")
        times.append(terminal.wait(_cursor_on(line), here, 5.0) - at)
        time.sleep(chance.uniform(0.5, 1.5) * _TYPE)
    return times


def _cursor_on(line: int) -> bytes:
    """The cursor's line is bold, and no other of its table is."""
    return rb"\x1b\[1;[0-9;]*m[^\x1b]*steady-%02d" % line
