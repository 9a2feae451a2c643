"""The same system calls as dibs makes, in the same order, and nothing else.

The list comes from an `strace` of the shipped code, and `tests.bench.trace` compares the two in
every run: if they differ, no ratio against this loop is given. All names and all bytes are ready
before the clock starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tests.bench.ours import DATA, board
from tests.bench.peers import WAITING

_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
_LOG = os.O_WRONLY | os.O_APPEND | _SAFE
_READ = os.O_RDONLY | _SAFE
_RECORD = b'{"v": 1, "owner": "bench", "host": "vm", "ttl": 120, "at": 1794997588.326}\n'
_CLAIMED = b"x" * 174 + b"\n"
_DONE = b"x" * 188 + b"\n"


class _Names(NamedTuple):
    available: str
    known: str
    claimed: str
    record: str
    done: str


class Bare:
    """The system calls of claim and done."""

    def __init__(self, where: Path, durability: str = "normal") -> None:
        board(where, durability)
        self.mode = where.stat().st_mode & 0o666
        self.durability = durability
        self.root = f"{where}/"
        self.paused = f"{where}/.paused"
        self.journal = f"{where}/.dibs/journal/bench.jsonl"
        Path(self.journal).touch()
        self.serial = 0
        self.waiting: list[_Names] = []
        self.lists = True
        """Whether each chunk begins with one listing, as in dibs; off while calls are traced."""

    def fill(self, count: int) -> None:
        while len(self.waiting) < max(WAITING, count):
            self.serial += 1
            stem = f"task-{self.serial:07}"
            claim = f"{stem}.f1.bench-{self.serial:010X}"
            names = _Names(
                f"{self.root}{stem}.available",
                f"{self.root}.dibs/known/{stem}.0",
                f"{self.root}{claim}.claimed",
                f"{self.root}.dibs/records/{claim}",
                f"{self.root}done/{claim}",
            )
            Path(names.available).write_bytes(DATA)
            Path(names.known).touch()
            self.waiting.append(names)

    def run(self, count: int) -> None:
        if self.lists:
            os.listdir(self.root)
        for names in self.waiting[:count]:
            self._claim(names)
            self._done(names)
        del self.waiting[:count]

    def _claim(self, names: _Names) -> None:
        os.lstat(names.available)
        os.access(names.known, os.F_OK)
        os.urandom(5)
        os.rename(names.available, names.claimed)
        os.access(self.paused, os.F_OK)
        fd = os.open(names.record, _NEW, 0o666)
        os.fchmod(fd, self.mode)
        os.write(fd, _RECORD)
        os.close(fd)
        _append(self.journal, _CLAIMED)
        if self.durability == "strict":
            _sync(self.root)

    def _done(self, names: _Names) -> None:
        if self.durability != "off":
            _sync(names.claimed)
        os.rename(names.claimed, names.done)
        try:  # noqa: SIM105 (contextlib.suppress costs as much as a system call)
            os.lstat(names.claimed)
        except FileNotFoundError:
            pass
        os.unlink(names.record)
        _append(self.journal, _DONE)
        if self.durability != "off":
            _sync(f"{self.root}done")
            _sync(self.root)


def _append(path: str, data: bytes) -> None:
    os.lstat(path)
    fd = os.open(path, _LOG)
    os.write(fd, data)
    os.close(fd)


def _sync(path: str) -> None:
    os.lstat(path)
    fd = os.open(path, _READ)
    os.fsync(fd)
    os.close(fd)
