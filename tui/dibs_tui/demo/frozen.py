"""A disk on which time stands still, for a picture that is always the same."""

from __future__ import annotations

import os
from random import Random

from dibs.clock import SECOND
from dibs.disk import Disk, Stat

_BOOTED = 1_773_324_131 * SECOND
_DEVICE = 0x2A


class Frozen(Disk):
    """A directory whose files tell one time each, their mtime, which `os.utime` can set.

    The ctime that every judgement of the core rests on is answered with it, so a board that was
    played on this disk looks the same on it ever after. Time passes only for whoever sleeps.
    """

    def __init__(self, root: str, now: int) -> None:
        super().__init__(root)
        self.now = now
        """Nanoseconds on the clock of this file system."""
        self._chance = Random(now)

    def names(self, folder: str) -> list[str]:
        return sorted(super().names(folder))

    def stat(self, path: str) -> Stat:
        return self._told(super().stat(path))

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        data, stat = super().read(path, limit, offset)
        return data, self._told(stat)

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

    def _told(self, stat: Stat) -> Stat:
        """A folder's time is the real one where something in it was changed since."""
        told = min(stat.mtime, self.now)
        return stat._replace(dev=_DEVICE, mtime=told, ctime=told)
