"""A program on its own pseudo-terminal: what it writes and when, and its cost."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType

COLUMNS, ROWS = 160, 50


class Terminal:
    """Everything that a program wrote, each piece with the time at which it could be read.

    Searches work on bytes: a parser of terminal output would use a complete core.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], rows: int = ROWS) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
        self.written = bytearray()
        self._pieces: list[tuple[int, float]] = []
        """Pairs of the length of the output and the time."""
        self._over = False
        self._news = Condition()
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, env=dict(env), preexec_fn=partial(os.login_tty, slave)
        )
        os.close(slave)
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        os.close(self._master)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # the last writer has ended
                data = b""
            with self._news:
                self.written += data
                self._pieces.append((len(self.written), time.monotonic()))
                self._over = not data
                self._news.notify_all()
            if not data:
                return

    def send(self, keys: str) -> tuple[int, float]:
        """Press these keys; returns the length of the output and the time."""
        with self._news:
            here = len(self.written)
        at = time.monotonic()
        os.write(self._master, keys.encode())
        return here, at

    def wait(self, pattern: bytes, start: int = 0, timeout: float = 60.0) -> float:
        """Wait for the first match after `start`; returns the time at which it was written."""
        search = re.compile(pattern, re.DOTALL).search
        until = time.monotonic() + timeout
        with self._news:
            while True:
                found = search(self.written, start)
                if found is not None:
                    return self._when(found.end())
                if self._over:
                    raise RuntimeError(f"ended without {pattern!r}: {self.written[-500:]!r}")
                left = until - time.monotonic()
                if left <= 0 or not self._news.wait(left):
                    raise TimeoutError(f"{pattern!r} was not written in {timeout:.0f} s")

    def when(self, marker: bytes, start: int = 0) -> tuple[int, float] | None:
        """The end and the time of the first `marker` after `start` in the output so far."""
        with self._news:
            at = self.written.find(marker, start)
            return None if at < 0 else (at + len(marker), self._when(at + len(marker)))

    def _when(self, length: int) -> float:
        return self._pieces[bisect_left(self._pieces, (length, 0.0))][1]

    # Its cost

    def cpu(self) -> float:
        """The processor seconds of all its threads so far."""
        return time.clock_gettime(
            (~self.process.pid << 3) | 2
        )  # the value of clock_getcpuclockid()

    def rss(self) -> int:
        """Its resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return 1024 * int(found[1])

    def leave(self) -> None:
        """Press q and wait for the end."""
        self.send("q")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
