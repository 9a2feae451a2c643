"""Eight processes on one board: no herd."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path

import dibs
from dibs.files.disk import Disk
from tests.bench.harness import Limit, Row, compare, spread
from tests.bench.places import Setup, add_tasks, others_busy, scratch

TITLE = "Many processes"

_MANY = 8


class Broken(Exception):
    """The processes did not do all the work, so the run gives no measure."""


def run(setup: Setup) -> Iterator[Row]:
    tasks = setup.amount(20_000, 4_000)
    others = others_busy()
    rates: dict[int, list[float]] = {1: [], 2: [], _MANY: []}
    try:
        for turn in range(setup.amount(9, 3)):
            for workers in rates if turn % 2 else reversed(rates):
                with scratch(setup.ram) as where:
                    rates[workers].append(_rate(where, workers, tasks))
    except Broken as error:
        yield Row(f"{_MANY} processes, claim and done", note=str(error))
        return
    for workers in (_MANY, 2):
        yield compare(
            f"{workers} processes on {os.cpu_count()} cores, claim and done",
            rates[workers],
            "one process",
            rates[1],
            Limit("at least", 1.0) if workers == _MANY else None,
            unit="/s",
            note=f"{others:.1f} cores were busy with something else" if others > 0.2 else "",
        )
    lost = []
    for _ in range(setup.amount(3, 1)):
        with scratch(setup.ram) as where:
            lost.append(_lost(where, tasks) / tasks)
    yield Row(f"renames lost to another of {_MANY} processes, for each claim", spread(lost).mid, "")


def _rate(where: Path, workers: int, tasks: int) -> float:
    """Claims per second from the common start until the last process finds no task."""
    dibs.open(where, create=True)
    add_tasks(where, 0, tasks)
    fork = multiprocessing.get_context("fork")
    gate = fork.Barrier(workers + 1)
    crowd = [fork.Process(target=_work, args=(where, gate)) for _ in range(workers)]
    for process in crowd:
        process.start()
    gate.wait()
    start = time.perf_counter()
    for process in crowd:
        process.join()
    spent = time.perf_counter() - start
    died = sum(process.exitcode != 0 for process in crowd)
    done = len(os.listdir(where / "done"))
    if died or done != tasks:
        raise Broken(
            f"of {workers} workers {died} died with a traceback, and the others found no more "
            f"tasks when {done:,} of {tasks:,} tasks were done"
        )
    return tasks / spent


def _work(where: Path, gate: Barrier) -> None:
    board = dibs.open(where)
    gate.wait()
    while claim := board.claim(owner="bench"):
        claim.done()


def _lost(where: Path, tasks: int) -> int:
    """The number of renames that came too late, counted in a separate run."""
    marks = where / "lost"
    marks.touch()
    rename = Disk.rename

    def counted(self: Disk, src: str, dst: str, keep: bool = False) -> None:
        try:
            rename(self, src, dst, keep)
        except FileNotFoundError:
            with marks.open("ab", buffering=0) as file:
                file.write(b"x")
            raise

    Disk.rename = counted  # type: ignore[method-assign]
    try:
        board = where / "board"
        _rate(board, _MANY, tasks)
    finally:
        Disk.rename = rename  # type: ignore[method-assign]
    return marks.stat().st_size
