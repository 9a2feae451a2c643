"""The port to a real disk, through which all code of the engine touches files.

The engine is written against `Port`, and `Disk` implements it. The tests put a simulated file
system behind the same calls, to drive the shipped code through every interleaving. Paths are
relative to the board; errors are plain `OSError`.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from dibs import host
from dibs.files.port import Stat
from dibs.host import LINUX

if TYPE_CHECKING:
    from ctypes import CDLL

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AT_FDCWD = -100
_NOREPLACE = 1
_EXCL = 4
"""The same for `renamex_np` of macOS."""
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
_access, _EXISTS = os.access, os.F_OK
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)
_fields = attrgetter(
    "st_ino", "st_dev", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_nlink"
)
_LOCAL = (b"", b"tmpfs", b"btrfs", b"overlay", b"zfs", b"ramfs")
"""File systems of this kernel, which answer for a name at once; empty stands for a disk."""


class Disk:
    """A directory on a real file system."""

    read_only = False

    def __init__(self, root: str) -> None:
        self.root = root
        self.keeps = True
        """Whether the kernel can refuse to rename over a file; otherwise dibs looks first."""
        self._prefix = root.rstrip("/") + "/"
        self._ownership: tuple[int, int] | None = None
        """The mode and group of new files; the group is -1 if the file system sets it itself."""
        self._kind: bytes | None = None
        """The type of the file system, empty for a local disk; None before it was looked up."""
        self._unreliable = False
        """Whether a rename may report success without doing anything."""
        self._quick = False
        """Whether `access` suffices to find a name missing."""

    def names(self, folder: str) -> list[str]:
        return os.listdir(self._prefix + folder)

    def stat(self, path: str) -> Stat:
        s = os.lstat(self._prefix + path)
        return Stat(*_fields(s))

    def missing(self, path: str) -> bool:
        if self._quick:  # it raises nothing, which is faster, but hides an I/O error
            return not _access(self._prefix + path, _EXISTS)
        if self._kind is None:
            self._look_up_kind()
            return self.missing(path)
        try:
            os.lstat(self._prefix + path)
        except FileNotFoundError:
            return True
        return False

    def unfit(self, path: str) -> str:
        full = self._prefix + path
        mode = os.lstat(full).st_mode
        if not modes.S_ISREG(mode):
            kind = _KINDS.get(modes.S_IFMT(mode), "none")
            return f"only a file can be claimed, and this is {kind}: move it away"
        if mode & 0o444 == 0o444 or os.access(full, os.R_OK, effective_ids=_EFFECTIVE):
            return ""
        return "this user cannot read it: `chmod +r` it, or claim it as another user"

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        full = self._prefix + path
        if not modes.S_ISREG(os.lstat(full).st_mode):  # opening a FIFO would wake its writer
            raise OSError(errno.EINVAL, "not a regular file", path)
        fd = os.open(full, os.O_RDONLY | _OPEN)
        try:
            s = os.fstat(fd)
            data = os.pread(fd, min(limit, max(s.st_size - offset, 0)), offset)
            # Ask again: once a FUSE client has read a file, it no longer answers from its cache.
            s = os.fstat(fd)
        finally:
            os.close(fd)
        return data, Stat(*_fields(s))

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        fd = os.open(self._prefix + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o666)
        try:
            self._own(fd)
            if data:
                _write(fd, data)
            if sync:
                os.fsync(fd)
        except BaseException as error:  # Ctrl+C as well: a partial file is worse than none
            _name(error, self._prefix + path)
            os.unlink(self._prefix + path)
            raise
        finally:
            os.close(fd)

    def append(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | _OPEN
        try:
            s = os.lstat(self._prefix + path)
            if not modes.S_ISREG(s.st_mode) or s.st_nlink != 1:  # a link may lead off the board
                raise OSError(errno.EINVAL, "not a regular file of the board", path)
            fd = os.open(self._prefix + path, flags)
        except FileNotFoundError:
            fd = os.open(self._prefix + path, flags | os.O_CREAT, 0o666)
            self._own(fd)
        try:
            _write(fd, data)
        except OSError as error:
            _name(error, self._prefix + path)
            raise
        finally:
            os.close(fd)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        src, dst = self._prefix + src, self._prefix + dst
        if self._kind is None:
            self._look_up_kind()
        if keep:
            self._rename_keeping(src, dst)
        else:
            os.rename(src, dst)
        # With `keep` the name has no nonce: another process may have made it, so it proves nothing.
        if self._unreliable and not keep and not _exists_on_server(dst, self._prefix):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src, None, dst)

    def _rename_keeping(self, src: str, dst: str) -> None:
        if self.keeps and (renameat2 := _find_renameat2()) is not None:
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
            raise NotADirectoryError(errno.ENOTDIR, "not a real folder", full)

    def _make(self, full: str) -> None:
        """Set a folder's mode before it gets its name: other users may use it from then on."""
        inner = full if full.startswith(f"{self._prefix}.dibs") else f"{self._prefix}.dibs/new"
        draft = f"{inner}.{self.nonce()}"
        os.mkdir(draft)
        try:
            mode, group = self._ownership or self._find_ownership()
            os.chmod(draft, mode)
            if group >= 0:
                _set_group(draft, group)
            self._rename_keeping(draft, full)
        except OSError as error:
            os.rmdir(draft)
            if error.errno not in _TAKEN:
                raise

    def rmdir(self, path: str) -> None:
        os.rmdir(self._prefix + path)

    def touch(self, path: str) -> None:
        full = self._prefix + path
        try:
            os.utime(full, follow_symlinks=False)
        except OSError as error:
            error.filename = full  # Python leaves it out here
            raise

    def nameless(self) -> Stat:
        flag: int = getattr(os, "O_TMPFILE", 0)
        if not flag:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), self.root)
        fd = os.open(self.root, os.O_WRONLY | os.O_CLOEXEC | flag, 0o600)
        try:
            s = os.fstat(fd)
        finally:
            os.close(fd)
        return Stat(*_fields(s))

    def sync(self, path: str) -> None:
        full = self._prefix + path
        mode = os.lstat(full).st_mode
        if not modes.S_ISDIR(mode) and not modes.S_ISREG(mode):
            return
        flush: Callable[[int], object] = os.fsync
        try:
            fd = os.open(full, os.O_RDONLY | _OPEN)
        except PermissionError:  # another user's file: sync the complete file system instead
            fd, flush = os.open(os.path.dirname(full), os.O_RDONLY | _OPEN), _find_syncfs()
        try:
            flush(fd)
        except OSError as error:
            # Some file systems have no fsync for folders; nothing more can be done there.
            if not modes.S_ISDIR(mode) or error.errno not in _UNSUPPORTED:
                raise
        finally:
            os.close(fd)

    boottime = staticmethod(partial(time.clock_gettime_ns, _CLOCK))

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    nonce = staticmethod(host.nonce)

    def _own(self, fd: int) -> None:
        """Give a new file the board's mode and group, whatever the umask is."""
        mode, group = self._ownership or self._find_ownership()
        os.fchmod(fd, mode & 0o666)
        if group >= 0:
            _set_group(fd, group)

    def _look_up_kind(self) -> None:
        """Find out what a rename and a look mean on this file system.

        On GlusterFS `rename` may report success but do nothing. That happens when two processes
        rename a name that a listing has put back into the kernel's cache. From then on the client
        shows the file under the name that it does not have.
        """
        device, kind = os.stat(self._prefix).st_dev, b""
        if not os.major(device):  # without a disk of its own
            own = f" 0:{os.minor(device)} ".encode()
            found = []
            with suppress(OSError), open("/proc/self/mountinfo", "rb") as table:
                found = [line for line in table if own in line]
            kind = found[-1].rpartition(b" - ")[2].split(b" ")[0] if found else b"unknown"
        self._kind = kind
        self._unreliable = kind == b"fuse.glusterfs"
        self._quick = kind in _LOCAL

    def _find_ownership(self) -> tuple[int, int]:
        s = os.stat(self._prefix)
        inherited = s.st_mode & modes.S_ISGID or s.st_gid == os.getegid()
        self._ownership = modes.S_IMODE(s.st_mode) & 0o2777, -1 if inherited else s.st_gid
        return self._ownership


class _Renameat2(Protocol):
    def __call__(self, src: bytes, dst: bytes) -> int: ...


@cache
def _find_renameat2() -> _Renameat2 | None:
    """The system call, through libc's function or by its number; None if neither exists."""
    import ctypes  # not at the top: a third of the import time, and only a writer needs it

    libc = ctypes.CDLL(None, use_errno=True)
    if not LINUX:  # where this number is another call
        return _find_renamex(libc)
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


def _find_renamex(libc: CDLL) -> _Renameat2 | None:
    """The call of macOS that does the same; None if there is none."""
    import ctypes

    if not hasattr(libc, "renamex_np"):
        return None

    def call(src: bytes, dst: bytes) -> int:
        return 0 if libc.renamex_np(src, dst, _EXCL) == 0 else ctypes.get_errno()

    return call


def _find_syncfs() -> Callable[[int], object]:
    """The call that syncs the file system of an open file; without it, one that syncs all."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        return lambda fd: os.sync()

    def call(fd: int) -> None:
        if libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return call


def _look_and_rename(src: str, dst: str) -> None:
    """The fallback where the kernel cannot refuse; `link` and `unlink` could lose tasks."""
    if os.path.lexists(dst):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), src, None, dst)
    os.rename(src, dst)


def _exists_on_server(path: str, folder: str) -> bool:
    """Whether the server has that name, whatever the kernel has cached.

    An attempt to link makes the client ask the server. The link is never made, because no system
    links a folder.
    """
    try:
        os.link(folder, path)
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    return False


def _name(error: BaseException, path: str) -> None:
    """Note the path in an error of a call on a descriptor, which does not know it."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = path


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _set_group(where: int | str, group: int) -> None:
    try:
        os.chown(where, -1, group)
    except OSError as error:
        # This user is not a member of the group, or the group does not exist here (user
        # namespaces, a server that maps ids). The mode must suffice then.
        if error.errno not in (errno.EPERM, errno.EACCES, errno.EINVAL):
            raise
