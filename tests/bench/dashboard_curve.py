"""Measures whether a change or a frame costs more on a board with more tasks."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator

from dibs import Sample, Task
from dibs.model.delta import Delta
from dibs.model.names import read
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from tests.bench.dashboard_setup import Stage, share, stage
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup
from tests.bench.pty_terminal import COLUMNS, ROWS

TITLE = "Dashboard: the length of the board"

_SHORT = 1_000
_CHANGES = 10
_SHOWN = 5
"""The number of changes to the first rows, which must be drawn."""
_FRAME = 0.04
"""Seconds after which a due frame has been drawn."""


def run(setup: Setup) -> Iterator[Row]:
    sizes = (_SHORT, 10_000, 100_000, 1_000_000)[: setup.amount(4, 3)]
    times = {size: asyncio.run(_costs(size, setup.amount(60, 15))) for size in sizes}
    for size in sizes[1:]:
        yield compare(
            f"{_CHANGES} changes applied and drawn, {size:,} tasks",
            times[size],
            f"with {_SHORT:,}",
            times[_SHORT],
            Limit("at most", 1.5),
        )
    with stage(setup) as found:
        yield _rescan(found, setup.amount(1_000_000, 100_000), setup.amount(100, 4))


async def _costs(size: int, rounds: int) -> list[float]:
    """The processor seconds of each round, from the report of a watch to the frame."""
    source = BoardSource("/nowhere")
    source.drawn()
    source.put(Delta(added=tuple(_task(n, 0) for n in range(size)), now=Sample(10**18, 10**12)))
    app = DibsApp(source, Config(still=0), remembered=Remembered())
    lives, chance, spent = [0] * size, random.Random(1), []
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        gc.freeze()
        await pilot.pause(0.5)
        for _ in range(rounds):
            numbers = [*range(_SHOWN), *chance.sample(range(_SHOWN, size), _CHANGES - _SHOWN)]
            start = time.process_time()
            source.put(_change(lives, numbers))
            await asyncio.sleep(_FRAME)
            spent.append(time.process_time() - start)
    return spent


def _task(number: int, life: int) -> Task:
    task = read(f"task-{number:07}.f{life}.available" if life else f"task-{number:07}.available")
    assert task is not None
    return task


def _change(lives: list[int], numbers: list[int]) -> Delta:
    """The tasks return under other names, as after claims that were released."""
    went = tuple(_task(n, lives[n]) for n in numbers)
    for n in numbers:
        lives[n] += 1
    came = tuple(_task(n, lives[n]) for n in numbers)
    return Delta(added=came, removed=went)


def _rescan(found: Stage, size: int, seconds: float) -> Row:
    """With one change a second, most of the work is to list the board again from time to time."""
    board = found.board(size)
    with found.dashboard(board) as terminal:
        found.settle(terminal)
        idle = share(terminal, seconds / 2)
        with found.fleet("churn", board, size, 1, 10 * seconds, 0):
            busy = share(terminal, seconds)
    return Row(
        f"reconciling rescans of {size:,} tasks, which change once a second",
        max(0.0, busy - idle),
        "% of a core",
        limit=Limit("at most", 5, "measured"),
        note=f"{busy:.2f} % in total, {idle:.2f} % when nothing changes",
    )
