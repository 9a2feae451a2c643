"""Which permission this user lacks on a path, and how to get it."""

from __future__ import annotations

import os
import pwd
import stat
from itertools import accumulate
from pathlib import Path


def unreadable(path: str) -> str:
    """Why this user cannot read a path, in one line; empty if it can."""
    for folder in accumulate(Path(path).parent.parts, os.path.join):
        if os.path.lexists(folder) and not os.access(folder, os.X_OK):
            return explained(folder, "enter it")
    is_folder = os.path.isdir(path)
    if is_folder and not os.access(path, os.X_OK):
        return explained(path, "enter it")
    if os.path.lexists(path) and not os.access(path, os.R_OK):
        return explained(path, "list it" if is_folder else "read it")
    return ""


def unusable(path: str) -> str:
    """Why this user cannot read, rename or write a path, in one line; empty if that is unknown."""
    if not os.path.isabs(path):
        return ""
    why, folder = unreadable(path), os.path.dirname(path)
    if not why and os.path.lexists(folder) and not os.access(folder, os.W_OK | os.X_OK):
        why = explained(folder, "write in it")
    if not why and os.path.lexists(path) and not os.access(path, os.W_OK):
        why = explained(path, "write in it")
    return why


def explained(place: str, what: str) -> str:
    """The line about a path: what this user cannot do, its mode and owner, and what to do."""
    try:
        found = os.stat(place)
    except OSError:  # removed in the meantime
        return ""
    user, owner = _name(os.geteuid()), _name(found.st_uid)
    rights = "rwx" if stat.S_ISDIR(found.st_mode) else "rw"
    helps = f"chmod u+{rights} it" if user == owner else f"ask {owner}, or run dibs as {owner}"
    mode = f"{stat.filemode(found.st_mode)} of {owner}"
    return f"{place}: permission denied: {user} cannot {what} ({mode}): {helps}"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
