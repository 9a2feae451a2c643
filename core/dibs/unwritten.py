"""A board that is only looked at: whatever would change it is refused, by any verb."""

from __future__ import annotations

import errno
from typing import NoReturn

from dibs.clock import PROBE
from dibs.disk import Disk, Stat
from dibs.errors import OPENED


class Unwritten(Disk):
    """A directory that is only read; of all its files the probe alone is touched, as a clock."""

    read_only = True

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        if not path.startswith(PROBE):
            self._refuse(path)
        super().create(path, data, sync)

    def append(self, path: str, data: bytes) -> None:
        self._refuse(path)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        if dst != PROBE:
            self._refuse(src)
        super().rename(src, dst, keep)

    def link(self, src: str, dst: str) -> None:
        self._refuse(dst)

    def unlink(self, path: str) -> None:
        self._refuse(path)

    def mkdir(self, path: str) -> None:
        self._refuse(path)

    def rmdir(self, path: str) -> None:
        self._refuse(path)

    def touch(self, path: str) -> None:
        if path != PROBE:
            self._refuse(path)
        super().touch(path)

    def nameless(self) -> Stat:
        self._refuse("")

    def sync(self, path: str) -> None:
        """Nothing of this process needs it."""

    def _refuse(self, path: str) -> NoReturn:
        raise OSError(errno.EROFS, OPENED, path)
