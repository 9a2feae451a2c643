"""Writes to the terminal, and knows when the terminal has taken what was written.

The kernel, ssh and the network buffer many kilobytes, which take seconds on a slow link. So each
frame ends with a query for the cursor position: the answer says that everything before it has
arrived. For a terminal that never answers, the speed is measured once those buffers are full.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Condition, Thread

ASK = "\x1b[6n"
_PIECE = 1024
_LOST = 5.0
"""Seconds to wait for an answer: the user may have attached another terminal meanwhile."""
_SOON = 0.1
"""Seconds of output that may be in transit when more is sent."""
_LEAST = 1024
_ENOUGH = 4096
"""Bytes that are enough to measure the speed; fewer may all have gone into a buffer."""
_SLOWEST = 1000.0
_LONGEST = 2.0
_MOST = 1 << 20


class Link(Thread):
    """Writes to one terminal; everything but `run` is called in the app's thread."""

    def __init__(self, fd: int, written: Callable[[], object]) -> None:
        super().__init__(name="dibs-output", daemon=True)
        self._fd = _own(fd)
        self._written = written
        self._queue: list[bytes] = []
        self._news = Condition()
        self._ended = False
        self._answers = False
        self._asked = 0.0
        self._rate = 0.0
        """Bytes per second; 0 while the terminal has always taken everything at once."""
        self._nearest = inf
        """The shortest time that an answer took, in seconds: the round trip."""
        self._backlog = 0.0
        """An estimate of the bytes that the terminal has not taken yet."""
        self._at = 0.0

    def send(self, text: str, *, ask: bool = False) -> None:
        """Queue text; with `ask`, query the terminal so that it says when it has taken it."""
        data = text.encode("utf-8", "replace")
        now = time.monotonic()
        with self._news:
            if ask:
                self._asked = now
                data += ASK.encode()
            self._decay(now)
            self._backlog += len(data)
            self._queue.append(data)
            self._news.notify()

    def answered(self) -> None:
        """Note that the terminal has taken everything sent before the query."""
        now = time.monotonic()
        with self._news:
            if self._asked:
                took = now - self._asked
                self._nearest = min(self._nearest, took)
                self._learn(self._backlog, took - self._nearest)
            self._answers, self._asked = True, 0.0
            self._backlog = 0.0

    @property
    def asked(self) -> bool:
        """Whether a query is not answered yet."""
        return bool(self._asked)

    def wait(self) -> float:
        """Seconds to wait before sending more; longer than needed where the speed is unknown."""
        now = time.monotonic()
        with self._news:
            if self._queue:
                return 1.0
            if self._answers:
                return max(0.0, self._asked + _LOST - now) if self._asked else 0.0
            self._decay(now)
            late = self._backlog / self._rate - _SOON if self._rate else 0.0
            return min(max(0.0, late), _LONGEST)

    def room(self) -> int:
        """How many bytes the terminal takes soon."""
        with self._news:
            return max(_LEAST, int(self._rate * _SOON)) if self._rate else _MOST

    def end(self, seconds: float) -> None:
        """Write what is left, if the terminal takes it within `seconds`."""
        with self._news:
            self._ended = True
            self._news.notify()
        self.join(seconds)

    # The thread

    def run(self) -> None:
        """Write until `end` is called or the terminal is gone."""
        while True:
            with self._news:
                while not self._queue and not self._ended:
                    self._news.wait()
                if not self._queue:
                    break
                data = b"".join(self._queue)
            if not self._write(data):
                break
            self._written()
        if self._fd > 2:
            os.close(self._fd)

    def _write(self, data: bytes) -> bool:
        """Write all of it, then empty the queue; False if the terminal is gone."""
        count, view, left, full = len(data), memoryview(data), 0, 0.0
        while view:
            try:
                sent = os.write(self._fd, view[:_PIECE])
            except BlockingIOError:
                full = full or time.monotonic()
                left = left or len(view)
                select.select([], [self._fd], [], 0.5)
                continue
            except InterruptedError:
                continue
            except OSError:
                return False
            view = view[sent:]
        now = time.monotonic()
        with self._news:
            rest = b"".join(self._queue)[count:]
            self._queue = [rest] if rest else []
            if not self._answers:
                self._learn(left, now - full if full else 0.0)
            self._at = now
        return True

    def _learn(self, size: float, seconds: float) -> None:
        """Note how long `size` bytes took beyond the round trip; 0 seconds: taken at once."""
        if seconds > _SOON:
            if size >= _ENOUGH:
                self._rate = max(_SLOWEST, size / seconds)
            return
        self._rate += self._rate / 8  # the link may be faster now
        if self._rate > _MOST:
            self._rate = 0.0

    def _decay(self, now: float) -> None:
        """Subtract what the terminal must have taken since the last update."""
        if self._rate:
            self._backlog = max(0.0, self._backlog - self._rate * (now - self._at))
        elif now - self._at > 1.0:
            self._backlog = 0.0
        self._at = now


def _own(fd: int) -> int:
    """Open the terminal again, so that other processes' writes do not become non-blocking."""
    with suppress(OSError):
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return fd
