"""Measures whether a claim costs more on a longer queue."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dibs
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup, add_tasks, scratch

TITLE = "Length of the queue"

_SHORT = 1_000
_CLAIMS = 20_000
_FIRST = """\
import json, os, sys, time
import dibs, dibs.files.engine

clock, where = time.perf_counter, sys.argv[1]
start = clock()
os.listdir(where)
listed = clock() - start
board = dibs.open(where)
start = clock()
claim = board.claim(owner="bench")
print(json.dumps([listed, clock() - start]))
claim.release()
"""
"""A process that claims once; it prints the time of a bare listing and of the claim."""


class Queue:
    """A board with a queue of constant length while tasks are claimed."""

    def __init__(self, where: Path, length: int) -> None:
        dibs.open(where, create=True)
        self.where = where
        self.length = length
        self.serial = 0
        self.left = 0
        self.refill()
        self.board = dibs.open(where)

    def refill(self) -> None:
        add_tasks(self.where, self.serial, self.length - self.left)
        self.serial += self.length - self.left
        self.left = self.length

    def claims(self, count: int) -> float:
        """The seconds per claim, including every scan, without done and refilling."""
        spent = 0.0
        clock = time.perf_counter
        for _ in range(count):
            if self.left <= self.length // 2:
                self.refill()
            start = clock()
            claim = self.board.claim(owner="bench")
            spent += clock() - start
            assert claim is not None
            claim.done()
            self.left -= 1
        return spent / count


def run(setup: Setup) -> Iterator[Row]:
    rounds = setup.amount(5, 3)
    limits = {100_000: Limit("at most", 1.5), 1_000_000: Limit("at most", 2.0)}
    if setup.quick:
        del limits[1_000_000]
    with scratch(setup.ram) as where:
        lengths = (_SHORT, *limits)
        queues = {}
        for length in lengths:
            folder = where / str(length)
            folder.mkdir()
            queues[length] = Queue(folder, length)
        for queue in queues.values():
            queue.claims(1)
        times: dict[int, list[float]] = {length: [] for length in lengths}
        for turn in range(rounds):
            for length in lengths if turn % 2 else reversed(lengths):
                times[length].append(queues[length].claims(setup.amount(_CLAIMS, 5_000)))
    against = f"the same with {_SHORT:,} waiting"
    for length, limit in limits.items():
        yield compare(
            f"claim with {length:,} waiting, scans included",
            times[length],
            against,
            times[_SHORT],
            limit,
        )
    yield from _first_claims(setup)


def _first_claims(setup: Setup) -> Iterator[Row]:
    """Measure the first claim of a process, as each `dibs claim` of a shell is."""
    with scratch(setup.ram) as where:
        firsts = {}
        for length in (_SHORT, 100_000):
            board = where / str(length)
            dibs.open(board, create=True)
            numbers = list(range(length))
            random.Random(1).shuffle(numbers)  # directories do not guarantee an order of the names
            for number in numbers:
                add_tasks(board, number, 1)
            firsts[length] = [_first(board) for _ in range(setup.amount(15, 5))]
    claims = [claim for _, claim in firsts[_SHORT]]
    bare = [listed + claim for (listed, _), claim in zip(firsts[100_000], claims, strict=True)]
    yield compare(
        "the first claim of a process with 100,000 waiting",
        [claim for _, claim in firsts[100_000]],
        "a bare os.listdir of them, and the same with 1,000 waiting",
        bare,
        Limit("at most", 2.0),
    )


def _first(board: Path) -> tuple[float, float]:
    command = [sys.executable, "-c", _FIRST, str(board)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, check=True, capture_output=True, env=env)
    listed, claim = json.loads(done.stdout)
    return listed, claim
