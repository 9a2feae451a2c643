"""Who else on the board carries an id, without listing the directory for every act."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs import names
from dibs.clock import SECOND
from dibs.names import AVAILABLE, Task

if TYPE_CHECKING:
    from dibs.store import Store


class Beside:
    """The names of one board as they were last listed; acts in one go share a listing.

    They keep an operator from putting a second name of an id on the board. They decide nothing:
    the rename keeps what is in its way, and nobody claims an id that has two names.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listed: list[str] = []
        self._asked: set[str] = set()
        self._until = 0

    def of(self, task: Task) -> list[Task]:
        """Every other live name of a task's id; that there is one is never told from memory."""
        store = self._store
        # What became of an id that was asked for is not in the listing.
        if task.id in self._asked or store.port.boottime() >= self._until:
            self._list()
        self._asked.add(task.id)
        listed = any(other.name != task.name for other in carriers(self._listed, task.id))
        if not listed and not self._offered(task.id):
            return []
        return [t for t in store.find(task.id, ended=False) if t.name != task.name]

    def _offered(self, ident: str) -> bool:
        """Whether a shell has offered the id, perhaps since the listing."""
        return any(self._store.there(f"{begin}{AVAILABLE}") for begin in names.spellings(ident))

    def _list(self) -> None:
        store = self._store
        start = store.port.boottime()
        self._listed = sorted(store.listing())
        self._asked.clear()
        self._until = good_until(start, store.port.boottime())


def carriers(listed: list[str], ident: str) -> Iterator[Task]:
    """Every task of a sorted listing that has an id."""
    for begin in names.spellings(ident):
        at = bisect_left(listed, begin)
        while at < len(listed) and listed[at].startswith(begin):
            task = names.read(listed[at])
            if task is not None and task.id == ident:
                yield task
            at += 1


def good_until(start: int, end: int) -> int:
    """How long a listing serves: listing a million names takes longer than a second."""
    return end + max(SECOND, 8 * (end - start))
