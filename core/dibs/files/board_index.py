"""Keep the names on a board up to date: a snapshot, and what has changed since.

A listing is the truth. A hint that a name may have changed costs one `lstat`, however long the
board is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import filterfalse
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from dibs.files import pausing
from dibs.files.board_files import RECORDS
from dibs.files.evidence import judge
from dibs.files.facts_cache import FactsCache
from dibs.files.janitor import dead
from dibs.files.notes import NoteCache
from dibs.files.presence import WaiterList
from dibs.files.questions import open_question
from dibs.model import names
from dibs.model.errors import StorageError, storage_error
from dibs.model.evidence import Verdict
from dibs.model.names import PAUSED
from dibs.model.sample import Sample
from dibs.model.snapshot import Change, Snapshot
from dibs.model.task import ASKED, CLAIMED, DONE, FAILED, FREE, HELD, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model.holder import Holder
    from dibs.model.pauses import Pause
    from dibs.model.questions import Question
    from dibs.model.waiters import Waiter

_name = itemgetter(0)
_REST = 25
_FREE_REST = 60.0
"""Seconds between two listings of the many folders of free locks; in between, the locks that were
held show which free names are new or gone."""
_TICK = 2_000_000_000
"""For how long a folder's time may stay the same while it changes, on the coarsest clocks."""


class BoardIndex:
    """Every task on the board as one reader knows it, updated by listings and hints."""

    def __init__(
        self, store: BoardFiles, *, ended: bool = True, known: Mapping[str, Task] | None = None
    ) -> None:
        """With `known` tasks, scans return the difference from these."""
        self._store = store
        self._facts_cache = FactsCache(store)
        self._waiters = WaiterList(store)
        self._notes = NoteCache(store)
        self._folders: tuple[str, ...] = (DONE, FAILED) if ended else ()
        self._marks: tuple[object, ...] = ()
        self.tasks: dict[str, Task] = dict(known or {})
        self.live: dict[str, Task] = {n: t for n, t in self.tasks.items() if t.live}
        """The tasks and locks in `tasks` that are claimed or held."""
        self.asked: dict[str, Task] = {n: t for n, t in self.tasks.items() if t.state == ASKED}
        """The tasks that wait for an answer."""
        self.strangers: set[str] = set()
        self._free = {t.id: name for name, t in self.tasks.items() if t.state == FREE}
        """The free locks by id."""
        self._free_due = 0.0 if ended else inf
        self._parsed: dict[str, Task] = {}
        """Free locks that were listed but are not in `tasks` yet."""
        self.rest = 0.0
        """Seconds to wait before the next scan, so that scans use less than 1/20 of a core."""

    def scan(self) -> Change:
        """List the folders and apply every difference."""
        start = time.thread_time()
        with _uncollected():
            change = self._scan()
        self.rest = _REST * (time.thread_time() - start)
        return change

    def with_ended(self) -> None:
        """Include ended tasks and free locks from the next scan on."""
        self._folders = (DONE, FAILED)
        self._marks = ()
        self._free_due = 0.0

    def unchanged(self) -> bool:
        """Whether the folders' times show that a scan would find nothing new; costs a few calls."""
        return bool(self._marks) and self._marks == self._marked()

    def _marked(self) -> tuple[object, ...]:
        """The identity and times of every folder; empty if a time is too recent to rely on."""
        marks: list[object] = []
        now = self._store.clock.guess()
        if now is None:
            return ()
        for folder in ("", *self._folders):
            try:
                stat = self._store.port.stat(folder)
            except FileNotFoundError:
                marks.append(None)
                continue
            except OSError as error:
                raise storage_error(error) from error
            if stat.mtime > now.fs - _TICK:
                return ()
            marks.append((stat.dev, stat.ino, stat.mtime, stat.ctime))
        return tuple(marks)

    def _scan(self) -> Change:
        self._marks = self._marked()  # before the listing, so that no change is missed
        listed = set(self._store.listing())
        for folder in self._folders:
            listed.update([f"{folder}/{name}" for name in self._store.ended(folder)])
        if time.monotonic() >= self._free_due:
            listed.update(self._list_free())
        else:
            listed.update(self._free.values())
        if not self.tasks and not self.strangers:
            return self._apply(listed, set())
        went = (self.tasks.keys() - listed) | (self.strangers - listed)
        return self._apply(listed - self.tasks.keys() - self.strangers, went)

    def _list_free(self) -> list[str]:
        """The name of every free lock; unknown names among them are for `check`."""
        start = time.monotonic()
        found = []
        for path in self._store.all_free():
            if path not in self.tasks:
                task = names.read_free(path)
                if task is None:
                    continue
                self._parsed[path] = task
            found.append(path)
        self._free_due = time.monotonic() + max(_FREE_REST, _REST * (time.monotonic() - start))
        return found

    def _turned(self, came: set[str], went: set[str]) -> None:
        """Add the free names that follow from the locks that were acquired or released."""
        for name in [name for name in came if name.endswith(f".{HELD}")]:
            task = names.read(name)
            old = self._free.get(task.id) if task is not None else None
            if old is not None and old not in came:
                went.add(old)
        for name in went:
            held = self.live.get(name)
            if held is not None and held.state == HELD:
                free = names.unclaimed_name(held.id, held.stamp, FREE)
                if free not in self.tasks and self._store.look(free):
                    came.add(free)

    def hint(self, paths: Iterable[str]) -> Change:
        """Check exactly these names, relative to the board, which may have changed."""
        came: set[str] = set()
        went: set[str] = set()
        for path in set(paths):
            if not _can_be_name(path):
                continue
            here = self._store.look(path)
            known = path in self.tasks or path in self.strangers
            if here and not known:
                came.add(path)
            elif here is False and known:
                went.add(path)
        return self._apply(came, went)

    def facts(self) -> dict[str, Facts]:
        """The facts of each claim now; costs two calls for each."""
        return self.look(self.live.values())

    def look(self, tasks: Iterable[Task]) -> dict[str, Facts]:
        """The facts of these claims now, by name."""
        found = {}
        for task in list(tasks):
            with suppress(StorageError):  # it is shown without an age; `check` shows why
                facts = self._facts_cache.look(task)
                if facts is not None:
                    found[task.name] = facts
        return found

    def since(self, names: Iterable[str]) -> dict[str, int]:
        """When these unclaimed tasks became available or ended; costs one call for each."""
        found, stat = {}, self._store.port.stat
        for name in names:
            try:  # `suppress` would take as long as the call
                found[name] = stat(name).ctime
            except OSError:
                continue
        return found

    def questions(self, tasks: Iterable[Task]) -> dict[str, Question]:
        """What these asked tasks wait with; costs a few calls for each."""
        return {task.name: open_question(self._store, task) for task in tasks}

    def lone(self, stems: Iterable[str]) -> list[str]:
        """The stems of claims that have a record or a lock; costs one or two calls for each."""
        return [
            stem
            for stem in stems
            if self._store.look(f"{RECORDS}/{stem}") or self._store.look(f"{stem}.lock")
        ]

    def judge(self, facts: Facts, now: Sample, exact: bool) -> Verdict:
        """The verdict on a claim's holder: dead, expired, alive or unknown."""
        return judge(self._store, facts, now, exact=exact)

    def snapshot(self) -> Snapshot:
        """A snapshot with the facts of every claim and the time to judge them by."""
        facts = self.facts()
        now, exact = self.now(facts.values())
        ended = {name for name, each in facts.items() if dead(self._store, each)}
        holders = self.holders(facts)
        return Snapshot(
            self.tasks.copy(),
            holders,
            now,
            exact,
            len(self.strangers),
            ended,
            self.questions(self.asked.values()),
            self.pauses(),
            self.waiters(lambda: now),
        )

    def pauses(self) -> tuple[Pause, ...]:
        """The pauses that are in force, as far as they can be read; costs one call without any."""
        try:
            return pausing.in_force(self._store)[0]
        except OSError:
            return ()

    def waiters(self, clock: Callable[[], Sample]) -> tuple[Waiter, ...]:
        """The workers that wait for tasks; costs a listing, and one call for each of them."""
        return self._waiters.look(clock)

    def holders(self, facts: Mapping[str, Facts]) -> dict[str, Holder]:
        """The holders of these claims, each with its last note."""
        notes = self._notes.look(each.task.stem for each in facts.values())
        found = {name: each.holder for name, each in facts.items()}
        for name, each in facts.items():
            note = notes.get(each.task.stem)
            if note is not None:
                found[name] = found[name]._replace(note=note.text, noted=note.at)
        return found

    def noted_since(self) -> bool:
        """Whether there may be new notes since this was asked last."""
        return self._notes.changed()

    def now(self, facts: Iterable[Facts]) -> tuple[Sample, bool]:
        """The board's time; if it cannot be read, the newest time seen on the board."""
        store, newest = self._store, max((f.beat for f in facts), default=0)
        try:
            seen = max(newest, store.port.stat("").mtime)
        except OSError as error:
            raise storage_error(error) from error
        return store.clock.now_or_newest(seen)

    def _apply(self, came: set[str], went: set[str]) -> Change:
        gone = []
        if self._free_due < inf and (self.live or self._free):
            self._turned(came, went)
        for name in went:
            self.strangers.discard(name)
            task = self.tasks.pop(name, None)
            if task is not None:
                if self.live.pop(name, None) is not None:
                    self._facts_cache.forget(name)
                elif self._free.get(task.id) == name:
                    del self._free[task.id]
                self.asked.pop(name, None)
                gone.append(task)
        fresh, tasks = names.read_never_claimed(came), self.tasks
        tasks.update(zip(map(_name, fresh), fresh, strict=True))
        for name in filterfalse(tasks.__contains__, came):
            task = self._parsed.pop(name, None) or names.read_any(name)
            if task is not None:
                tasks[name] = task
                fresh.append(task)
                if task.state == CLAIMED or task.state == HELD:
                    self.live[name] = task
                elif task.state == FREE:
                    self._free[task.id] = name
                elif task.state == ASKED:
                    self.asked[name] = task
            elif not own_file(name):
                self.strangers.add(name)
        return Change(tuple(fresh), tuple(gone))


def count_apart(store: BoardFiles) -> dict[str, int]:
    """How many tasks are done and failed and how many locks are free, from listings alone."""
    counts = {folder: names.count_ended(folder, store.ended(folder)) for folder in (DONE, FAILED)}
    return counts | {FREE: sum(names.read_free(path) is not None for path in store.all_free())}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection while many tuples are created, none of which can be garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _can_be_name(path: str) -> bool:
    folder, slash, name = path.rpartition("/")
    return (
        name not in ("", ".", "..") and "\0" not in path and (not slash or folder in (DONE, FAILED))
    )


def own_file(name: str) -> bool:
    """Whether a name belongs to the board without being a task: a folder of it or a shell lock.

    `x.claimed-by-web.lock` may be a claim by the host `web.lock`, so it is not one of these.
    """
    lock = name.endswith(".lock") and ".claimed" not in name
    return lock or name in (".dibs", DONE, FAILED, PAUSED)
