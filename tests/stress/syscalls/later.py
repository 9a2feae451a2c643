"""A real disk in the future: both clocks are advanced by the same amount."""

from __future__ import annotations

from dibs.files.board_files import BoardFiles
from dibs.files.clock import PROBE
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs.files.port import Stat
from dibs.host import this_host
from dibs.model.sample import SECOND


class Later(Disk):
    """A directory as it will be `seconds` from now; waiting on it takes no time."""

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


def later(root: str, seconds: float) -> FilesBoard:
    """The board of a directory as a process finds it this much later."""
    store = BoardFiles(Later(root, seconds), this_host())
    store.open()
    return FilesBoard(store, root)
