"""Whether the mount that a board is on is missing, before an empty board is made beneath it.

Asked only where there is no board yet. Two things tell: a mount point of /etc/fstab at or above the
path that nothing is mounted on; and what this user saw there before, on this host, if it was on
another mount. Neither knows of a mount that is made by hand or by another program and that this
user never opened with the dashboard or with `init`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dibs import mounts

FSTAB = "/etc/fstab"
_NAME = "boards.json"
_KEPT = 200
_BYTES = 1 << 20
_UNMOUNTED = ("", "none", "swap", "/")


def why(root: str, environ: Mapping[str, str] = os.environ) -> str:
    """Why a board must not be made there, in one line; empty where nothing speaks against it."""
    if os.path.lexists(os.path.join(root, ".dibs")):
        return ""
    table, whole, now = _here(root)
    if not table:
        return ""
    point = _unmounted(whole, table)
    if point:
        return f"{point} is in {FSTAB} and not mounted: mount it first"
    before = _load(environ).get(root)
    if before is None or before == _kept(now):
        return ""
    told = f"{before[1]} on {before[0]}"
    return (
        f"a board was seen here on another mount ({told}), which is not mounted now: mount it first"
    )


def gone(root: str, environ: Mapping[str, str] = os.environ) -> str:
    """Where a directory is missing in which this user saw a board before; empty elsewhere."""
    before = None if os.path.lexists(root) else _load(environ).get(root)
    if before is None:
        return ""
    return (
        f"a board was seen here before ({before[1]} on {before[0]}), and its directory is gone: "
        "mount it or move it back; `dibs init` would make another, empty one"
    )


def remember(root: str, environ: Mapping[str, str] = os.environ) -> None:
    """Note on which mount a board is; a home that cannot be written forgets it."""
    table, _, now = _here(root)
    seen = _load(environ)
    if not table or seen.get(root) == _kept(now):
        return
    seen.pop(root, None)
    seen[root] = _kept(now)
    path = _path(environ)
    draft = f"{path}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(draft).write_text(json.dumps(dict(list(seen.items())[-_KEPT:])))
        os.replace(draft, path)


Kept = tuple[str, str]
"""Mount point, and file system with its source."""


def _kept(mount: mounts.Mount) -> Kept:
    return mount.point, f"{mount.fstype} {mount.source}".strip()


def _here(root: str) -> tuple[list[mounts.Entry], str, mounts.Mount]:
    """The mount table, the path without links, and the mount that it is on."""
    try:
        table = mounts.read(Path(mounts.TABLE).read_bytes())
    except OSError:
        return [], root, mounts.UNKNOWN
    whole = mounts.settle(root, table)
    return table, whole, mounts.holding(whole, table)


def _unmounted(whole: str, table: Sequence[mounts.Entry]) -> str:
    """The mount point at or above a path that should have something mounted on it."""
    try:
        lines = Path(FSTAB).read_bytes().split(b"\n")
    except OSError:
        return ""
    mounted = {entry.mount.point for entry in table}
    fields = [line.split() for line in lines if not line.lstrip().startswith(b"#")]
    points = [mounts.plain(each[1]) for each in fields if len(each) > 2]
    points = [os.path.normpath(p) for p in points if p not in _UNMOUNTED and os.path.isabs(p)]
    above = [p for p in points if mounts.below(whole, p) and p not in mounted]
    return max(above, key=len, default="")


def _path(environ: Mapping[str, str]) -> str:
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local/state")
    return os.path.join(state, "dibs", _NAME)


def _load(environ: Mapping[str, str]) -> dict[str, Kept]:
    """What was seen, as far as it can be understood."""
    try:
        with open(_path(environ), "rb") as file:
            found: Any = json.loads(file.read(_BYTES))
        return {str(root): (str(point), str(kind)) for root, (point, kind) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
