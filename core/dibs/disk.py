"""The one small port through which everything touches the disk.

`Port` is what the rest of the core asks for; `Disk` is the real thing. The tests put a
simulated file system behind the same calls and drive the shipped code through every
interleaving. Paths are relative to the board; errors are plain `OSError`.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

RECORD_BYTES = 8192


class Stat(NamedTuple):
    """What `lstat` told: times in nanoseconds of the file system's own clock."""

    ino: int
    dev: int
    mode: int
    size: int
    mtime: int
    ctime: int

    @property
    def regular(self) -> bool:
        return modes.S_ISREG(self.mode)

    @property
    def folder(self) -> bool:
        return modes.S_ISDIR(self.mode)


class Port(Protocol):
    """Every way in which dibs touches the disk, the clock and chance."""

    read_only: bool
    """Whether it was opened so that nothing of the board may be changed."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in no order."""

    def stat(self, path: str) -> Stat:
        """`lstat`: never follows a link."""

    def unfit(self, path: str) -> str:
        """Why a file cannot be worked on as a payload; empty for one that can be read."""

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        """At most `limit` bytes of a regular file, with its times as an open file sees them."""

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        """Make a new file that did not exist, with the board's own mode."""

    def append(self, path: str, data: bytes) -> None:
        """One write at the end of a file, made if it is missing."""

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        """`rename`; with `keep` a file at the destination stays and EEXIST is raised."""

    def link(self, src: str, dst: str) -> None:
        """A second name for a file; EEXIST where the name is taken."""

    def unlink(self, path: str) -> None:
        """Remove one name."""

    def mkdir(self, path: str) -> None:
        """Make a folder with the board's own mode; one that is there already is fine."""

    def rmdir(self, path: str) -> None:
        """Remove a folder that is empty."""

    def touch(self, path: str) -> None:
        """Set a file's times to the file system's now, as the file system counts it."""

    def nameless(self) -> Stat:
        """The times of a new file that never gets a name; refused where there are none such."""

    def sync(self, path: str) -> None:
        """Make a file, or a folder's names, durable."""

    def boottime(self) -> int:
        """Nanoseconds on a clock that runs through suspend and that nobody sets."""

    def sleep(self, seconds: float) -> None:
        """Wait before a storage error is tried again."""

    def nonce(self) -> str:
        """Ten hex digits that no other operation will mint."""


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AT_FDCWD = -100
_NOREPLACE = 1
_SYSCALLS = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "armv7l": 382, "ppc64le": 357}
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_EFFECTIVE = os.access in os.supports_effective_ids
_KINDS = {
    modes.S_IFDIR: "a folder",
    modes.S_IFLNK: "a link",
    modes.S_IFIFO: "a FIFO",
    modes.S_IFSOCK: "a socket",
    modes.S_IFCHR: "a device",
    modes.S_IFBLK: "a device",
}
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_FORTY_BITS = (1 << 40) - 1
_ODD = 0x9E3779B97F
"""Spreads near numbers far apart, and maps no two of forty bits to one."""


class Disk:
    """A directory on a real file system."""

    read_only = False

    def __init__(self, root: str) -> None:
        self.root = root
        self.keeps = True
        """The kernel refuses to rename over a file (`RENAME_NOREPLACE`); else dibs looks first."""
        self._prefix = root.rstrip("/") + "/"
        self._mode: int | None = None
        self._group = -1
        self._lies: bool | None = None

    def names(self, folder: str) -> list[str]:
        return os.listdir(self._prefix + folder)

    def stat(self, path: str) -> Stat:
        s = os.lstat(self._prefix + path)
        return Stat(s.st_ino, s.st_dev, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def unfit(self, path: str) -> str:
        full = self._prefix + path
        mode = os.lstat(full).st_mode
        if not modes.S_ISREG(mode):
            return (
                f"only a file can be claimed, and this is {_KINDS.get(modes.S_IFMT(mode), 'none')}"
            )
        if mode & 0o444 == 0o444 or os.access(full, os.R_OK, effective_ids=_EFFECTIVE):
            return ""
        return "this user cannot read it"

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        if not self.stat(path).regular:  # opening a FIFO would wake whoever writes to it
            raise OSError(errno.EINVAL, "not a regular file", path)
        fd = os.open(self._prefix + path, os.O_RDONLY | _OPEN)
        try:
            s = os.fstat(fd)
            data = os.pread(fd, min(limit, max(s.st_size - offset, 0)), offset)
            # Once more: a FUSE client that has just read a file no longer answers from its cache.
            s = os.fstat(fd)
        finally:
            os.close(fd)
        return data, Stat(s.st_ino, s.st_dev, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        fd = os.open(self._prefix + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o666)
        try:
            self._own(fd)
            if data:
                _write(fd, data)
            if sync:
                os.fsync(fd)
        except BaseException:  # Ctrl+C as well: half a file is worse than none
            os.unlink(self._prefix + path)
            raise
        finally:
            os.close(fd)

    def append(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | _OPEN
        try:
            s = os.lstat(self._prefix + path)
            if not modes.S_ISREG(s.st_mode) or s.st_nlink != 1:  # a second name may lie elsewhere
                raise OSError(errno.EINVAL, "not a regular file of the board's own", path)
            fd = os.open(self._prefix + path, flags)
        except FileNotFoundError:
            fd = os.open(self._prefix + path, flags | os.O_CREAT, 0o666)
            self._own(fd)
        try:
            _write(fd, data)
        finally:
            os.close(fd)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        src, dst = self._prefix + src, self._prefix + dst
        if self._lies is None:
            self._lies = _on_glusterfs(self._prefix)
        self._rename(src, dst, keep)
        # A name to keep has no nonce: it may be somebody else's by now, and proves nothing.
        if self._lies and not keep and not _surely_there(dst, self._prefix):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src, None, dst)

    def _rename(self, src: str, dst: str, keep: bool) -> None:
        if not keep:
            os.rename(src, dst)
        elif self.keeps and (renameat2 := _find_renameat2()) is not None:
            code = renameat2(os.fsencode(src), os.fsencode(dst))
            if code in _UNSUPPORTED:
                self.keeps = False
                _look_and_rename(src, dst)
            elif code:
                raise OSError(code, os.strerror(code), src, None, dst)
        else:
            self.keeps = False
            _look_and_rename(src, dst)

    def link(self, src: str, dst: str) -> None:
        os.link(self._prefix + src, self._prefix + dst, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        os.unlink(self._prefix + path)

    def mkdir(self, path: str) -> None:
        full = self._prefix + path
        try:
            found = os.lstat(full)
        except FileNotFoundError:
            self._make(full)
            found = os.lstat(full)
        if not modes.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder of its own", full)

    def _make(self, full: str) -> None:
        """Give a folder its name only when it has its mode, or another user's first verb fails."""
        inner = full if full.startswith(f"{self._prefix}.dibs") else f"{self._prefix}.dibs/new"
        draft = f"{inner}.{self.nonce()}"
        os.mkdir(draft)
        try:
            mode, group = self._manners()
            os.chmod(draft, mode)
            if group >= 0:
                _give(draft, group)
            self._rename(draft, full, keep=True)
        except OSError as error:
            os.rmdir(draft)
            if error.errno not in _TAKEN:
                raise

    def rmdir(self, path: str) -> None:
        os.rmdir(self._prefix + path)

    def touch(self, path: str) -> None:
        os.utime(self._prefix + path, follow_symlinks=False)

    def nameless(self) -> Stat:
        flag: int = getattr(os, "O_TMPFILE", 0)
        if not flag:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), self.root)
        fd = os.open(self.root, os.O_WRONLY | os.O_CLOEXEC | flag, 0o600)
        try:
            s = os.fstat(fd)
        finally:
            os.close(fd)
        return Stat(s.st_ino, s.st_dev, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def sync(self, path: str) -> None:
        full = self._prefix + path
        mode = os.lstat(full).st_mode
        if not modes.S_ISDIR(mode) and not modes.S_ISREG(mode):
            return
        flush: Callable[[int], object] = os.fsync
        try:
            fd = os.open(full, os.O_RDONLY | _OPEN)
        except PermissionError:  # another user's: who may not open it can sync all that is there
            fd, flush = os.open(os.path.dirname(full), os.O_RDONLY | _OPEN), _find_syncfs()
        try:
            flush(fd)
        except OSError as error:
            # Some file systems have no fsync for folders; what they do by themselves must do.
            if not modes.S_ISDIR(mode) or error.errno not in _UNSUPPORTED:
                raise
        finally:
            os.close(fd)

    def boottime(self) -> int:
        return time.clock_gettime_ns(_CLOCK)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def nonce(self) -> str:
        # Clones of one machine image can draw the same random bytes: time, pid and host differ.
        own = time.time_ns() * _ODD + _process_number()
        return f"{(int.from_bytes(os.urandom(5)) ^ own) & _FORTY_BITS:010X}"

    def _own(self, fd: int) -> None:
        """Give a new file the board's mode and group, whatever the umask says."""
        mode, group = self._manners()
        os.fchmod(fd, mode & 0o666)
        if group >= 0:
            _give(fd, group)

    def _manners(self) -> tuple[int, int]:
        if self._mode is None:
            s = os.stat(self._prefix)
            self._mode = modes.S_IMODE(s.st_mode) & 0o2777
            inherited = s.st_mode & modes.S_ISGID or s.st_gid == os.getegid()
            self._group = -1 if inherited else s.st_gid
        return self._mode, self._group


class _Renameat2(Protocol):
    def __call__(self, src: bytes, dst: bytes) -> int: ...


@cache
def _find_renameat2() -> _Renameat2 | None:
    """The call itself, through libc's function or, where libc lacks it, its number."""
    import ctypes  # not at the top: a third of the import time, and only a writer needs it

    libc = ctypes.CDLL(None, use_errno=True)
    number = _SYSCALLS.get(os.uname().machine)
    head: tuple[object, ...] = ()
    if hasattr(libc, "renameat2"):
        function = libc.renameat2
    elif number is not None and hasattr(libc, "syscall"):
        function, head = libc.syscall, (ctypes.c_long(number),)
    else:
        return None

    def call(src: bytes, dst: bytes) -> int:
        if function(*head, _AT_FDCWD, src, _AT_FDCWD, dst, _NOREPLACE) == 0:
            return 0
        return ctypes.get_errno()

    return call


def _find_syncfs() -> Callable[[int], object]:
    """The call that syncs the file system of an open file; where libc lacks it, one for all."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        return lambda fd: os.sync()

    def call(fd: int) -> None:
        if libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return call


def _look_and_rename(src: str, dst: str) -> None:
    """All that is left where the kernel cannot refuse; `link` and `unlink` would lose tasks."""
    if os.path.lexists(dst):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), src, None, dst)
    os.rename(src, dst)


def _on_glusterfs(path: str) -> bool:
    """Whether `rename` may have been told that it was done when it was not.

    A client of GlusterFS answers so where two processes go for a name that a listing has brought
    back into the kernel's cache, and from then on shows the file under the name that it has not.
    """
    device = os.stat(path).st_dev
    if os.major(device):  # a disk of this machine's own
        return False
    own = f" 0:{os.minor(device)} ".encode()
    try:
        with open("/proc/self/mountinfo", "rb") as table:
            return any(own in line and b" - fuse.glusterfs " in line for line in table)
    except OSError:
        return False


def _surely_there(path: str, folder: str) -> bool:
    """Whether the server has that name, whatever the kernel remembers.

    A new link's name is looked up afresh, and no system links a folder.
    """
    try:
        os.link(folder, path)
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    return False


@cache
def _process_number() -> int:
    """One for each process of each host; asking for the process's id is a system call."""
    host = int.from_bytes(os.uname().nodename.encode(errors="surrogateescape"))
    return os.getpid() * _ODD * _ODD + host * _ODD


os.register_at_fork(after_in_child=_process_number.cache_clear)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _give(where: int | str, group: int) -> None:
    try:
        os.chown(where, -1, group)
    except OSError as error:
        # Not a member of the board's group, or it has no number here (a user namespace, a server
        # that maps ids): the mode alone must do.
        if error.errno not in (errno.EPERM, errno.EACCES, errno.EINVAL):
            raise
