"""The presence of workers that wait: a file in `.dibs/waiting` that each of them touches.

It costs a worker nothing for the first two seconds, then one call each ten seconds. Whoever dies
leaves a file that is ignored after 30 s and removed after 60. A file that is removed too early,
because a clock was set, is created again by its worker's next touch. A failure is ignored: the wait
does not depend on it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.errors import DibsError
from dibs.model.sample import SECOND
from dibs.model.waiters import (
    AFTER,
    EVERY,
    IDLE,
    IGNORED,
    REMOVED,
    WAITER_BYTES,
    Waiter,
    read_waiter,
    spell,
    untouched,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs.files.board_files import BoardFiles
    from dibs.files.port import Stat
    from dibs.model.sample import Sample

WAITING = ".dibs/waiting"


class FilesPresence:
    """The presence of one worker; `dibs.board.Presence` documents it."""

    def __init__(self, store: BoardFiles, owner: str | None = None) -> None:
        self._store = store
        self._owner = owner if owner is not None else store.host.name
        self._folded = names.fold_owner(self._owner)
        self._waiter: Waiter | None = None
        """What the file says; None while there is no file."""
        self._begun = self._due = 0

    def keep(self, state: str = IDLE) -> None:
        now = self._store.port.boottime()
        if not self._begun:
            self._begun, self._due = now, now + AFTER
        if self._waiter is not None and self._waiter.state != state:
            self._remove()
            self._due = 0
        if now >= self._due:
            self._due = now + EVERY
            with suppress(OSError):
                self._touch(state)

    def end(self) -> None:
        self._begun = 0
        self._remove()

    def _touch(self, state: str) -> None:
        """Touch the file, or create it if it is not there: a janitor may have removed it."""
        store = self._store
        try:
            store.check_folder(WAITING)
        except DibsError:
            return  # not even a link to a folder is followed
        if self._waiter is None:
            name = f"{self._folded}-{store.port.nonce()}"
            since = store.clock.about() - (store.port.boottime() - self._begun) / SECOND
            self._waiter = Waiter(name, self._owner, store.host.name, state, since)
        else:
            with suppress(FileNotFoundError):
                store.port.touch(f"{WAITING}/{self._waiter.name}")
                return
        path, data = f"{WAITING}/{self._waiter.name}", spell(self._waiter)
        try:
            store.port.create(path, data)
        except FileNotFoundError:
            store.port.mkdir(WAITING)
            store.port.create(path, data)

    def _remove(self) -> None:
        if self._waiter is not None:
            self._store.drop(f"{WAITING}/{self._waiter.name}")
            self._waiter = None


class WaiterList:
    """The workers that wait, for one reader; a file is read again only if it has changed."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._known: dict[str, tuple[int, int, Waiter]] = {}
        """The inode and size of each file with what it says."""

    def look(self, clock: Callable[[], Sample]) -> tuple[Waiter, ...]:
        """Every worker that waits now, by name; the clock is read only if there is a file."""
        store = self._store
        entries = store.ended(WAITING) if _is_folder(store) else []
        now = clock() if entries else None
        found: dict[str, tuple[int, int, Waiter]] = {}
        for entry in entries:
            with suppress(OSError):
                stat = store.port.stat(f"{WAITING}/{entry}")
                if now is not None and untouched(stat.mtime, now) <= IGNORED:
                    known = self._read(entry, stat)
                    found.update({entry: known} if known else {})
        self._known = found
        return tuple(found[entry][2] for entry in sorted(found))

    def _read(self, entry: str, stat: Stat) -> tuple[int, int, Waiter] | None:
        known = self._known.get(entry)
        if known is not None and known[:2] == (stat.ino, stat.size):
            return known
        data = self._store.port.read(f"{WAITING}/{entry}", WAITER_BYTES)[0]
        waiter = read_waiter(entry, data)
        return (stat.ino, stat.size, waiter) if waiter is not None else None


def _is_folder(store: BoardFiles) -> bool:
    """Whether there is a folder of waiters, and no link or file in its place."""
    with suppress(DibsError):
        return store.check_folder(WAITING)
    return False


def clear(store: BoardFiles, clock: Callable[[], Sample]) -> None:
    """Remove the files of workers that have gone; any process may do it."""
    with suppress(DibsError):
        entries = store.ended(WAITING) if _is_folder(store) else []
        entries = [entry for entry in entries if read_waiter(entry, b"") is not None]
        now = clock() if entries else None
        for entry in entries:
            path = f"{WAITING}/{entry}"
            with suppress(OSError):
                if now is not None and untouched(store.port.stat(path).mtime, now) > REMOVED:
                    store.drop(path)
