"""Whether the storage of a board has room for the files that workers write."""

from __future__ import annotations

import os

_BYTES = 1 << 20
"""With fewer free bytes a record or a result can fail at any moment."""
_INODES = 16


def why_full(path: str) -> str:
    """What the storage has run out of, in a few words; empty if it has room, or cannot say."""
    try:
        found = os.statvfs(path)
    except OSError:
        return ""
    free = found.f_bavail * found.f_frsize
    if found.f_blocks and free < _BYTES:
        return f"the disk is full: {free // 1024} KiB free"
    if found.f_files and found.f_favail < _INODES:
        return f"the disk has no room for more files: {found.f_favail} inodes free"
    return ""
