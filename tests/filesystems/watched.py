"""How soon a dashboard on one mount shows what a worker did over another."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from threading import Condition

import dibs
from dibs.files.reader_thread import watch_directory
from dibs.model.delta import Delta
from dibs_tui.source.file_events import FileEvents
from tests.patience import PATIENCE


def latencies(near: Path, far: Path, rounds: int, seed: int = 1) -> dict[str, list[float]]:
    """Seconds until each claim, beat and commit over `near` is reported by a watch on `far`."""
    board = dibs.open(near, create=True)
    for n in range(rounds):
        board.add(f"watched-{n}")
    found: dict[str, list[float]] = defaultdict(list)
    chance = random.Random(seed)
    with _Watch(far) as watch:
        for _ in range(rounds):
            time.sleep(chance.uniform(0, 1))  # the change may fall anywhere between two looks
            start = time.monotonic()
            claim = board.claim(owner="worker")
            assert claim is not None
            found["claim"].append(watch.seen(claim.task.name) - start)
            time.sleep(chance.uniform(1.1, 1.6))  # a tick of full seconds has passed
            before, start = watch.beats[claim.task.name], time.monotonic()
            claim.beat()
            found["beat"].append(watch.beaten(claim.task.name, before) - start)
            time.sleep(chance.uniform(0, 1))
            start = time.monotonic()
            found["done"].append(watch.seen(claim.done().name) - start)
    return dict(found)


def watched(ways: Sequence[Path], rounds: int = 20) -> str:
    """The latencies from the first of these paths to the last, as a line."""
    found = latencies(ways[0], ways[-1], rounds)
    times = (f"{what} {max(took):.2f} s" for what, took in found.items())
    return f"a dashboard on the other mount, {rounds} times each, at the latest: {', '.join(times)}"


class _Watch:
    """A dashboard's watch, and when it first reported each name and each beat."""

    def __init__(self, path: Path) -> None:
        self.beats: dict[str, int] = defaultdict(int)
        self._path = path
        self._came: dict[str, float] = {}
        self._news = Condition()

    def __enter__(self) -> _Watch:
        self._watch = watch_directory(self._path, self._take, FileEvents)
        self.seen("watched-0.available")
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.stop(PATIENCE)

    def seen(self, name: str) -> float:
        """Wait for a name; returns when it was reported."""
        with self._news:
            assert self._news.wait_for(lambda: name in self._came, PATIENCE), f"{name}: not seen"
            return self._came[name]

    def beaten(self, name: str, before: int) -> float:
        """Wait for a later beat; returns when it was reported."""
        with self._news:
            later = self._news.wait_for(lambda: self.beats[name] > before, PATIENCE)
            assert later, f"no beat of {name} was seen"
            return time.monotonic()

    def _take(self, delta: Delta) -> None:
        with self._news:
            for task in delta.added:
                self._came.setdefault(task.name, time.monotonic())
            for name, holder in delta.holders.items():
                self.beats[name] = holder.beat
            self._news.notify_all()
