"""The state of the simulated file system: inodes, folders and clocks.

Its dictionaries are never changed in place, so that saving and restoring a state costs one tuple.
Its hash is updated entry by entry.

Time stands still unless the scheduler moves it. `elapsed` is real time, which every boot clock
follows; the file system's clock is `elapsed` plus `skew`, rounded down to `tick`.
"""

from __future__ import annotations

import errno
import stat as modes
from functools import lru_cache
from typing import Any, NamedTuple

from dibs.files.port import Stat

SECOND = 1_000_000_000
EPOCH = 1_700_000_000 * SECOND
ROOT = 1
SETUP = -1
"""The actor that builds a scenario."""

MODES = {
    "file": modes.S_IFREG | 0o664,
    "folder": modes.S_IFDIR | 0o2775,
    "symlink": modes.S_IFLNK | 0o777,
    "fifo": modes.S_IFIFO | 0o664,
}
FILE = MODES["file"]


class Half(NamedTuple):
    """A file that is open and not yet written: others can see it empty, its writer can die."""

    ino: int
    data: bytes
    at_end: bool


class Inode(NamedTuple):
    mode: int
    data: bytes
    mtime: int
    ctime: int
    links: int


class SimTree:
    """The shared directory. Options are plain attributes, for a scenario's `build` to set."""

    def __init__(self) -> None:
        self.tick = 1_000_000
        """The resolution of the file system's times, in nanoseconds."""
        self.rename_moves_ctime = True
        self.noreplace = True
        """Whether the kernel can refuse to replace a file; if not, `keep` looks first."""
        self.links = True
        self.counts_changes = False
        """Whether a folder's time grows with each change of it, as the change attribute of NFS."""
        self.reuses_inodes = False
        """Whether the next new file gets the number of a removed one, as on ext4 and tmpfs."""
        self.quiet: tuple[str, ...] = (".dibs/journal/",)
        """Folders that are only appended to: no scheduling point and no part of the state."""
        self.hosts: list[str] = []
        """The host of each actor, by the actor's number."""

        self.elapsed = 0
        self.skew = 0
        self.dirs: dict[int, dict[str, int]] = {ROOT: {}}
        now = self.now()
        self.inodes: dict[int, Inode] = {ROOT: Inode(MODES["folder"], b"", now, now, 1)}
        self.hash = 0
        self.made: tuple[int, ...] = ()
        self.freed: tuple[int, ...] = ()
        self.open: frozenset[int] = frozenset()
        self.late: tuple[tuple[int, tuple[Any, ...]], ...] = ()
        """Calls that were answered EIO and can still land."""
        self.journal: tuple[tuple[str, bytes], ...] = ()
        """What was appended below `quiet`, in order."""
        self._files: tuple[dict[int, dict[str, int]] | None, dict[str, int]] = (None, {})
        self.moved: tuple[tuple[int, str], ...] = ()
        """The (folder, name) pairs that the last call changed."""

    # -- states ------------------------------------------------------------------------------

    def save(self) -> tuple[Any, ...]:
        return (
            self.elapsed,
            self.skew,
            self.dirs,
            self.inodes,
            self.hash,
            self.made,
            self.freed,
            self.open,
            self.late,
            self.journal,
        )

    def load(self, saved: tuple[Any, ...]) -> None:
        (
            self.elapsed,
            self.skew,
            self.dirs,
            self.inodes,
            self.hash,
            self.made,
            self.freed,
            self.open,
            self.late,
            self.journal,
        ) = saved

    # -- for scenarios -----------------------------------------------------------------------

    def put(self, path: str, data: bytes = b"", *, kind: str = "file", age: float = 0) -> None:
        """Lay out a file, folder, symlink or fifo, `age` seconds old."""
        at, name = self.parent(path)
        assert at > 0, f"{path}: its folder is missing"
        assert name not in self.dirs[at], f"{path}: there already"
        self.add(SETUP, at, name, MODES[kind], data)
        if age:
            then = self.now() - int(age * SECOND)
            ino = self.dirs[at][name]
            self.set(ino, self.inodes[ino]._replace(mtime=then, ctime=then))

    def folders(self, *paths: str) -> None:
        """Lay out folders and their parents."""
        for path in paths:
            parts = path.split("/")
            for n in range(1, len(parts) + 1):
                at, name = self.parent("/".join(parts[:n]))
                if name not in self.dirs[at]:
                    self.add(SETUP, at, name, MODES["folder"], b"")

    def listing(self, folder: str = "") -> dict[str, int]:
        """Maps name to inode, read-only; the same object for as long as nothing changes."""
        at = self.find(folder)
        return self.dirs.get(at, {})

    def find(self, path: str) -> int:
        """The inode at a path, or a negative errno."""
        if not path:
            return ROOT
        at, name = self.parent(path)
        return at if at < 0 else self.dirs[at].get(name, -errno.ENOENT)

    def exists(self, path: str) -> bool:
        return self.find(path) > 0

    def data(self, path: str) -> bytes:
        """The content of a file; KeyError if there is none."""
        return self.inodes[self.find(path)].data

    def files(self) -> dict[str, int]:
        """Maps the path of each non-folder to its inode; the same object until a name changes."""
        dirs, found = self._files
        if dirs is not self.dirs:
            found = {}
            self._walk(ROOT, "", found)
            self._files = self.dirs, found
        return found

    def _walk(self, at: int, prefix: str, found: dict[str, int]) -> None:
        for name, ino in self.dirs[at].items():
            if ino in self.dirs:
                self._walk(ino, f"{prefix}{name}/", found)
            else:
                found[prefix + name] = ino

    # -- clocks ------------------------------------------------------------------------------

    def now(self) -> int:
        """The file system's clock, at the resolution of file times."""
        clock = EPOCH + self.elapsed + self.skew
        return clock - clock % self.tick

    def boottime(self, who: int) -> int:
        base = (self.hosts.index(self.hosts[who]) + 1) * 1000 * SECOND
        return base + self.elapsed

    # -- the parts ---------------------------------------------------------------------------

    def stat_of(self, who: int, ino: int) -> Stat:
        node = self.inodes[ino]
        dev = self.hosts.index(self.hosts[who]) + 1 if self.hosts else 1
        return Stat(ino, dev, node.mode, len(node.data), node.mtime, node.ctime)

    def parent(self, path: str) -> tuple[int, str]:
        """The folder of a path's last part, or a negative errno."""
        above, name, code = _split(path)
        at = ROOT
        for part in above:
            found = self.dirs[at].get(part)
            if found is None:
                return -errno.ENOENT, name
            if found not in self.dirs:
                return -self.no_folder(found), name
            at = found
        return code or at, name

    def no_folder(self, ino: int) -> int:
        """The errno for entering something that is no folder: every symlink here is dangling."""
        return errno.ENOENT if self.inodes[ino].mode == MODES["symlink"] else errno.ENOTDIR

    def half(self, ino: int, data: bytes, *, at_end: bool) -> Half:
        self.open |= {ino}
        return Half(ino, data, at_end)

    def add(self, who: int, at: int, name: str, mode: int, data: bytes) -> int:
        """A new inode, numbered per maker so that the order of two makers leaves no trace."""
        if self.reuses_inodes and self.freed:
            ino, self.freed = self.freed[0], self.freed[1:]
            self.hash ^= hash(("freed", ino))
        else:
            counts = [*self.made, *[0] * (who + 2 - len(self.made))]
            counts[who + 1] += 1
            self.made = tuple(counts)
            ino = (who + 2) * 1000 + counts[who + 1]
        if mode == MODES["folder"]:
            self.dirs = {**self.dirs, ino: {}}
        now = self.now()
        self.set(ino, Inode(mode, data, now, now, 1))
        self.enter(at, name, ino)
        return ino

    def enter(self, at: int, name: str, ino: int) -> None:
        """Point a name at an inode, or at nothing."""
        entries = self.dirs[at].copy()
        old = entries.get(name, 0)
        if old:
            self.hash ^= hash((at, name, old))
        if ino:
            entries[name] = ino
            self.hash ^= hash((at, name, ino))
        else:
            del entries[name]
        self.dirs = {**self.dirs, at: entries}
        self.moved += ((at, name),)
        self.stamp(at, self.now())

    def stamp(self, at: int, now: int) -> None:
        """Set the times of a folder that has changed."""
        node = self.inodes[at]
        if self.counts_changes:
            now = max(now, node.mtime + 1)
        if node.mtime != now or node.ctime != now:
            self.set(at, node._replace(mtime=now, ctime=now))

    def drop(self, ino: int) -> None:
        """Remove one link from an inode; the last one removes the inode."""
        node = self.inodes[ino]
        if node.links > 1:
            self.set(ino, node._replace(links=node.links - 1, ctime=self.now()))
            return
        self.set(ino, None)
        if ino in self.dirs:
            self.dirs = {key: entries for key, entries in self.dirs.items() if key != ino}
        if self.reuses_inodes and ino not in self.open:
            self.freed = tuple(sorted((*self.freed, ino)))
            self.hash ^= hash(("freed", ino))

    def set(self, ino: int, node: Inode | None) -> None:
        inodes = self.inodes.copy()
        old = inodes.get(ino)
        if old is not None:
            self.hash ^= hash((ino, old))
        if node is None:
            del inodes[ino]
        else:
            inodes[ino] = node
            self.hash ^= hash((ino, node))
        self.inodes = inodes


@lru_cache(maxsize=65536)
def _split(path: str) -> tuple[tuple[str, ...], str, int]:
    """The parent folders, the last part, and a negative errno for an impossible name."""
    parts = tuple(path.split("/"))
    bad = len(parts[-1].encode(errors="surrogateescape")) > 255
    return parts[:-1], parts[-1], -errno.ENAMETOOLONG if bad else 0
