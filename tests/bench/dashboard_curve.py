"""Does a change, or a frame, cost more where there are more tasks?"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator

from dibs import Sample, Task
from dibs.names import read
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.memory import Remembered
from dibs_tui.model.seen import Seen
from dibs_tui.reader import Reader
from tests.bench.dashboard_setup import Stage, share, stage
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup
from tests.bench.pty_terminal import COLUMNS, ROWS

TITLE = "Dashboard: the length of the board"

_SHORT = 1_000
_CHANGES = 10
_SHOWN = 5
"""How many of the changes are to the first rows, so that they must be painted."""
_FRAME = 0.04
"""Seconds after which a frame that is due has been made."""


def run(setup: Setup) -> Iterator[Row]:
    sizes = (_SHORT, 10_000, 100_000, 1_000_000)[: setup.amount(4, 3)]
    times = {size: asyncio.run(_costs(size, setup.amount(60, 15))) for size in sizes}
    for size in sizes[1:]:
        yield compare(
            f"{_CHANGES} changes taken over and painted, {size:,} tasks",
            times[size],
            f"with {_SHORT:,}",
            times[_SHORT],
            Limit("at most", 1.5),
        )
    with stage(setup) as found:
        yield _rescan(found, setup.amount(1_000_000, 100_000), setup.amount(100, 4))


async def _costs(size: int, rounds: int) -> list[float]:
    """Processor seconds of each round, from what a reader tells until the frame is made."""
    reader = Reader("/nowhere")
    tasks = {task.name: task for n in range(size) if (task := _task(n, 0))}
    reader.tasks.update(tasks)
    reader.found.put(Seen(came=tuple(tasks.values()), now=Sample(10**18, 10**12)))
    app = DibsApp(reader, Config(still=0), remembered=Remembered())
    lives, chance, spent = [0] * size, random.Random(1), []
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        gc.freeze()
        await pilot.pause(0.5)
        for _ in range(rounds):
            numbers = [*range(_SHOWN), *chance.sample(range(_SHOWN, size), _CHANGES - _SHOWN)]
            start = time.process_time()
            reader.found.put(_change(reader, lives, numbers))
            reader.notify()
            await asyncio.sleep(_FRAME)
            spent.append(time.process_time() - start)
    return spent


def _task(number: int, life: int) -> Task:
    task = read(f"task-{number:07}.f{life}.available" if life else f"task-{number:07}.available")
    assert task is not None
    return task


def _change(reader: Reader, lives: list[int], numbers: list[int]) -> Seen:
    """Each of these tasks comes back under another name, as after a claim that was given back."""
    went = tuple(_task(n, lives[n]) for n in numbers)
    for n in numbers:
        lives[n] += 1
    came = tuple(_task(n, lives[n]) for n in numbers)
    for task in went:
        del reader.tasks[task.name]
    reader.tasks.update({task.name: task for task in came})
    return Seen(came=came, went=went)


def _rescan(found: Stage, size: int, seconds: float) -> Row:
    """A change a second leaves little to do but to list the board anew, now and then."""
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
        note=f"{busy:.2f} % in all, {idle:.2f} % when nothing changes",
    )
