"""The board as a reader sees it: a snapshot, and what changed since.

A view is kept true by names alone. One listing is the truth; a hint that a name may have changed
costs one look, whatever the board's length.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from itertools import filterfalse
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from dibs import names
from dibs.errors import StorageError, storage_error
from dibs.evidence import Verdict, judge
from dibs.janitor import dead
from dibs.names import CLAIMED, DONE, FAILED, FREE, HELD, Task
from dibs.pulses import Pulses
from dibs.store import RECORDS

if TYPE_CHECKING:
    from dibs.clock import Sample
    from dibs.facts import Facts
    from dibs.store import Store

_name = itemgetter(0)
_REST = 25
_FREE_REST = 60.0
"""Seconds between two listings of the free locks, whose folders are many; between them the locks
that were held say what became free, and which free name is gone."""
_TICK = 2_000_000_000
"""A folder's time may stand still for so long while it is changed, on the coarsest clocks."""


class Change(NamedTuple):
    """What one look at the board found different."""

    came: tuple[Task, ...]
    went: tuple[Task, ...]

    def __bool__(self) -> bool:
        return bool(self.came or self.went)


class Snapshot(NamedTuple):
    """The whole board at one moment."""

    tasks: Mapping[str, Task]
    """Every task and lock by its exact name."""
    facts: Mapping[str, Facts]
    """What the disk says of each claim, by the same name."""
    now: Sample
    exact: bool
    """False where the clock could not be read: then ages are at least what they show."""
    strangers: int
    """Names on the board that are no task's; `check` lists them."""
    dead: Set[str] = frozenset()
    """The claims whose process is known to have ended, by their exact names."""

    def age(self, name: str) -> float | None:
        """Seconds since a claim's last beat."""
        facts = self.facts.get(name)
        return facts.age(self.now) if facts is not None else None

    def stale(self, name: str) -> bool:
        """Silent for longer than its ttl, or its process has ended."""
        facts = self.facts.get(name)
        return facts is not None and (name in self.dead or facts.expired(self.now))

    def counts(self) -> dict[str, int]:
        """How many there are in each state; stale ones count as stale, not as claimed."""
        counts = dict.fromkeys(
            ("available", "claimed", "stale", "failed", "done", "free", "held"), 0
        )
        for name, task in self.tasks.items():
            counts["stale" if task.live and self.stale(name) else task.state] += 1
        return counts


class View:
    """One reader's picture of the board, corrected by listings and by hints."""

    def __init__(self, store: Store, *, ended: bool = True) -> None:
        self._store = store
        self._pulses = Pulses(store)
        self._folders: tuple[str, ...] = (DONE, FAILED) if ended else ()
        self._marks: tuple[object, ...] = ()
        self.tasks: dict[str, Task] = {}
        self.live: dict[str, Task] = {}
        """The part of `tasks` that somebody holds."""
        self.strangers: set[str] = set()
        self._free: dict[str, str] = {}
        """The free locks by their ids."""
        self._free_due = 0.0 if ended else inf
        self._parsed: dict[str, Task] = {}
        """Free locks that were listed and are not in `tasks` yet."""
        self.rest = 0.0
        """Seconds to leave until the next scan, so that scans stay under a twentieth of a core."""

    def scan(self) -> Change:
        """List the folders and take over every difference."""
        start = time.thread_time()
        with _uncollected():
            change = self._scan()
        self.rest = _REST * (time.thread_time() - start)
        return change

    def with_ended(self) -> None:
        """From the next scan on, look at what is done, failed and free as well."""
        self._folders = (DONE, FAILED)
        self._marks = ()
        self._free_due = 0.0

    def unchanged(self) -> bool:
        """Whether the folders' own times say that a scan would find nothing new; a few looks."""
        return bool(self._marks) and self._marks == self._marked()

    def _marked(self) -> tuple[object, ...]:
        """The identity and time of every folder; nothing where a time is too fresh to be told."""
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
        self._marks = self._marked()  # before the listing, so that no change falls between
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
        """Every free lock's name; strangers among them are for `check`."""
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
        """Add what the locks that were taken or given back since say of the free names."""
        for name in [name for name in came if name.endswith(f".{HELD}")]:
            task = names.read(name)
            old = self._free.get(task.id) if task is not None else None
            if old is not None and old not in came:
                went.add(old)
        for name in went:
            held = self.live.get(name)
            if held is not None and held.state == HELD:
                free = names.waiting_name(held.id, held.stamp, FREE)
                if free not in self.tasks and self._store.look(free):
                    came.add(free)

    def hint(self, paths: Iterable[str]) -> Change:
        """Look at exactly these board-relative names, which may have changed."""
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
        """What the disk says of each claim now; costs two looks for each of them."""
        return self.look(self.live.values())

    def look(self, tasks: Iterable[Task]) -> dict[str, Facts]:
        """What the disk says of these claims now, by their names."""
        found = {}
        for task in list(tasks):
            with suppress(StorageError):  # shown without an age; `check` says why
                facts = self._pulses.look(task)
                if facts is not None:
                    found[task.name] = facts
        return found

    def since(self, names: Iterable[str]) -> dict[str, int]:
        """When these tasks, which nobody holds, came to wait or ended; one look for each."""
        found = {}
        for name in names:
            with suppress(OSError):
                found[name] = self._store.port.stat(name).ctime
        return found

    def lone(self, stems: Iterable[str]) -> list[str]:
        """Those of these claims' stems whose record or lock lies there; one or two looks each."""
        return [
            stem
            for stem in stems
            if self._store.look(f"{RECORDS}/{stem}") or self._store.look(f"{stem}.lock")
        ]

    def judge(self, facts: Facts, now: Sample, exact: bool) -> Verdict:
        """Whether a claim's holder is dead, expired, alive, or nobody can tell."""
        return judge(self._store, facts, now, exact=exact)

    def snapshot(self) -> Snapshot:
        """The picture with the facts of every claim and the clock to judge them by."""
        facts = self.facts()
        now, exact = self.now(facts.values())
        ended = {name for name, each in facts.items() if dead(self._store, each)}
        return Snapshot(self.tasks.copy(), facts, now, exact, len(self.strangers), ended)

    def boottime(self) -> int:
        """The boot-time clock by which samples of the board's clock are carried on."""
        return self._store.port.boottime()

    def now(self, facts: Iterable[Facts]) -> tuple[Sample, bool]:
        """The clock; where it cannot be read, the newest time seen on the board."""
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
                    self._pulses.forget(name)
                elif self._free.get(task.id) == name:
                    del self._free[task.id]
                gone.append(task)
        fresh, tasks = names.read_plainest(came), self.tasks
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
            elif not own_file(name):
                self.strangers.add(name)
        return Change(tuple(fresh), tuple(gone))


def count_apart(store: Store) -> dict[str, int]:
    """How many tasks are done and failed and how many locks lie apart, by listings alone."""
    counts = {folder: names.count_ended(folder, store.ended(folder)) for folder in (DONE, FAILED)}
    return counts | {FREE: sum(names.read_free(path) is not None for path in store.all_free())}


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection while many tuples of plain values are made: none can be garbage."""
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
    """A name that belongs to the board without being a task: its folders and plain locks.

    `x.claimed-by-web.lock` may be a claim by the host `web.lock`, so it is a stranger.
    """
    lock = name.endswith(".lock") and ".claimed" not in name
    return lock or name in (".dibs", DONE, FAILED)


def doubles(tasks: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """Ids with more than one name on the board itself."""
    by_id: dict[str, list[Task]] = {}
    for task in tasks:
        if task.state not in (DONE, FAILED):
            by_id.setdefault(task.id, []).append(task)
    return (tuple(same) for same in by_id.values() if len(same) > 1)
