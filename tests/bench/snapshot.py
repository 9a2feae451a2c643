"""Reading a board: only its names, one change at a time, and completely."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from dibs.files.board_index import BoardIndex
from dibs.files.engine import FilesBoard, open_directory
from tests.bench.harness import Contender, Limit, Row, compare, interleave, spread
from tests.bench.places import Setup, add_tasks, scratch

TITLE = "Snapshots"

_TASKS = 100_000
_SHARE = 0.05
"""The share of a core that the reconciling rescan may use on average."""


class Looking:
    """One way to read a board repeatedly."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def fill(self, count: int) -> None:
        gc.collect()

    def run(self, count: int) -> None:
        for _ in range(count):
            self.look()


def run(setup: Setup) -> Iterator[Row]:
    many = setup.amount(1_000_000, _TASKS)
    with scratch(setup.ram) as where:
        waiting, mixed, short, long = (where / name for name in ("waiting", "mixed", "1k", "long"))
        for board in (waiting, mixed, short, long):
            open_directory(board, create=True)
        add_tasks(waiting, 0, _TASKS)
        _mix(mixed)
        add_tasks(short, 0, 1_000)
        add_tasks(long, 0, many)
        yield from _snapshots(setup, waiting, f"{_TASKS:,} waiting tasks")
        yield from _snapshots(setup, mixed, f"{_TASKS:,} tasks in every state")
        yield from _one_change(setup, short, long, many)
        yield _rescan(setup, long, many)


def _snapshots(setup: Setup, where: Path, what: str) -> Iterator[Row]:
    board = open_directory(where)
    contenders: dict[str, Contender] = {
        "names": Looking(lambda: board.view().scan()),
        "scandir": Looking(lambda: _scandir(where)),
        "facts": Looking(board.snapshot),
    }
    times = interleave(contenders, setup.amount(15, 4), 1)
    yield compare(
        f"names-only snapshot of {what}",
        times["names"],
        "os.scandir of the same",
        times["scandir"],
        Limit("at most", 5.0),
    )
    yield Row(
        f"memory for each of {what}",
        _memory(lambda: _names(board)) / _TASKS,
        "bytes",
        limit=Limit("at most", 500, "measured"),
    )
    yield compare(
        f"snapshot with the facts of every claim of {what}",
        times["facts"],
        "names only",
        times["names"],
    )


def _one_change(setup: Setup, short: Path, long: Path, many: int) -> Iterator[Row]:
    hints: dict[str, Contender] = {}
    pictures: dict[str, Contender] = {}
    for name, where in (("short", short), ("long", long)):
        changing = _Changing(where)
        hints[name] = Looking(changing.hint)
        pictures[name] = Looking(changing.picture)
    for what, contenders, chunk, limit in (
        ("one change taken over", hints, 500, Limit("at most", 1.5)),
        ("one change and a new snapshot", pictures, 1, None),
    ):
        times = interleave(contenders, setup.amount(25, 5), chunk)
        yield compare(
            f"{what}, {many:,} waiting", times["long"], "with 1,000", times["short"], limit
        )


class _Changing:
    """A board on which one task comes and goes, and a view that gets a hint each time."""

    def __init__(self, where: Path) -> None:
        self.view = open_directory(where).view()
        self.view.scan()
        self.name = "comes-and-goes.available"
        self.path = where / self.name
        self.there = False

    def hint(self) -> None:
        if self.there:
            self.path.unlink()
        else:
            self.path.touch()
        self.there = not self.there
        assert self.view.hint([self.name])

    def picture(self) -> None:
        self.hint()
        self.view.snapshot()


def _rescan(setup: Setup, where: Path, many: int) -> Row:
    view = open_directory(where).view()
    view.scan()
    spent, shares = [], []
    for n in range(setup.amount(7, 3)):
        (where / f"new-{n}.available").touch()
        start = time.process_time()
        assert view.scan()
        spent.append(time.process_time() - start)
        shares.append(100 * spent[-1] / (spent[-1] + view.rest))
    return Row(
        f"reconciling rescan of {many:,} tasks, as often as `BoardIndex.rest` allows",
        spread(shares).mid,
        "% of a core",
        limit=Limit("at most", 100 * _SHARE, "measured"),
        note=f"one takes {spread(spent).mid:.2g} s and rests for {view.rest:.0f} s",
    )


def _names(board: FilesBoard) -> BoardIndex:
    view = board.view()
    view.scan()
    return view


def _memory(make: Callable[[], object]) -> float:
    """The bytes that stay allocated while the result is alive."""
    gc.collect()
    tracemalloc.start()
    try:
        held = make()
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        del held
        return size
    finally:
        tracemalloc.stop()


def _scandir(where: Path) -> None:
    for folder in (where, where / "done", where / "failed"):
        with os.scandir(folder) as entries:
            for _ in entries:
                pass


def _mix(where: Path) -> None:
    """Fill a board as after some weeks: stamps, priorities, claims, and a fifth finished."""
    for n in range(_TASKS):
        claim = f"worker-{n % 200}-{n:010X}"
        match n % 20:
            case 0 | 1 | 2 | 3:
                name = f"done/task-{n:07}.f{n % 3 + 1}.{claim}"
            case 4:
                name = f"failed/task-{n:07}.f5a5.{claim}"
            case 5 | 6:
                name = f"task-{n:07}.f2p{n % 5}.{claim}.claimed"
            case 7 | 8 | 9:
                name = f"task-{n:07}.f1a1p9.available"
            case _:
                name = f"task-{n:07}.available"
        os.close(os.open(where / name, os.O_CREAT | os.O_WRONLY, 0o666))
