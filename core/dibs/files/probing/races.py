"""Let two real processes try the same thing at the same moment, again and again."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from mmap import mmap
from typing import NamedTuple

from dibs.files.disk import Disk

_WON, _ENOUGH = 255, 254
_OFF = 1
_HANDICAP = 20e-6
"""Seconds by which a winner starts later after each win, so that a faster path does not win all."""
_LOST = (errno.ENOENT, errno.EEXIST)
_PATIENCE = 30.0
"""Seconds to wait for the other process; exceeded only if it has died or the disk hangs."""


class Race(NamedTuple):
    """The results of a number of rounds."""

    rounds: int = 0
    mine: int = 0
    theirs: int = 0
    both: int = 0
    """Rounds in which both processes got success."""
    none: int = 0
    """Rounds in which neither process got success."""
    error: str = ""
    """Other errors that the disk reported."""


def race(kind: str, mine: Disk, theirs: Disk, rounds: int, seconds: float) -> Race:
    """Let a child race this process; `theirs` may be another path to the same folder.

    It forks, so it must be called from a process with one thread.
    """
    course = _Course(kind, rounds)
    pid = os.fork()
    if not pid:
        _run_child(course, theirs)
    try:
        course.run(mine, 0, time.monotonic() + seconds)
    finally:
        course.call_off()
        _end(pid)
    return course.score()


class _Course:
    """What the two processes share: how far each has come, and each one's results."""

    def __init__(self, kind: str, rounds: int) -> None:
        self._kind = kind
        self._rounds = rounds
        self._memory = mmap(-1, 3 + 2 * rounds)
        self._run = 0

    def run(self, disk: Disk, who: int, until: float = float("inf")) -> None:
        """One process's part; the first one prepares the rounds and ends them when time is up."""
        memory, kind, lead = self._memory, self._kind, 0
        for n in range(self._rounds):
            code = _answer(_prepare, kind, disk, n, who)
            if who == 0 and n and time.monotonic() > until:  # at least one round, however slow
                memory[3 + 2 * n] = _ENOUGH  # in this round: the other may still be in the last
            self._meet(who, n)
            if memory[2] or memory[3 + 2 * n] == _ENOUGH:
                return
            time.sleep(lead * _HANDICAP)
            code = code or _answer(_try, kind, disk, n, who) or _WON
            memory[3 + 2 * n + who] = code
            lead = lead + 1 if code == _WON else max(0, lead - 1)
            self._run = n + 1
        self._meet(who, self._rounds)

    def call_off(self) -> None:
        """Let no process wait for the other any more."""
        self._memory[2] = _OFF

    def score(self) -> Race:
        """The results of the rounds, once both have run."""
        results = self._memory[3 : 3 + 2 * self._run]
        pairs = list(zip(results[::2], results[1::2], strict=True))
        wins = [(a == _WON, b == _WON) for a, b in pairs]
        wrong = sorted({code for code in results if code not in (_WON, *_LOST)})
        return Race(
            len(wins),
            sum(a for a, _ in wins),
            sum(b for _, b in wins),
            wins.count((True, True)),
            wins.count((False, False)),
            ", ".join(os.strerror(code) if code else "no answer" for code in wrong),
        )

    def _meet(self, who: int, n: int) -> None:
        """Wait until the other has reached this round, so that both start together."""
        memory, here = self._memory, (n + 1) % 256
        memory[who] = here
        until = time.monotonic() + _PATIENCE
        while memory[1 - who] not in (here, (here + 1) % 256):
            if memory[2] == _OFF:
                return
            if time.monotonic() > until:
                raise OSError(errno.ETIMEDOUT, "the disk did not answer")
            time.sleep(0)


def _prepare(kind: str, disk: Disk, n: int, who: int) -> None:
    if kind == "rename" and who == 0:
        disk.create(f"rename.{n}", b"")
    elif kind in ("keep", "link"):
        disk.create(f"{kind}.{n}.{who}", b"")


def _answer(
    step: Callable[[str, Disk, int, int], None], kind: str, disk: Disk, n: int, who: int
) -> int:
    """The disk's answer: 0 for success, or an errno."""
    try:
        step(kind, disk, n, who)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _try(kind: str, disk: Disk, n: int, who: int) -> None:
    match kind:
        case "rename":
            disk.rename(f"rename.{n}", f"rename.{n}.{who}")
        case "keep":
            disk.rename(f"keep.{n}.{who}", f"keep.{n}", keep=True)
        case "link":
            disk.link(f"link.{n}.{who}", f"link.{n}")
        case _:
            disk.create(f"create.{n}", b"")


def _run_child(course: _Course, disk: Disk) -> None:
    try:
        course.run(disk, 1)
    except BaseException:  # the other process sees that there is no answer
        course.call_off()
    finally:
        os._exit(0)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
