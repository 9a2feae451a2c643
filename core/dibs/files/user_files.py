"""Small files in the user's own folders, such as ~/.local/state/dibs: replaced, never torn."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

_OLD = 3600.0
"""Seconds after which the writer of a draft was killed: writing one takes milliseconds."""
_BYTES = 1 << 20


def path(name: str, environ: Mapping[str, str]) -> str:
    """Where the file of that name is in the user's folder for states, or would be."""
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local/state")
    return os.path.join(state, "dibs", name)


def read(name: str, environ: Mapping[str, str]) -> bytes:
    """The beginning of that file; ValueError for what is not a regular one, and never waits."""
    fd = os.open(path(name, environ), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        return os.read(fd, _BYTES)
    finally:
        os.close(fd)


def replace(file: str, data: bytes) -> None:
    """Replace a file, completely or not at all; OSError if that fails.

    Does nothing in a folder of another user: under sudo the home may be the caller's, who could
    not write a file of root's afterwards.
    """
    folder, name = os.path.split(file)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid == os.geteuid():
            _replace(fd, name, data)
    finally:
        os.close(fd)


def _replace(folder: int, name: str, data: bytes) -> None:
    draft = f"{name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)  # left by a process with the same pid, or put there
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC  # what exists may be a FIFO
    try:
        with open(os.open(draft, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
            now = os.fstat(file.fileno()).st_mtime
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    _remove_drafts(folder, name, now)


def _remove_drafts(folder: int, name: str, now: float) -> None:
    """Remove what killed writers have left; the folder may be shared, so a pid says nothing."""
    for each in os.listdir(folder):
        stem, _, pid = each.rpartition(".")
        if stem != name or not pid.isdecimal():
            continue
        with suppress(OSError):
            if now - os.stat(each, dir_fd=folder, follow_symlinks=False).st_mtime > _OLD:
                os.unlink(each, dir_fd=folder)
