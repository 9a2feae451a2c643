"""What this user may not do in a board's folders, and what would help."""

from __future__ import annotations

import os
import pwd
import stat
from itertools import accumulate
from pathlib import Path

from dibs import ReadOnly
from dibs_tui.watching.events import FOLDERS


def unreadable(path: str) -> str:
    """What keeps this user from looking at a path, in one line; empty where nothing does."""
    for folder in accumulate(Path(path).parent.parts, os.path.join):
        if os.path.lexists(folder) and not os.access(folder, os.X_OK):
            return _told(folder, "enter it")
    is_folder = os.path.isdir(path)
    if is_folder and not os.access(path, os.X_OK):
        return _told(path, "enter it")
    if os.path.lexists(path) and not os.access(path, os.R_OK):
        return _told(path, "list it" if is_folder else "read it")
    return ""


def denied(error: ReadOnly, root: str) -> str:
    """Why a look failed: nothing was to be written, whatever is said of that."""
    refused = error.__cause__
    place = refused.filename if isinstance(refused, OSError) else None
    return unreadable(place or root) or str(error)


def unwritable(root: str) -> str:
    """Why nothing on a board can be changed, in one line; empty where it can."""
    for folder in FOLDERS:
        place = os.path.normpath(os.path.join(root, folder))
        if os.path.lexists(place) and not os.access(place, os.W_OK | os.X_OK):
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                return f"{place}: it is mounted read-only"
            return _told(place, "write in it")
    return ""


def _told(place: str, what: str) -> str:
    try:
        found = os.stat(place)
    except OSError:  # it went meanwhile
        return ""
    user, owner = _name(os.geteuid()), _name(found.st_uid)
    helps = "chmod u+rwx it" if user == owner else f"ask {owner}, or run dibs as {owner}"
    mode = f"{stat.filemode(found.st_mode)} of {owner}"
    return f"{place}: permission denied: {user} may not {what} ({mode}): {helps}"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
