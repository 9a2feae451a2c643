"""Find other names of an id without listing the directory for every act."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs.files.board_files import good_until
from dibs.model import names
from dibs.model.task import AVAILABLE, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles


class IdIndex:
    """The last listing of one board; the acts of one batch share it.

    It keeps an operator from giving an id a second name. Safety does not depend on it: the rename
    replaces nothing, and no worker claims an id that has two names.
    """

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._listed: list[str] = []
        self._asked: set[str] = set()
        self._until = 0

    def of(self, task: Task) -> list[Task]:
        """Every other name of a task's id in the board's own directory, confirmed on the disk."""
        store = self._store
        # The caller may have renamed an id that it asked for, so the listing is stale for it.
        if task.id in self._asked or store.port.boottime() >= self._until:
            self._list()
        self._asked.add(task.id)
        listed = any(other.name != task.name for other in carriers(self._listed, task.id))
        if not listed and not self._offered(task.id):
            return []
        return [t for t in store.find(task.id, ended=False) if t.name != task.name]

    def _offered(self, ident: str) -> bool:
        """Whether a shell worker has added the id, perhaps after the listing."""
        return any(self._store.there(f"{begin}{AVAILABLE}") for begin in names.spellings(ident))

    def _list(self) -> None:
        store = self._store
        start = store.port.boottime()
        self._listed = sorted(store.listing())
        self._asked.clear()
        self._until = good_until(start, store.port.boottime())


def carriers(listed: list[str], ident: str) -> Iterator[Task]:
    """Every task with an id, from a sorted listing."""
    for begin in names.spellings(ident):
        at = bisect_left(listed, begin)
        while at < len(listed) and listed[at].startswith(begin):
            task = names.read(listed[at])
            if task is not None and task.id == ident:
                yield task
            at += 1
