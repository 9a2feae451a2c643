"""Why a task that waits cannot be claimed: what a claimant finds out by trying, seen by looking."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from dibs import names
from dibs.claims import FENCE_FULL
from dibs.disk import Disk
from dibs.names import AVAILABLE, FENCE_MAX, Task

if TYPE_CHECKING:
    from dibs.store import Store

_AT_FDCWD, _NOFOLLOW, _BASIC = -100, 0x100, 0x7FF
_HEAD = struct.Struct("=IIQIII")
"""Mask, block size, attributes, links, user, group: the beginning of what `statx` fills in."""
_SIZE = 256
_ATTRIBUTES = {
    0x10: "it is immutable, and an immutable file cannot be renamed: `chattr -i` it",
    0x20: "it is append-only, and such a file cannot be renamed: `chattr -a` it",
    0x2000: "something is mounted on it, and a mount point cannot be renamed: unmount it",
}
_STICKY = 0o1000


def obstacles(store: Store) -> Iterator[tuple[Task, str]]:
    """The tasks and free locks that this user cannot claim, each with the reason."""
    look = _looker(store)
    waiting = (name for name in store.listing() if name.endswith(f".{AVAILABLE}"))
    for name in (*waiting, *store.all_free()):
        task = names.read_any(name)
        if task is None:
            continue
        try:
            reason = FENCE_FULL if task.fence >= FENCE_MAX else store.port.unfit(name) or look(name)
        except OSError:  # gone meanwhile, or the disk does not answer
            continue
        if reason:
            yield task, reason


def _looker(store: Store) -> Callable[[str], str]:
    """What finds out why a file cannot be renamed; empty where nothing is known against it."""
    if not isinstance(store.port, Disk) or (statx := _find_statx()) is None:
        return lambda name: ""
    root, me = store.port.root, os.geteuid()
    folder = os.stat(root)
    guarded = bool(folder.st_mode & _STICKY) and me not in (0, folder.st_uid)

    def look(name: str) -> str:
        attributes, owner = statx(os.fsencode(os.path.join(root, name)))
        for bit, reason in _ATTRIBUTES.items():
            if attributes & bit:
                return reason
        if guarded and owner != me:
            return "it is another user's in a sticky directory: `chmod -t` the board"
        return ""

    return look


@cache
def _find_statx() -> Callable[[bytes], tuple[int, int]] | None:
    """A file's attributes and its user, through libc; Python has no call for the former."""
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
