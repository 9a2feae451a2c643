"""`python -m tests.filesystems.hostile.fs BACKING MOUNTPOINT [OPTION=VALUE …]`

A file system that passes through to a folder and fails as its standard input says: each line of
it is a `Faults`, and the answer is a line of counts so far. At the end of the input it unmounts and
ends. Two of them on one folder are like two hosts.
"""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from tests.filesystems.hostile.faults import CALM, CHANGES, SECOND, Faults, parse
from tests.filesystems.hostile.memory import Memory

os.environ["FUSE_LIBRARY_PATH"] = "libfuse3.so.3"  # an older one has no rename flags
import mfusepy

_NOREPLACE = 1
_AT_FDCWD = -100
_NOW = (1 << 30) - 1
"""The value that arrives here for a `utime` without a time."""
Answer = TypeVar("Answer")


class Passing:
    """The calls of a FUSE file system, passed to the folder below unless a fault strikes."""

    use_ns = True

    def __init__(self, below: str) -> None:
        self.faults = CALM
        self.counts: Counter[str] = Counter()
        self._below = below
        self._memory = Memory()
        self._new_faults = threading.Condition()
        self._until = 0.0
        self._changes = 0
        self._turn = 0

    def become(self, faults: Faults) -> None:
        """Use these faults from now on."""
        with self._new_faults:
            self.faults, self._changes = faults, 0
            self._until = time.monotonic() + faults.hang
            self._memory = Memory()
            self._new_faults.notify_all()

    # Faults

    def _do(self, name: str, act: Callable[[], Answer], *paths: str) -> Answer:
        faults = self._enter()
        changes = name in CHANGES
        if changes and faults.read_only:
            self._strike("read-only", errno.EROFS)
        if faults.full and name in ("create", "mkdir", "write", "link", "symlink"):
            self._strike("full", errno.ENOSPC)
        chosen = not faults.calls or name in faults.calls
        if chosen and random.random() < faults.fail:
            self._strike("failed", self._code(faults))
        try:
            answer = act()
        finally:
            if changes:
                self._memory.changed(*paths)
        if chosen and changes and self._loses(faults):
            self._strike("lost", self._code(faults))
        return answer

    def _enter(self) -> Faults:
        with self._new_faults:
            self.counts["calls"] += 1
            if self._until > time.monotonic():
                self.counts["hung"] += 1
                while (left := self._until - time.monotonic()) > 0:
                    self._new_faults.wait(left)
            faults = self.faults
        if faults.delay:
            self.counts["delayed"] += 1
            time.sleep(random.uniform(0, faults.delay))
        return faults

    def _loses(self, faults: Faults) -> bool:
        self._changes += 1
        self.counts["changes"] += 1
        return self._changes == faults.at if faults.at else random.random() < faults.lose

    def _code(self, faults: Faults) -> int:
        self._turn += 1
        return faults.codes[self._turn % len(faults.codes)]

    def _strike(self, what: str, code: int) -> NoReturn:
        self.counts[what] += 1
        raise OSError(code, os.strerror(code))

    def _at(self, path: str) -> str:
        return self._below + path

    # Reading

    def getattr(self, path: str | None, fh: int | None = None) -> dict[str, int]:
        return self._do("getattr", lambda: self._attributes(path, fh))

    def _attributes(self, path: str | None, fh: int | None) -> dict[str, int]:
        memory, faults = self._memory, self.faults
        if path is not None and (faults.stale or faults.negative):
            found, fresh = memory.attributes(path, faults, lambda: self._read(path, fh))
            self.counts["stale"] += not fresh
        else:
            found = self._read(path, fh)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found

    def _read(self, path: str | None, fh: int | None) -> dict[str, int] | None:
        try:
            found = os.lstat(self._at(path or "")) if fh is None else os.fstat(fh)
        except FileNotFoundError:
            return None
        faults = self.faults
        fields = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks")
        attributes: dict[str, int] = {field: getattr(found, field) for field in fields}
        changed = found.st_mtime_ns if faults.one_time else found.st_ctime_ns
        times = {"st_mtime": found.st_mtime_ns, "st_ctime": changed, "st_atime": found.st_atime_ns}
        for field, at in times.items():
            at += int(faults.offset * SECOND)
            attributes[field] = at - at % faults.tick if faults.tick else at
        return attributes

    def readdir(self, path: str, fh: int) -> Iterator[tuple[str, None, int]]:
        names = self._do("readdir", lambda: self._listed(path))
        return ((name, None, 0) for name in (".", "..", *names))

    def _listed(self, path: str) -> list[str]:
        names = os.listdir(self._at(path))
        listed = self._memory.listing(path, names, self.faults.listing)
        self.counts["listed wrong"] += sorted(listed) != sorted(names)
        return listed

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        return {key: getattr(found, key) for key in dir(found) if key.startswith("f_")}

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def open(self, path: str, flags: int) -> int:
        return self._do("open", lambda: os.open(self._at(path), flags & ~os.O_EXCL))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return self._do("read", lambda: os.pread(fh, size, offset))

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        if not self.faults.sync_folders:
            self._strike("refused", errno.EINVAL)
        return 0

    # Writing

    def create(self, path: str, mode: int, flags: int) -> int:
        """Create a file; after a lost reply it exists and is not open."""
        opened: list[int] = []
        try:
            self._do("create", lambda: opened.append(os.open(self._at(path), flags, mode)), path)
        except OSError:
            for fd in opened:
                os.close(fd)
            raise
        return opened[0]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return self._do("write", lambda: os.pwrite(fh, data, offset), path)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._do("truncate", lambda: os.truncate(self._at(path), length), path)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        self._do("mkdir", lambda: os.mkdir(self._at(path), mode), path)
        return 0

    def unlink(self, path: str) -> int:
        self._do("unlink", lambda: os.unlink(self._at(path)), path)
        return 0

    def rmdir(self, path: str) -> int:
        self._do("rmdir", lambda: os.rmdir(self._at(path)), path)
        return 0

    def symlink(self, target: str, source: str) -> int:
        self._do("symlink", lambda: os.symlink(source, self._at(target)), target)
        return 0

    def link(self, target: str, source: str) -> int:
        if not self.faults.links:
            self._strike("refused", errno.EPERM)
        self._do("link", lambda: os.link(self._at(source), self._at(target)), source, target)
        return 0

    def rename(self, old: str, new: str, flags: int) -> int:
        if flags and not self.faults.noreplace:
            self._strike("refused", errno.EINVAL)
        self._do("rename", lambda: self._rename(old, new, flags), old, new)
        return 0

    def _rename(self, old: str, new: str, flags: int) -> None:
        if random.random() < self.faults.copies and not os.path.lexists(self._at(new)):
            return os.link(self._at(old), self._at(new))
        code = _renameat2(self._at(old), self._at(new), flags)
        if code:
            raise OSError(code, os.strerror(code))

    def chmod(self, path: str, mode: int) -> int:
        self._do("chmod", lambda: os.chmod(self._at(path), mode), path)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        self._do("chown", lambda: os.lchown(self._at(path), uid, gid), path)
        return 0

    def utimens(self, path: str, times: tuple[int, int]) -> int:
        self._do("utimens", lambda: self._set_times(path, times), path)
        return 0

    def _set_times(self, path: str, times: tuple[int, int]) -> None:
        skew, offset = self.faults.skew, int(self.faults.offset * SECOND)
        if times[1] == _NOW and not skew:
            os.utime(self._at(path), follow_symlinks=False)
            return
        own = time.time_ns() + int(skew * SECOND)
        at, mt = (own if t == _NOW else t - offset for t in times)
        os.utime(self._at(path), ns=(at, mt), follow_symlinks=False)


def _renameat2(old: str, new: str, flags: int) -> int:
    """The errno of the call, 0 for success."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return 0
    return ctypes.get_errno()


class Mounted(mfusepy.FUSE):  # the method of the binding drops the flags, and would overwrite files
    """The binding, which also passes on the flags of a rename."""

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        made: int = self.operations.rename(os.fsdecode(old), os.fsdecode(new), flags)
        return made


def obey(passing: Passing, mountpoint: str) -> None:
    """Apply the faults from the pipe; unmount at its end."""
    print("here", flush=True)
    for line in sys.stdin:
        if line.strip():
            passing.become(parse(line))
        print(json.dumps(passing.counts), flush=True)
    passing.become(CALM)
    subprocess.run(["umount", "--lazy", mountpoint], check=False)
    os._exit(0)


def main(below: str, mountpoint: str, *options: str) -> None:
    passing = Passing(below)
    os.umask(0)
    threading.Thread(target=obey, args=(passing, mountpoint), daemon=True).start()
    caches: dict[str, Any] = dict.fromkeys(("attr_timeout", "entry_timeout"), 0)
    caches |= dict(option.split("=") for option in options)
    Mounted(
        passing, mountpoint, foreground=True, use_ino=True, hard_remove=True,
        allow_other=True, default_permissions=True, fsname="hostile", **caches,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
