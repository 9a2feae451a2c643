"""The dashboard while another process changes the board a thousand times a second."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
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
"""Seconds between two probes: tasks that move to the top, where they are visible."""
_LINES = 12
_TYPE = 0.1
_LETTERS = "\u0436\u0444\u0449\u044e\u044f\u0451\u0454\u0457\u0491\u0452"
_WORD, _LOOK = 5, 0.3
"""After this many letters of a filter so many seconds pass."""
_CLEAR = "\x15"
Keys = Callable[[Terminal, Callable[[], bool]], list[float]]
"""Presses keys while it goes on; returns how long each took."""


class Measured(NamedTuple):
    """The result of one run of one program."""

    p50: float
    p99: float
    share: float
    """The share of a core, in percent."""
    keys: tuple[float, ...] = ()
    made: float = _RATE


def run(setup: Setup) -> Iterator[Row]:
    seconds = setup.amount(30, 2)
    with stage(setup) as found:
        for size in (1_000, 10_000)[setup.amount(0, 1) :]:
            rounds = setup.amount(3, 1) if size == _JUDGED else 1
            ours = [watch(found, size, seconds) for _ in range(rounds)]
            plain = [watch(found, size, seconds, plain=True) for _ in range(rounds)]
            yield from _rows(size, ours, plain, found.note)
        for size in (10_000, 100_000)[: setup.amount(2, 1)]:
            yield from _typed(size, watch(found, size, seconds, keys=_type), "moving")
            filtered = watch(found, size, seconds, keys=_type_filter)
            yield from _typed(size, filtered, "typing a filter", Limit("below", 15, "measured"))


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


def _typed(size: int, measured: Measured, doing: str, share: Limit | None = None) -> Iterator[Row]:
    what = f"{size:,} tasks, {_RATE:,} changes/s, while {doing}"
    yield Row(f"{what}: a key answered, p50", percentile(measured.keys, 50))
    yield Row(
        f"{what}: a key answered, p99",
        percentile(measured.keys, 99),
        limit=Limit("at most", 0.05, "measured"),
        note=f"{len(measured.keys)} keys, the slowest {max(measured.keys) * 1e3:.0f} ms",
    )
    yield Row(f"{what}: change to screen, p99", measured.p99)
    yield Row(f"{what}: processor", measured.share, "% of a core", limit=share)


def watch(
    found: Stage,
    size: int,
    seconds: int,
    *,
    plain: bool = False,
    keys: Keys | None = None,
    changes: str = "churn",
    served: Callable[[Path], AbstractContextManager[Path | str]] = nullcontext,
) -> Measured:
    """Measure one program, which opens the board in its directory, or where it is `served`."""
    probes = _PROBES * seconds
    board = found.board(size, probes=probes, steady=STEADY)
    with served(board) as where, (found.plain if plain else found.dashboard)(where) as terminal:
        terminal.wait(words("first"))
        if plain:
            time.sleep(found.pause)
        else:
            found.settle(terminal)
        here, cpu, start = len(terminal.written), terminal.cpu(), time.monotonic()
        with found.fleet(changes, board, size, _RATE, seconds, probes) as fleet:
            going_on = partial(_before, start + seconds)
            times = keys(terminal, going_on) if keys is not None else []
            report = json.loads(fleet.communicate()[0])
        took = time.monotonic() - start
        share = 100 * (terminal.cpu() - cpu) / took
        time.sleep(1)
        seen = [_latency(terminal, ident, at, here) for ident, at in report["renamed"].items()]
    return Measured(
        percentile(seen, 50), percentile(seen, 99), share, tuple(times), report["made"] / took
    )


def _latency(terminal: Terminal, ident: str, at: float, start: int) -> float:
    """Seconds from a probe's rename to its id on the terminal; one second if it never came."""
    found = terminal.when(ident.removeprefix("zz-").encode(), start)
    return found[1] - at if found is not None else 1.0


def _type(terminal: Terminal, going_on: Callable[[], bool]) -> list[float]:
    """Move the cursor up and down; the seconds until each move is on the screen."""
    chance, line, down, times = random.Random(1), 0, True, []
    while going_on():
        down = line == 0 or (down and line < _LINES)
        line += 1 if down else -1
        here, at = terminal.send("j" if down else "k")
        times.append(terminal.wait(_cursor_on(line), here, 5.0) - at)
        time.sleep(chance.uniform(0.5, 1.5) * _TYPE)
    return times


def _type_filter(terminal: Terminal, going_on: Callable[[], bool]) -> list[float]:
    """Type filters that match every task; the seconds until each letter is on the screen.

    The letters are on no row, so that the first output of one is the answer to its key. After a
    few letters the typist looks at the rows: then the board is filtered.

    Each filter has another letter at each place: if no frame shows the cleared line in between,
    a letter that stands where it stood before is not written again.
    """
    chance, times, letters = random.Random(1), list[float](), _LETTERS
    terminal.send("/")
    time.sleep(0.5)
    while going_on():
        terminal.send("!")
        time.sleep(_TYPE)
        letters = letters[1:] + letters[:1]
        for n, letter in enumerate(letters):
            here, at = terminal.send(letter)
            times.append(terminal.wait(letter.encode(), here, 5.0) - at)
            time.sleep(chance.uniform(0.5, 1.5) * _TYPE if (n + 1) % _WORD else _LOOK)
        terminal.send(_CLEAR)
        time.sleep(_TYPE)
    return times


def _before(end: float) -> bool:
    return time.monotonic() < end


def _cursor_on(line: int) -> bytes:
    """A pattern for the cursor's line, the only bold one of its table."""
    return rb"\x1b\[1;[0-9;]*m[^\x1b]*steady-%02d" % line
