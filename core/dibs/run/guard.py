"""A small process beside `dibs run` that ends the work when `run` no longer can.

It shares nothing with `run` but a pipe. The pipe closes when `run` dies; `run` writes each new
deadline into it, and when none comes in time (`run` was stopped, or hangs on a dead mount) the
deadline passes. Either way the guard ends every process of the claim before the lease ends.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from dibs.clock import SECOND
from dibs.run import group

TICK = 0.25


class Guard:
    """The pipe to a guard, from `run`'s side."""

    def __init__(self, claim: str, ttl: float, deadline: int, orphaned: Callable[[], None]) -> None:
        reader, self._writer = os.pipe()
        os.set_inheritable(self._writer, False)
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self._writer)
                _watch(reader, claim, ttl, deadline, orphaned)
                status = 0
            finally:
                os._exit(status)
        os.close(reader)

    def tell(self, pgid: int, deadline: int) -> bool:
        """Whom to end, and when; False when the guard itself is gone."""
        try:
            os.write(self._writer, f"{pgid} {deadline}\n".encode())
        except OSError:
            return False
        return True

    def dismiss(self) -> None:
        """The claim has ended, and nobody is left to guard against."""
        with suppress(OSError):
            os.write(self._writer, b"0 0\n")
        os.close(self._writer)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _watch(
    reader: int, claim: str, ttl: float, deadline: int, orphaned: Callable[[], None]
) -> None:
    """Wait for the pipe to close or the deadline to pass; then end the work."""
    os.setsid()  # ctrl+c and ctrl+z are not for the guard
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    _drop_files(reader)
    pgid, rest = 0, b""
    while True:
        if select.select([reader], [], [], min(TICK, ttl / 20))[0]:
            data = os.read(reader, 4096)
            if not data:
                group.end(pgid, claim, min(deadline, _boottime() + SECOND))
                orphaned()
                return
            *lines, rest = (rest + data).split(b"\n")
            if lines:
                pgid, deadline = map(int, lines[-1].split())
            if not deadline:
                return
        if _boottime() >= deadline:
            group.end(pgid, claim, deadline + int(ttl * SECOND / 10))
            return


def _drop_files(keep: int) -> None:
    """Let go of everything inherited: a reader of the output must not wait for the guard."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != keep:
            with suppress(OSError):
                os.close(fd)


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
