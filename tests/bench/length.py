"""Does a claim cost more where more tasks wait?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dibs
from tests.bench.harness import Limit, Row, compare
from tests.bench.places import Setup, offer, scratch

TITLE = "Length of the queue"

_SHORT = 1_000
_CLAIMS = 20_000


class Queue:
    """A board that is kept at one length while it is worked on."""

    def __init__(self, where: Path, length: int) -> None:
        dibs.open(where, create=True)
        self.where = where
        self.length = length
        self.serial = 0
        self.left = 0
        self.refill()
        self.board = dibs.open(where)

    def refill(self) -> None:
        offer(self.where, self.serial, self.length - self.left)
        self.serial += self.length - self.left
        self.left = self.length

    def claims(self, count: int) -> float:
        """Seconds per claim, every scan included; done and refilling are not."""
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
        first = {length: queue.claims(1) for length, queue in queues.items()}
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
        yield compare(
            f"the very first claim of a process with {length:,} waiting",
            [first[length]],
            against,
            [first[_SHORT]],
        )
