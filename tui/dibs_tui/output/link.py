"""The way to the terminal: bytes go out as fast as it takes them, and it says when it has.

The kernel, an ssh and a network keep many kilobytes in between, which take seconds on a slow link.
So the terminal is asked where its cursor is, behind each piece: its answer says that all before was
taken. One that never answers is judged by how fast it takes bytes once these buffers are full.
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
"""Seconds after which an answer is not waited for: a terminal may have been changed for another."""
_SOON = 0.1
"""Seconds of output that may be under way when more is sent."""
_LEAST = 1024
_ENOUGH = 4096
"""Bytes that say how fast the link is: of fewer, most may have gone into some buffer."""
_SLOWEST = 1000.0
_LONGEST = 2.0
_MOST = 1 << 20


class Link(Thread):
    """Writes to one terminal; all but `run` is called in the app's own thread."""

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
        """Bytes a second; 0 as long as the terminal has always taken all at once."""
        self._nearest = inf
        """The least seconds that an answer took: the way there and back."""
        self._backlog = 0.0
        """Bytes that the terminal has not taken yet, as far as can be told."""
        self._at = 0.0

    def send(self, text: str, *, ask: bool = False) -> None:
        """Write that next; with `ask` the terminal is to say when it has taken it."""
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
        """The terminal has taken all that was sent before it was asked."""
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
        """Whether an answer is due that may come."""
        return bool(self._asked)

    def wait(self) -> float:
        """Seconds to leave until more is sent; 0 for now, and more than enough if nobody knows."""
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
        """How many bytes are taken soon."""
        with self._news:
            return max(_LEAST, int(self._rate * _SOON)) if self._rate else _MOST

    def end(self, seconds: float) -> None:
        """Write what is left, if the terminal takes it in time."""
        with self._news:
            self._ended = True
            self._news.notify()
        self.join(seconds)

    # The thread

    def run(self) -> None:
        """Write until the end, or until the terminal is gone."""
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
        """All of it; false where the terminal is gone. The queue is emptied when it was written."""
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
        """So many bytes took so long, beyond the way there and back; 0 where all went at once."""
        if seconds > _SOON:
            if size >= _ENOUGH:
                self._rate = max(_SLOWEST, size / seconds)
            return
        self._rate += self._rate / 8  # it may be another link by now
        if self._rate > _MOST:
            self._rate = 0.0

    def _decay(self, now: float) -> None:
        """What the terminal must have taken since."""
        if self._rate:
            self._backlog = max(0.0, self._backlog - self._rate * (now - self._at))
        elif now - self._at > 1.0:
            self._backlog = 0.0
        self._at = now


def _own(fd: int) -> int:
    """The terminal opened once more, so that nobody else's writes become non-blocking."""
    with suppress(OSError):
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return fd
