"""The outside log: what workers rely on, in a file that dibs never reads.

One file, one `write` with O_APPEND per line, each with the boot-time clock, which all processes of
a host share. The audit judges the journal and this log alone and against each other.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import NamedTuple

from dibs.files.board_files import BoardFiles
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs.host import this_host
from dibs.model.task import TAKER

LIVE = "live"
"""The worker relies on this claim, from the line's time for one ttl."""
INTENT, DONE, GIVEN = "intent", "done", "given"
"""About to commit; the commit returned; released or failed by its worker, or about to be."""
LOST, UNCERTAIN = "lost", "uncertain"
OPERATOR = "operator"
"""Acts done and acts refused."""
KILLED, STOPPED = "killed", "stopped"
TRY = "try"
"""Any process is about to rename `name` to `more`, one of them claimed."""
_TAKE = f".{TAKER}-"


class Line(NamedTuple):
    """One record of one process."""

    word: str
    pid: int
    boot: int
    """Nanoseconds of the boot-time clock."""
    name: str
    more: str


def boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Ledger:
    """Appends lines to the outside log; safe to share with a process that was forked."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(
        self, word: str, name: str = "-", more: str = "-", *, boot: int = 0, pid: int = 0
    ) -> None:
        text = f"{word} {pid or os.getpid()} {boot or boottime()} {name} {more}\n"
        os.write(self._fd, text.encode())

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


def read(path: Path) -> list[Line]:
    """Every line, in the order in which they were appended; one that is being written is left."""
    lines = []
    with path.open() as file:
        for text in file:
            if not text.endswith("\n"):
                break
            word, pid, boot, name, more = text.split()
            lines.append(Line(word, int(pid), int(boot), name, more))
    return lines


class Witnessed(Disk):
    """The real disk; a rename to or from a claimed name is recorded before it is tried.

    The time before the call is the strict one: a reaper has judged the claim by then.
    `slow` is the longest delay of the steps that take a plain claim, to make room for races.
    """

    def __init__(self, root: str, ledger: Ledger, slow: float) -> None:
        super().__init__(root)
        self._ledger = ledger
        self._slow = slow

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        if ".claimed" in src or ".claimed" in dst:
            self._ledger.write(TRY, src, dst)
            if self._slow and _TAKE in src + dst:
                time.sleep(random.uniform(0, self._slow))
        super().rename(src, dst, keep)


def witnessed(where: Path, ledger: Ledger, slow: float = 0.0) -> FilesBoard:
    """The board in a directory, as `dibs.open` makes it, on a witnessed disk."""
    store = BoardFiles(Witnessed(str(where), ledger, slow), this_host())
    store.open()
    return FilesBoard(store, str(where))
