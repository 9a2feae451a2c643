"""A board that is watched, without a screen: the sum of what the watch reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import dibs
from dibs import Holder, Task, Verdict
from dibs.model.delta import Delta
from dibs.model.health import Health
from dibs.model.hints import HintSource
from tests.patience import PATIENCE


class Watched:
    """Everything reported so far; each read returns a copy."""

    watch: dibs.Watch

    def __init__(self, on_report: Callable[[Delta], object] = lambda delta: None) -> None:
        self._on_report = on_report
        self._lock = Lock()
        self._deltas: list[Delta] = []
        self._tasks: dict[str, Task] = {}
        self._holders: dict[str, Holder] = {}
        self._stale: dict[str, Verdict] = {}
        self.faults: list[str] = []
        """Names that were removed without being added, or added twice."""

    def report(self, delta: Delta) -> None:
        """Apply a difference, in the thread of the watch."""
        with self._lock:
            self._deltas.append(delta)
            for task in delta.removed:
                if self._tasks.pop(task.name, None) is None:
                    self.faults.append(f"{task.name} went and was not there")
            for task in delta.added:
                if task.name in self._tasks:
                    self.faults.append(f"{task.name} came and was there")
                self._tasks[task.name] = task
            self._holders.update(delta.holders)
            for name, verdict in delta.stale.items():
                self._stale.pop(name, None)
                if verdict is not None:
                    self._stale[name] = verdict
        self._on_report(delta)

    @property
    def deltas(self) -> list[Delta]:
        with self._lock:
            return list(self._deltas)

    @property
    def names(self) -> set[str]:
        with self._lock:
            return set(self._tasks)

    @property
    def stale(self) -> dict[str, Verdict]:
        with self._lock:
            return {name: found for name, found in self._stale.items() if name in self._tasks}

    @property
    def holders(self) -> dict[str, Holder]:
        with self._lock:
            return self._holders.copy()

    @property
    def health(self) -> Health:
        return self.watch.health

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"it never came to be: {self.health}"
            time.sleep(0.01)

    def until_live(self) -> None:
        """Wait until the full board was seen."""
        self.until(lambda: self.health.fresh and not self.health.trouble and self.complete)

    @property
    def complete(self) -> bool:
        deltas = self.deltas
        return bool(deltas) and deltas[-1].complete


@contextmanager
def watched(
    path: str | os.PathLike[str],
    hints: HintSource | None = None,
    *,
    poll: float = 0.1,
    read_only: bool = False,
    on_report: Callable[[Delta], object] = lambda delta: None,
) -> Iterator[Watched]:
    """Follow the board at a path for as long as the block lasts."""
    found = Watched(on_report)
    found.watch = dibs.watch(path, found.report, hints, poll=poll, read_only=read_only)
    try:
        yield found
    finally:
        assert found.watch.stop(PATIENCE)
    assert found.faults == []
