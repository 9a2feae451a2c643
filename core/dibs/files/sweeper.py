"""Find expired claims at the cost of what changes, for a process that claims again and again.

The first sweep reads every claim. Each claim has an earliest time at which it can expire and is not
read again before that. So an idle process beside thousands of live claims has hardly any work.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from dibs.files import janitor
from dibs.files.clock import LOOKS
from dibs.files.facts import facts_of
from dibs.files.facts_cache import FactsCache
from dibs.files.janitor import sweep
from dibs.model import names
from dibs.model.errors import DibsError
from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model.process import Process
    from dibs.model.sample import Sample
    from dibs.model.task import Task

LIST = SECOND
"""Between two listings, which show the claims that were made in the meantime."""
AGAIN = 30 * SECOND
"""After this time each claim is read again in any case: its holder may have shortened its ttl."""
FRESH = SECOND
"""The same for a claim without a record, which its claimant is about to write."""
TROUBLE = 5 * SECOND
NUMBERS, CLOSER = 512, 25
"""In each sweep, how many pids are checked to exist, and how many to be the same process."""


class Sweeper:
    """What one process knows of a board's claims, and when to read each of them again."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._facts_cache = FactsCache(store)
        self._live: dict[str, Task | None] = {}
        """None for a name that is not a claim."""
        self._at: dict[str, int] = {}
        """When to read each claim again, on the boot-time clock."""
        self._due: list[tuple[int, str]] = []
        """The same as a heap, with outdated entries."""
        self._holders: dict[str, Process] = {}
        self._numbers, self._closer = _RoundRobin(), _RoundRobin()
        self._list_at = 0
        self._tidy_at = 0

    def sweep(self) -> bool:
        """Reap every claim that has expired or whose process has exited; True if there was one."""
        store = self._store
        store.ready()
        if store.port.boottime() >= self._list_at:
            self._list()
        due = [*self._expiring(), *self._exited()]
        if not due:
            return False
        now = store.clock.now()
        reaped = [self._look(name, now) for name in due]
        store.clock.settle()
        return any(reaped)

    def _list(self) -> None:
        """List the claims that exist; new ones are due at once."""
        store = self._store
        start = store.port.boottime()
        listed = {n for n in store.listing() if ".claimed" in n or n.endswith(".held")}
        for name in self._live.keys() - listed:
            self._forget(name)
        for name in listed - self._live.keys():
            task = self._live[name] = names.read(name)
            if task is not None:
                self._later(name, 0)
        if start >= self._tidy_at and (entries := store.ended(LOOKS)):
            sweep(store, entries, {task.stem for task in self._live.values() if task})
        if start >= self._tidy_at and store.keeps_notes():
            from dibs.files import notes

            notes.sweep(store, {task.stem for task in self._live.values() if task})
        if start >= self._tidy_at:
            from dibs.files import presence  # most workers claim only once

            presence.clear(store, store.clock.now)
            self._tidy_at = start + int(store.settings.ttl / 4 * SECOND)
        self._list_at = start + LIST

    def _expiring(self) -> list[str]:
        """The claims that are due."""
        now, found = self._store.port.boottime(), []
        while self._due and self._due[0][0] <= now:
            at, name = heappop(self._due)
            if self._at.get(name) == at:
                found.append(name)
        return found

    def _exited(self) -> list[str]:
        """The claims whose process has exited, among those whose turn it is."""
        host, holders = self._store.host, self._holders
        closer = self._closer.next(holders, CLOSER)
        asked = [n for n in self._numbers.next(holders, NUMBERS) if n not in closer]
        found = [n for n in asked if n in holders and not host.has_number(holders[n].pid)]
        return [n for n in (*closer, *found) if n in holders and host.gone(holders[n])]

    def _look(self, name: str, now: Sample) -> bool:
        """Reap a claim if possible; True if it was reaped. Otherwise it is due again later."""
        task = self._live.get(name)
        if task is None:
            return False
        try:
            facts = self._facts_cache.look(task)
            wait = self._noted(facts, now) if facts is not None else 0.0
            if wait <= 0:  # cached facts must not decide
                facts = facts_of(self._store, task)
                wait = janitor.patience(self._store, facts, now) if facts is not None else 0.0
            ended = None
            if facts is not None and wait <= 0:
                ended = janitor.reap_one(self._store, facts, now)
        except DibsError:  # go on with the other claims
            self._holders.pop(name, None)
            self._later(name, TROUBLE)
            return False
        if wait > 0:
            self._later(name, int(wait * SECOND))
        else:
            self._forget(name)
        return ended is not None

    def _noted(self, facts: Facts, now: Sample) -> float:
        """Seconds until a claim is due again."""
        record, name = facts.record, facts.task.name
        wait = janitor.patience(self._store, facts, now)
        if record is not None and record.process is not None and self._store.settings.reap_dead:
            self._holders[name] = record.process
        if record is None and not facts.task.is_shell_claim:
            self._facts_cache.forget(name)
            return min(wait, FRESH / SECOND)
        return wait

    def _later(self, name: str, wait: int) -> None:
        self._at[name] = self._store.port.boottime() + min(wait, AGAIN)
        heappush(self._due, (self._at[name], name))

    def _forget(self, name: str) -> None:
        for known in (self._live, self._at, self._holders):
            known.pop(name, None)
        self._facts_cache.forget(name)


class _RoundRobin:
    """Goes through the names of a dictionary, a few at a time."""

    def __init__(self) -> None:
        self._left: list[str] = []

    def next(self, among: Iterable[str], count: int) -> list[str]:
        self._left = self._left or list(among)
        part, self._left = self._left[:count], self._left[count:]
        return part
