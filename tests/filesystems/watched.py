"""How soon a dashboard on one mount knows what a worker did over another."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from threading import Condition

import dibs
from dibs_tui.reader import Reader
from tests.patience import PATIENCE


def latencies(near: Path, far: Path, rounds: int, seed: int = 1) -> dict[str, list[float]]:
    """Seconds until each claim, beat and commit over `near` is told by a reader on `far`."""
    board = dibs.open(near, create=True)
    for n in range(rounds):
        board.add(f"watched-{n}")
    found: dict[str, list[float]] = defaultdict(list)
    chance = random.Random(seed)
    with _Watch(far) as watch:
        for _ in range(rounds):
            time.sleep(chance.uniform(0, 1))  # it may fall anywhere between two looks
            start = time.monotonic()
            claim = board.claim(owner="worker")
            assert claim is not None
            found["claim"].append(watch.seen(claim.task.name) - start)
            time.sleep(chance.uniform(1.1, 1.6))  # a tick of whole seconds has passed
            before, start = watch.beats[claim.task.name], time.monotonic()
            claim.beat()
            found["beat"].append(watch.beaten(claim.task.name, before) - start)
            time.sleep(chance.uniform(0, 1))
            start = time.monotonic()
            found["done"].append(watch.seen(claim.done().name) - start)
    return dict(found)


def watched(ways: Sequence[Path], rounds: int = 20) -> str:
    """The same, from the first of these ways to the last, in a line."""
    found = latencies(ways[0], ways[-1], rounds)
    told = (f"{what} {max(took):.2f} s" for what, took in found.items())
    return f"a dashboard on the other mount, {rounds} times each, at the latest: {', '.join(told)}"


class _Watch:
    """A dashboard's reader, and when it first told of each name and each beat."""

    def __init__(self, path: Path) -> None:
        self.beats: dict[str, int] = defaultdict(int)
        self._came: dict[str, float] = {}
        self._news = Condition()
        self._reader = Reader(str(path))
        self._reader.drawn.set()
        self._reader.notify = self._take

    def __enter__(self) -> _Watch:
        self._reader.start()
        self.seen("watched-0.available")
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.stop()
        self._reader.join(PATIENCE)

    def seen(self, name: str) -> float:
        """When a name was told, as soon as it is."""
        with self._news:
            assert self._news.wait_for(lambda: name in self._came, PATIENCE), f"{name}: not seen"
            return self._came[name]

    def beaten(self, name: str, before: int) -> float:
        """When a later beat than that was told, which is now."""
        with self._news:
            later = self._news.wait_for(lambda: self.beats[name] > before, PATIENCE)
            assert later, f"no beat of {name} was seen"
            return time.monotonic()

    def _take(self) -> None:
        with self._news:
            while not self._reader.found.empty():
                seen = self._reader.found.get()
                for task in seen.came:
                    self._came.setdefault(task.name, time.monotonic())
                for name, facts in seen.facts.items():
                    self.beats[name] = facts.beat
            self._news.notify_all()
