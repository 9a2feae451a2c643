"""Keeps what a command prints in a separate thread, so that the command never waits for storage.

The first half of the limit is buffered until it is written. Of what follows only the end matters,
so while the disk is slower than the command, or hangs, the oldest part is dropped and is a gap.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs.model.errors import DibsError

if TYPE_CHECKING:
    from dibs.protocols import OutputKeeper

_REST = 0.05
"""Seconds between two writes, so that a fast command costs no more writes than a slow one."""


class OutputLog(threading.Thread):
    """Collects the output of one claim and hands it to its keeper."""

    def __init__(self, keeper: OutputKeeper, limit: int, complain: Callable[[str], object]) -> None:
        super().__init__(daemon=True)
        self._keeper = keeper
        self._complain = complain
        self._half = limit // 2
        self._lock = threading.Lock()
        self._called, self._ended = threading.Event(), threading.Event()
        self._first: list[bytes] = []
        self._room = self._half
        """How much of the beginning is not printed yet."""
        self._last: deque[bytes] = deque()
        self._held = 0
        self._offset = 0
        """How much was printed."""
        self._failed = False
        self.start()

    def offer(self, data: bytes) -> None:
        """Take what was printed; never waits for storage."""
        with self._lock:
            self._offset += len(data)
            if self._room:
                part = data[: self._room]
                self._first.append(part)
                self._room -= len(part)
                data = data[len(part) :]
            if data:
                self._last.append(data)
                self._held += len(data)
                while self._held - len(self._last[0]) >= self._half:
                    self._held -= len(self._last.popleft())
        self._called.set()

    def finish(self, seconds: float) -> None:
        """Write what is left, for this long at most; a disk that hangs is not waited for."""
        self._ended.set()
        self._called.set()
        self.join(seconds)

    def run(self) -> None:
        """Write what was collected, again and again."""
        while True:
            self._called.wait()
            ended = self._ended.is_set()
            self._called.clear()
            self._write()
            if ended:
                return
            self._ended.wait(_REST)

    def _write(self) -> None:
        with self._lock:
            first, self._first = b"".join(self._first), []
            begin = self._half - self._room - len(first)
            last, end = list(self._last), self._offset
            self._last.clear()
            self._held = 0
        data = b"".join(last)
        data = data[max(0, len(data) - self._half) :]
        for part, at in ((first, begin), (data, end - len(data))):
            if part:
                self._keep(part, at)

    def _keep(self, part: bytes, at: int) -> None:
        try:
            self._keeper.keep(part, at)
        except DibsError as error:
            if not self._failed:
                self._complain(f"a part of the output was not kept: {error}")
            self._failed = True
