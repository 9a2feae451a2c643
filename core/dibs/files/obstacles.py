"""Why an available task cannot be claimed, found out without an attempt to claim it."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from dibs.files.disk import Disk
from dibs.model import names
from dibs.model.names import FENCE_MAX
from dibs.model.refusals import FENCE_FULL
from dibs.model.task import WAITING, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

_AT_FDCWD, _NOFOLLOW, _BASIC = -100, 0x100, 0x7FF
_HEAD = struct.Struct("=IIQIII")
"""The first fields that `statx` fills in: mask, block size, attributes, links, user, group."""
_SIZE = 256
_ATTRIBUTES = {
    0x10: "it is immutable, and an immutable file cannot be renamed: `chattr -i` it",
    0x20: "it is append-only, and an append-only file cannot be renamed: `chattr -a` it",
    0x2000: "something is mounted on it, and a mount point cannot be renamed: unmount it",
}
_STICKY = 0o1000
_FLAGS = {
    0x10: stat.UF_IMMUTABLE | stat.SF_IMMUTABLE,
    0x20: stat.UF_APPEND | stat.SF_APPEND,
}
"""The same attributes as `st_flags` has them; `chflags` changes them there."""


def obstacles(store: BoardFiles) -> Iterator[tuple[Task, str]]:
    """The waiting tasks and free locks that this user cannot claim, each with the reason."""
    look = _looker(store)
    ends = tuple(f".{state}" for state in WAITING)
    available = (name for name in store.listing() if name.endswith(ends))
    for name in (*available, *store.all_free()):
        task = names.read_any(name)
        if task is None:
            continue
        try:
            reason = FENCE_FULL if task.fence >= FENCE_MAX else store.port.unfit(name) or look(name)
        except OSError:  # gone in the meantime, or the disk does not answer
            continue
        if reason:
            yield task, reason


def _looker(store: BoardFiles) -> Callable[[str], str]:
    """A function that says why a file cannot be renamed; it returns "" if no reason is known."""
    if not isinstance(store.port, Disk):
        return lambda name: ""
    statx = _find_statx() or _lstat
    root, me = store.port.root, os.geteuid()
    folder = os.stat(root)
    guarded = bool(folder.st_mode & _STICKY) and me not in (0, folder.st_uid)

    def look(name: str) -> str:
        attributes, owner = statx(os.fsencode(os.path.join(root, name)))
        for bit, reason in _ATTRIBUTES.items():
            if attributes & bit:
                return reason
        if guarded and owner != me:
            return "another user owns it, and the directory is sticky: `chmod -t` the board"
        return ""

    return look


def _lstat(path: bytes) -> tuple[int, int]:
    """The owner alone, and the attributes that macOS has among the fields of `lstat`."""
    found = os.lstat(path)
    flags = getattr(found, "st_flags", 0)
    return sum(bit for bit, flag in _FLAGS.items() if flags & flag), found.st_uid


@cache
def _find_statx() -> Callable[[bytes], tuple[int, int]] | None:
    """A function that reads a file's attributes and owner with libc's `statx`, if there is one.

    Python has no call for the attributes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "statx"):
        return None

    def call(path: bytes) -> tuple[int, int]:
        found = ctypes.create_string_buffer(_SIZE)
        if libc.statx(_AT_FDCWD, path, _NOFOLLOW, _BASIC, found) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), os.fsdecode(path))
        _, _, attributes, _, owner, _ = _HEAD.unpack_from(found)
        return attributes, owner

    return call
