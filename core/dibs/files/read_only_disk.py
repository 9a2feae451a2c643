"""A disk for boards that are opened read-only: each call that would change one is refused."""

from __future__ import annotations

from typing import NoReturn

from dibs.files.clock import PROBE
from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model.errors import OpenedReadOnly


class ReadOnlyDisk(Disk):
    """A read-only directory; only the probe file is touched, because it serves as the clock."""

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
        """Do nothing: this process has written nothing."""

    def _refuse(self, path: str) -> NoReturn:
        raise OpenedReadOnly(path)
