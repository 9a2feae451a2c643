"""The folders of dashboards in browsers: each is the home of one dashboard, and has its settings.

A server that is killed removes nothing. So it holds a lock on the folder that has all of its own,
and the next server removes each folder whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_BEGIN = "dibs-browser-"


class DashboardFolders:
    """Makes the folders of one server's dashboards."""

    def __init__(self) -> None:
        _remove_abandoned(tempfile.gettempdir())
        while True:  # another server may remove it before it is locked
            self._base = tempfile.mkdtemp(prefix=_BEGIN)
            self._fd = _locked(self._base)
            if self._fd is not None:
                break

    def make(self, settings: str) -> str:
        """A new folder with these settings of a dashboard: it reaches no file or program here."""
        folder = tempfile.mkdtemp(dir=self._base)
        os.mkdir(os.path.join(folder, "dibs"), 0o700)
        Path(folder, "dibs", "config.toml").write_text(settings)
        return folder

    def remove(self, folder: str) -> None:
        """Remove one of them."""
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove all of them."""
        shutil.rmtree(self._base, ignore_errors=True)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _locked(folder: str) -> int | None:
    """A descriptor with the lock on a folder of this user; None if it is another's, or gone."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stat = os.fstat(fd)
        if stat.st_uid == os.geteuid() and os.path.samestat(stat, os.lstat(folder)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _remove_abandoned(where: str) -> None:
    """Remove the folders of servers that were killed."""
    with suppress(OSError):
        for name in os.listdir(where):
            if name.startswith(_BEGIN):
                fd = _locked(os.path.join(where, name))
                if fd is not None:
                    shutil.rmtree(os.path.join(where, name), ignore_errors=True)
                    os.close(fd)
