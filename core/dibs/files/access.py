"""Which permissions this user lacks in a board's folders, and how to get them."""

from __future__ import annotations

import os

from dibs.files.board_files import WATCHED
from dibs.model.access import explained, unreadable
from dibs.model.errors import ReadOnly


def denied(error: ReadOnly, root: str) -> str:
    """Why a read failed; the text of `error` itself is about writing."""
    refused = error.__cause__
    place = refused.filename if isinstance(refused, OSError) else None
    return unreadable(place or root) or str(error)


def unwritable(root: str) -> str:
    """Why this user cannot change anything on a board, in one line; empty if it can."""
    for folder in WATCHED:
        place = os.path.normpath(os.path.join(root, folder))
        if os.path.lexists(place) and not os.access(place, os.W_OK | os.X_OK):
            if mounted_read_only(place):
                return f"{place} is mounted read-only"
            return explained(place, "write in it")
    return ""


def mounted_read_only(place: str) -> bool:
    """Whether no one can change anything there through this mount."""
    return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
