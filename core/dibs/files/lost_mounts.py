"""Detect that a board's mount is missing, before an empty board is made in its mount point.

This is asked only where there is no board yet. There are two signs: /etc/fstab lists a mount point
at or above the path, and nothing is mounted on it; or this user has seen a board there on another
mount. A mount that was made by hand goes undetected until this user has opened its board once with
the dashboard or with `init`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dibs.files import mounts, user_files
from dibs.files.paths import init_command

FSTAB = "/etc/fstab"
_NAME = "boards.json"
_KEPT = 200
_UNMOUNTED = ("", "none", "swap", "/")


def why(root: str, environ: Mapping[str, str] = os.environ) -> str:
    """Why a board must not be made there, in one line; empty if it can be."""
    if os.path.lexists(os.path.join(root, ".dibs")):
        return ""
    table, path, now = _here(root)
    if not table:
        return ""
    point = _unmounted(path, table)
    if point:
        return f"{point} is in {FSTAB} but not mounted: mount it first"
    before = _load(environ).get(root)
    if before is None or before == _kept(now):
        return ""
    what = f"the board that was here is on another mount ({before[1]} on {before[0]})"
    if before in [_kept(entry.mount) for entry in table]:
        return f"{what}, which {now.point} covers: unmount that first"
    return f"{what}, which is not mounted now: mount it first"


def gone(root: str, environ: Mapping[str, str] = os.environ) -> str:
    """What to do about a missing directory that held a board; empty if none was seen there."""
    before = None if os.path.lexists(root) else _load(environ).get(root)
    if before is None:
        return ""
    return (
        f"the directory of the board that was here ({before[1]} on {before[0]}) is gone: "
        f"mount it or move it back; `{init_command(root)}` would make a new, empty board"
    )


def remember(root: str, environ: Mapping[str, str] = os.environ) -> None:
    """Remember which mount a board is on; does nothing if the home cannot be written."""
    table, _, now = _here(root)
    seen = _load(environ)
    if not table or seen.get(root) == _kept(now):
        return
    seen.pop(root, None)
    seen[root] = _kept(now)
    with suppress(OSError):
        user_files.replace(
            user_files.path(_NAME, environ), json.dumps(_newest(seen, table)).encode()
        )


Kept = tuple[str, str]
"""Mount point, and file system with its source."""


def _kept(mount: mounts.Mount) -> Kept:
    return mount.point, f"{mount.fstype} {mount.source}".strip()


def _newest(seen: dict[str, Kept], table: Sequence[mounts.MountEntry]) -> dict[str, Kept]:
    """The boards to remember; those whose folder was removed from a mount that is there go first.

    Without that, a script that makes boards in temporary folders would push out all others.
    """
    if len(seen) <= _KEPT:
        return seen
    kept = [root for root in seen if not _removed(root, seen[root], table)]
    gone = [root for root in seen if root not in kept]
    left = {*[*gone, *kept][-_KEPT:]}
    return {root: mount for root, mount in seen.items() if root in left}


def _removed(root: str, before: Kept, table: Sequence[mounts.MountEntry]) -> bool:
    """Whether a board's folder is gone while its mount is there; never touches a remote one."""
    now = mounts.holding(mounts.settle(root, table), table)
    return not now.network and _kept(now) == before and not os.path.lexists(root)


def _here(root: str) -> tuple[list[mounts.MountEntry], str, mounts.Mount]:
    """The mount table, the path without links, and the mount that it is on."""
    try:
        table = mounts.read(mounts.content(mounts.TABLE))
    except OSError:
        return [], root, mounts.UNKNOWN
    path = mounts.settle(root, table)
    return table, path, mounts.holding(path, table)


def _unmounted(path: str, table: Sequence[mounts.MountEntry]) -> str:
    """The mount point of fstab at or above a path that has nothing mounted on it."""
    try:
        lines = mounts.content(FSTAB).split(b"\n")
    except OSError:
        return ""
    mounted = {entry.mount.point for entry in table}
    fields = [line.split() for line in lines if not line.lstrip().startswith(b"#")]
    points = [mounts.plain(each[1]) for each in fields if len(each) > 2]
    points = [os.path.normpath(p) for p in points if p not in _UNMOUNTED and os.path.isabs(p)]
    above = [p for p in points if mounts.below(path, p) and p not in mounted]
    return max(above, key=len, default="")


def _load(environ: Mapping[str, str]) -> dict[str, Kept]:
    """The boards seen before, with their mounts; empty if the file cannot be parsed."""
    try:
        found: Any = json.loads(user_files.read(_NAME, environ))
        return {str(root): (str(point), str(kind)) for root, (point, kind) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
