"""Finding expired claims at the cost of what changed, for a process that claims again and again.

The first sweep looks at every claim. Each says when it can expire at the earliest, and is looked at
again only then: an idle waiter beside thousands of live claims has next to nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from dibs import janitor, names
from dibs.clock import LOOKS, SECOND
from dibs.errors import DibsError
from dibs.facts import facts_of
from dibs.pulses import Pulses

if TYPE_CHECKING:
    from dibs.clock import Sample
    from dibs.facts import Facts
    from dibs.host import Process
    from dibs.names import Task
    from dibs.store import Store

LIST = SECOND
"""Between two listings, which show the claims that were made since."""
AGAIN = 30 * SECOND
"""After so long each claim is looked at in any case: its holder may have shortened its ttl."""
FRESH = SECOND
"""The same for a claim without a record, which its claimant is about to write."""
TROUBLE = 5 * SECOND
NUMBERS, CLOSER = 512, 25
"""So many processes are asked for in a sweep, and so many of them whether they are the same."""


class Sweeper:
    """What one process knows of a board's claims, and when each has to be looked at again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pulses = Pulses(store)
        self._live: dict[str, Task | None] = {}
        """None for a name that is no claim."""
        self._at: dict[str, int] = {}
        """When to look at each claim again, on the boot-time clock."""
        self._due: list[tuple[int, str]] = []
        """The same as a heap, with entries that no longer count."""
        self._holders: dict[str, Process] = {}
        self._numbers, self._closer = _Turn(), _Turn()
        self._list_at = 0
        self._tidy_at = 0

    def sweep(self) -> bool:
        """Reap every claim that has expired or whose process has exited; whether there was one."""
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
        """Take over which claims there are; those that were made since are looked at now."""
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
            from dibs import looks

            looks.sweep(store, entries, {task.stem for task in self._live.values() if task})
        if start >= self._tidy_at:
            self._tidy_at = start + int(store.settings.ttl / 4 * SECOND)
        self._list_at = start + LIST

    def _expiring(self) -> list[str]:
        """The claims whose time has come."""
        now, found = self._store.port.boottime(), []
        while self._due and self._due[0][0] <= now:
            at, name = heappop(self._due)
            if self._at.get(name) == at:
                found.append(name)
        return found

    def _exited(self) -> list[str]:
        """The claims whose process has exited, of those whose turn it is."""
        host, holders = self._store.host, self._holders
        closer = self._closer.next(holders, CLOSER)
        asked = [n for n in self._numbers.next(holders, NUMBERS) if n not in closer]
        found = [n for n in asked if n in holders and not host.has_number(holders[n].pid)]
        return [n for n in (*closer, *found) if n in holders and host.gone(holders[n])]

    def _look(self, name: str, now: Sample) -> bool:
        """Reap a claim if it may be; whether it was. Else it is known when to look again."""
        task = self._live.get(name)
        if task is None:
            return False
        try:
            facts = self._pulses.look(task)
            wait = self._noted(facts, now) if facts is not None else 0.0
            if wait <= 0:  # what was read long ago decides nothing
                facts = facts_of(self._store, task)
                wait = janitor.patience(self._store, facts, now) if facts is not None else 0.0
            ended = None
            if facts is not None and wait <= 0:
                ended = janitor.give_back(self._store, facts, now)
        except DibsError:  # one that cannot be reaped must not keep the others
            self._holders.pop(name, None)
            self._later(name, TROUBLE)
            return False
        if wait > 0:
            self._later(name, int(wait * SECOND))
        else:
            self._forget(name)
        return ended is not None

    def _noted(self, facts: Facts, now: Sample) -> float:
        """Seconds until a claim has to be looked at again."""
        record, name = facts.record, facts.task.name
        wait = janitor.patience(self._store, facts, now)
        if record is not None and record.process is not None and self._store.settings.reap_dead:
            self._holders[name] = record.process
        if record is None and not facts.task.plain:
            self._pulses.forget(name)
            return min(wait, FRESH / SECOND)
        return wait

    def _later(self, name: str, wait: int) -> None:
        self._at[name] = self._store.port.boottime() + min(wait, AGAIN)
        heappush(self._due, (self._at[name], name))

    def _forget(self, name: str) -> None:
        for known in (self._live, self._at, self._holders):
            known.pop(name, None)
        self._pulses.forget(name)


class _Turn:
    """The names of a dictionary in turn, a few at a time."""

    def __init__(self) -> None:
        self._left: list[str] = []

    def next(self, among: Iterable[str], count: int) -> list[str]:
        self._left = self._left or list(among)
        part, self._left = self._left[:count], self._left[count:]
        return part
