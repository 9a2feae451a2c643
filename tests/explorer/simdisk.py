"""A file system in memory, for the explorer: it answers the calls of `Port` as Linux does.

Its methods *return* an `Err`; `actors.SimPort` turns that into an exception for the actors.
"""

from __future__ import annotations

import errno
from typing import NamedTuple

from dibs.files.port import Stat

from .simtree import FILE, MODES, Half, SimTree

_TOO_LONG = -errno.ENAMETOOLONG


class Err(NamedTuple):
    """The answer to a call where the real one raises `OSError`."""

    code: int


class Looked(NamedTuple):
    """The first half of a rename without NOREPLACE: it found its destination free."""

    src: str
    dst: str


class SimWorld(SimTree):
    """The shared directory, with every call of the port; `who` is the number of the actor."""

    # -- reading -----------------------------------------------------------------------------

    def names(self, who: int, folder: str) -> tuple[str, ...] | Err:
        ino = self.find(folder)
        if ino < 0:
            return Err(-ino)
        entries = self.dirs.get(ino)
        if entries is None:
            return Err(self.no_folder(ino))
        return tuple(sorted(entries))

    def stat(self, who: int, path: str) -> Stat | Err:
        ino = self.find(path)
        return Err(-ino) if ino < 0 else self.stat_of(who, ino)

    def read(self, who: int, path: str, limit: int, offset: int) -> tuple[bytes, Stat] | Err:
        ino = self.find(path)
        if ino < 0:
            return Err(-ino)
        node = self.inodes[ino]
        if node.mode != FILE:
            return Err(errno.EINVAL)
        return node.data[offset : offset + limit], self.stat_of(who, ino)

    def sync(self, who: int, path: str) -> Err | None:
        ino = self.find(path)
        return Err(-ino) if ino < 0 else None

    # -- changing ----------------------------------------------------------------------------

    def create(self, who: int, path: str, data: bytes, sync: bool) -> Half | Err | None:
        at, name = self.parent(path)
        if at < 0:
            return Err(-at)
        if name in self.dirs[at]:
            return Err(errno.EEXIST)
        ino = self.add(who, at, name, FILE, b"")
        return self.half(ino, data, at_end=False) if data else None

    def append(self, who: int, path: str, data: bytes) -> Half | Err | None:
        return self._open(who, path, data, at_end=True)

    def names_of(self, ino: int) -> int:
        """How many names a file has."""
        return sum(list(folder.values()).count(ino) for folder in self.dirs.values())

    def write(self, who: int, path: str, data: bytes) -> Half | Err | None:
        """Write as a shell's `echo > path` does: truncate first, then write."""
        return self._open(who, path, data, at_end=False)

    def _open(self, who: int, path: str, data: bytes, *, at_end: bool) -> Half | Err | None:
        at, name = self.parent(path)
        if at < 0:
            return Err(-at)
        ino = self.dirs[at].get(name, 0)
        if not ino:
            ino = self.add(who, at, name, FILE, b"")
        else:
            node = self.inodes[ino]
            if at_end and (node.mode != FILE or self.names_of(ino) != 1):
                return Err(errno.EINVAL)
            if node.mode != FILE:
                codes = {MODES["folder"]: errno.EISDIR, MODES["symlink"]: errno.ELOOP}
                return Err(codes.get(node.mode, errno.ENXIO))
            now = self.now()
            if at_end:
                if data:
                    self.set(ino, node._replace(data=node.data + data, mtime=now, ctime=now))
                return None
            self.set(ino, node._replace(data=b"", mtime=now, ctime=now))
        return self.half(ino, data, at_end=at_end) if data else None

    def finish(self, half: Half) -> None:
        """Do the write that follows an open, wherever the file is now."""
        self.open -= {half.ino}
        node = self.inodes.get(half.ino)
        if node is not None:
            now = self.now()
            text = node.data + half.data if half.at_end else half.data + node.data[len(half.data) :]
            self.set(half.ino, node._replace(data=text, mtime=now, ctime=now))

    def rename(self, who: int, src: str, dst: str, keep: bool) -> Looked | Err | None:
        if keep and not self.noreplace:
            there = self.find(dst)
            return Err(errno.EEXIST) if there > 0 else Looked(src, dst)
        at, name = self.parent(src)
        to, last = self.parent(dst)
        for found in (at, to):  # the kernel looks up both folders before either name
            if found < 0 and found != _TOO_LONG:
                return Err(-found)
        ino = self.dirs[at].get(name, 0) if at > 0 else 0
        if not ino:
            return Err(errno.ENOENT if at > 0 else errno.ENAMETOOLONG)
        if to < 0:
            return Err(-to)
        old = self.dirs[to].get(last, 0)
        folder = ino in self.dirs
        if old and keep:
            return Err(errno.EEXIST)
        if folder and f"{dst}/".startswith(f"{src}/") and ino != old:
            return Err(errno.EINVAL)
        if old in self.dirs and f"{src}/".startswith(f"{dst}/") and ino != old:
            return Err(errno.ENOTEMPTY)
        if old == ino:  # two names of one file: POSIX says to do nothing
            return None
        if old:
            if folder and old not in self.dirs:
                return Err(errno.ENOTDIR)
            if old in self.dirs and not folder:
                return Err(errno.EISDIR)
            if self.dirs.get(old):
                return Err(errno.ENOTEMPTY)
            self.drop(old)
        self.enter(at, name, 0)
        self.enter(to, last, ino)
        if self.rename_moves_ctime:
            self.set(ino, self.inodes[ino]._replace(ctime=self.now()))
        return None

    def link(self, who: int, src: str, dst: str) -> Err | None:
        ino = self.find(src)
        if ino < 0:
            return Err(-ino)
        to, last = self.parent(dst)
        if to < 0:
            return Err(-to)
        if last in self.dirs[to]:
            return Err(errno.EEXIST)
        if ino in self.dirs or not self.links:
            return Err(errno.EPERM)
        node = self.inodes[ino]
        self.enter(to, last, ino)
        self.set(ino, node._replace(ctime=self.now(), links=node.links + 1))
        return None

    def unlink(self, who: int, path: str) -> Err | None:
        at, name = self.parent(path)
        if at < 0:
            return Err(-at)
        ino = self.dirs[at].get(name, 0)
        if not ino:
            return Err(errno.ENOENT)
        if ino in self.dirs:
            return Err(errno.EISDIR)
        self.enter(at, name, 0)
        self.drop(ino)
        return None

    def mkdir(self, who: int, path: str) -> Err | None:
        at, name = self.parent(path)
        if at < 0:
            return Err(-at)
        ino = self.dirs[at].get(name, 0)
        if not ino:
            self.add(who, at, name, MODES["folder"], b"")
            return None
        return None if ino in self.dirs else Err(errno.ENOTDIR)

    def rmdir(self, who: int, path: str) -> Err | None:
        at, name = self.parent(path)
        if at < 0:
            return Err(-at)
        ino = self.dirs[at].get(name, 0)
        if not ino:
            return Err(errno.ENOENT)
        if ino not in self.dirs:
            return Err(errno.ENOTDIR)
        if self.dirs[ino]:
            return Err(errno.ENOTEMPTY)
        self.enter(at, name, 0)
        self.drop(ino)
        return None

    def touch(self, who: int, path: str, mtime: int | None = None) -> Err | None:
        ino = self.find(path)
        if ino < 0:
            return Err(-ino)
        now = self.now()
        if ino in self.dirs:
            self.stamp(ino, now)
            return None
        self.set(ino, self.inodes[ino]._replace(mtime=now if mtime is None else mtime, ctime=now))
        return None
