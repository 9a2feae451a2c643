"""Find the file system of a path in the kernel's mount table.

The path itself is touched only where that cannot hang: links are followed only up to the first
mount that may be remote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

TABLE = "/proc/self/mountinfo"
_REMOTE = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "coda", "davfs", "ceph", "glusterfs"),
    *("lustre", "gpfs", "beegfs", "orangefs", "gfs2", "ocfs2"),  # cluster file systems
    *("9p", "virtiofs", "vboxsf", "prl_fs", "drvfs", "fakeowner"),  # another kernel's disk
    *("fuse", "autofs"),
}
_LINKS = 40


def content(path: str) -> bytes:
    """What a file of the system contains; `pathlib` is too slow to import for a worker's verb."""
    with open(path, "rb") as file:
        return file.read()


class Mount(NamedTuple):
    """One mounted file system."""

    fstype: str
    source: str
    network: bool
    """Whether other machines may change files on it; this kernel does not report such changes."""
    read_only: bool
    point: str

    @property
    def kind(self) -> str:
        """The name of the file system, without the prefix `fuse.`."""
        return self.fstype.removeprefix("fuse.")


UNKNOWN = Mount("unknown", "", False, False, "/")
"""Stands in where no mount table can be read."""


class MountEntry(NamedTuple):
    """One line of the table."""

    id: int
    parent: int
    mount: Mount


def kind(path: str) -> Mount:
    """The mount that a path is on."""
    try:
        table = read(content(TABLE))
        absolute = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    except OSError:
        return UNKNOWN
    return holding(settle(absolute, table), table)


def read(text: bytes) -> list[MountEntry]:
    """The entries of a mount table; lines that cannot be parsed are left out."""
    entries = []
    for line in text.split(b"\n"):
        fields, _, rest = line.partition(b" - ")
        head, tail = fields.split(b" "), rest.split(b" ")
        if len(head) < 6 or len(tail) < 3 or not (head[0] + head[1]).isdigit():
            continue
        fstype, source = plain(tail[0]), plain(tail[1])
        read_only = b"ro" in head[5].split(b",") or b"ro" in tail[2].split(b",")
        mount = Mount(fstype, source, _is_remote(fstype), read_only, plain(head[4]))
        entries.append(MountEntry(int(head[0]), int(head[1]), mount))
    return entries


def holding(path: str, table: Sequence[MountEntry]) -> Mount:
    """The mount that is visible at a path, which must not contain links.

    The search descends from mount to mount: a later mount hides everything below its point, so
    the longest matching path is not always the visible one. Of two at one point, the last counts.
    """
    ids = {entry.id for entry in table}
    left = [entry for entry in table if below(path, entry.mount.point)]
    nearer = [e for e in left if e.parent not in ids or e.parent == e.id]
    found = UNKNOWN
    while nearer:
        last = min(reversed(nearer), key=lambda entry: len(entry.mount.point))
        found = last.mount
        left = [entry for entry in left if entry.id != last.id]
        nearer = [entry for entry in left if entry.parent == last.id]
    return found


def settle(path: str, table: Sequence[MountEntry]) -> str:
    """The path with its links followed, up to the first mount that could hang."""
    done, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part == "..":
            done = os.path.dirname(done)
        elif part not in ("", "."):
            step = os.path.join(done, part)
            if holding(step, table).network:
                return os.path.normpath(os.path.join(step, *reversed(rest)))
            target = _link(step) if links < _LINKS else ""
            if target:
                links += 1
                rest += target.split("/")[::-1]
                done = "/" if target.startswith("/") else done
            else:
                done = step
    return done


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _is_remote(fstype: str) -> bool:
    return fstype in _REMOTE or fstype.startswith("fuse.")


def plain(field: bytes) -> str:
    """A field of the table, decoded: blanks, newlines and backslashes are written in octal."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), field))
