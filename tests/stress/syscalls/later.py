"""A real disk on which any amount of time has gone by: both clocks are read further on, alike."""

from __future__ import annotations

from dibs.board import Board
from dibs.clock import PROBE, SECOND
from dibs.disk import Disk, Stat
from dibs.host import this_host
from dibs.store import Store


class Later(Disk):
    """A directory as it will be `seconds` from now; waiting there costs no time."""

    def __init__(self, root: str, seconds: float = 0.0) -> None:
        super().__init__(root)
        self._on = int(seconds * SECOND)

    def stat(self, path: str) -> Stat:
        found = super().stat(path)
        if path != PROBE:
            return found
        return found._replace(mtime=found.mtime + self._on, ctime=found.ctime + self._on)

    def boottime(self) -> int:
        return super().boottime() + self._on

    def sleep(self, seconds: float) -> None:
        self._on += int(seconds * SECOND)


def later(root: str, seconds: float) -> Board:
    """The board of a directory as a process finds it that comes so much later."""
    store = Store(Later(root, seconds), this_host())
    store.open()
    return Board(store, root)
