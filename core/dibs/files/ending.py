"""Wait until tasks have ended, at the price of a few calls for each look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING

from dibs.files.mounts import UNKNOWN, kind
from dibs.files.waiting import AGAIN, FilesRetry
from dibs.model import names
from dibs.model.sample import SECOND
from dibs.model.settings import check_wait
from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.task import Task

SOON = 0.01
"""Seconds between two looks on a local disk."""
FEW = 20
"""So many names are looked at each time; with more the directory's mtime has to change first."""
_SPARE = 10
"""Reading what became of the tasks may take a tenth of a core."""
_LISTED = 3
"""A listing can miss a name that is being renamed, so a name is gone after so many without it."""


class EndWait:
    """Tasks that have not ended yet, and what became of the others."""

    def __init__(self, store: BoardFiles, tasks: Iterable[Task]) -> None:
        self._store = store
        self.now: dict[str, Task | None] = {task.id: task for task in tasks}
        """What each id is now; None if it is gone and the log does not say how it ended."""
        self.waiting = {i: task for i, task in self.now.items() if task and not _ended(task)}
        self._missed = dict.fromkeys(self.waiting, 0)
        mount = kind(store.root)
        self.every = FilesRetry.every if mount is UNKNOWN or mount.network else SOON
        self._due = self._again = 0
        self._mtime = self._last_mtime = -1

    def changed(self) -> bool:
        """Whether to look closer now."""
        now = self._store.port.boottime()
        if now < self._due:
            return False
        if now >= self._again:
            return True
        if len(self.waiting) <= FEW:
            return any(self._store.look(task.name) is False for task in self.waiting.values())
        return self._changed_at() != self._mtime

    def look(self) -> list[Task]:
        """Find out what became of the tasks; returns those that have ended since."""
        store, start = self._store, self._store.port.boottime()
        mtime, many = self._changed_at(), len(self.waiting)
        gone = {i for i, task in self.waiting.items() if not store.there(task.name)}
        ended = self._follow(gone) if gone else []
        if not self.waiting:  # an operator may have requeued one meanwhile
            self._check_again()
        now = store.port.boottime()
        # The tasks that have ended are not read again: the last of many must not wait for them.
        self._due = now + _SPARE * (now - start) * len(self.waiting) // max(1, many)
        self._again = max(self._due, now + AGAIN)
        # A change in the same tick of the file system's clock would not show: look once more.
        self._mtime = mtime if mtime == self._last_mtime else -1
        self._last_mtime = mtime
        return [task for task in ended if task.id not in self.waiting]

    def _follow(self, gone: set[str]) -> list[Task]:
        """Find the tasks whose names are gone under their new names."""
        found, ended = self._find(gone), []
        for ident in gone:
            task = found.get(ident)
            if task is None:
                self._missed[ident] += 1
                if self._missed[ident] < _LISTED:
                    continue
                task = self._last_seen(ident)
            self._missed[ident], self.now[ident] = 0, task
            if task is None or _ended(task):
                del self.waiting[ident]
                ended += [task] if task is not None else []
            else:
                self.waiting[ident] = task
        return ended

    def _find(self, idents: set[str]) -> dict[str, Task]:
        """What these ids are now, from one listing of each folder that is needed."""
        store = self._store
        found = {i: task for i in idents if (task := self._done(i)) is not None}
        begins = {part for i in idents for part in (names.escape(i), i.partition(".")[0])}
        for folder in ("", DONE, FAILED):  # in the order in which a task moves on
            if len(found) == len(idents):
                break
            for name in store.ended(folder) if folder else store.listing():
                if name.partition(".")[0] in begins:
                    task = names.read_ended(folder, name) if folder else names.read(name)
                    if task is not None and task.id in idents and store.there(task.name):
                        found.setdefault(task.id, task)
        return found

    def _done(self, ident: str) -> Task | None:
        """The task if its claim was committed; it takes one call to find out."""
        task = self.now[ident]
        if task is None or not task.claim or not self._store.there(f"{DONE}/{task.stem}"):
            return None
        return names.read_ended(DONE, task.stem)

    def _last_seen(self, ident: str) -> Task | None:
        """How a task ended whose name is gone, by the log."""
        for event in reversed(self._store.journal.of(ident, 20)):
            for task in (event.after, event.before):
                if task is not None and task.id == ident and _ended(task):
                    return task
        return None

    def _check_again(self) -> None:
        for ident, task in self.now.items():
            if task is not None and not self._store.there(task.name):
                found = self._find({ident}).get(ident)
                if found is not None:
                    self.now[ident] = found
                    if not _ended(found):
                        self.waiting[ident], self._missed[ident] = found, 0

    def _changed_at(self) -> int:
        try:
            return self._store.port.stat("").mtime
        except OSError:
            return 0


def wait_ended(
    store: BoardFiles,
    tasks: Iterable[Task],
    seconds: float = inf,
    ended: Callable[[Task], object] | None = None,
) -> list[Task | None]:
    """Wait until all of these tasks have ended, or the time is up; what each of them is now."""
    port, wait = store.port, EndWait(store, names.check_tasks(tasks))
    end = port.boottime() + int(min(check_wait(seconds), 10**9) * SECOND)
    fresh = [task for task in wait.now.values() if task and _ended(task)]
    while True:
        for task in [*fresh, *wait.look()]:
            if ended is not None:
                ended(task)
        fresh = []
        if not wait.waiting or port.boottime() >= end:
            return list(wait.now.values())
        while not wait.changed() and (left := end - port.boottime()) > 0:
            port.sleep(min(wait.every, left / SECOND))


def _ended(task: Task) -> bool:
    return task.state in (DONE, FAILED)
