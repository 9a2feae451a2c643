"""A disk on which time stands still, so that a board on it always looks the same."""

from __future__ import annotations

import os
from random import Random

from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model.sample import SECOND

_BOOTED = 1_773_324_131 * SECOND
_DEVICE = 0x2A


class FrozenDisk(Disk):
    """A directory that reports each file's mtime as its ctime too.

    The core judges by the ctime, which no call can set; `os.utime` can set the mtime. So a board
    that was made on this disk looks the same at any later time. Time passes only in `sleep`.
    """

    def __init__(self, root: str, now: int) -> None:
        super().__init__(root)
        self.now = now
        """The time of this file system, in nanoseconds."""
        self._chance = Random(now)

    def names(self, folder: str) -> list[str]:
        return sorted(super().names(folder))

    def stat(self, path: str) -> Stat:
        return self._frozen(super().stat(path))

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        data, stat = super().read(path, limit, offset)
        return data, self._frozen(stat)

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        super().create(path, data, sync)
        self.touch(path)

    def append(self, path: str, data: bytes) -> None:
        super().append(path, data)
        self.touch(path)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        super().rename(src, dst, keep)
        self.touch(dst)

    def touch(self, path: str) -> None:
        os.utime(f"{self.root}/{path}", ns=(self.now, self.now), follow_symlinks=False)

    def boottime(self) -> int:
        return self.now - _BOOTED

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    def nonce(self) -> str:
        return f"{self._chance.getrandbits(40):010X}"

    def _frozen(self, stat: Stat) -> Stat:
        """The stat with fixed times; a folder that was changed since has a later mtime."""
        frozen = min(stat.mtime, self.now)
        return stat._replace(dev=_DEVICE, mtime=frozen, ctime=frozen)
