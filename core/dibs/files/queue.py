"""Choose the next available task to try, without a listing for every claim.

One listing gives the head of the queue, by priority and then by name. Processes that collide spread
out: after two losses a claimant goes on in another slice of the head. One claim never tries a name
twice, because a listing may keep showing a name that a lookup does not find.

Most processes claim one task and exit, so nothing here reads or sorts every name of a long board.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs.files.board_files import PATIENCE, good_until
from dibs.model import names
from dibs.model.lazy import LazyModule, lazy_pattern
from dibs.model.task import AVAILABLE, DEFAULT_PRIORITY, LATER, Task

if TYPE_CHECKING:
    from dibs.files import delays, id_index
    from dibs.files.board_files import BoardFiles
else:
    delays, id_index = map(LazyModule, ("dibs.files.delays", "dibs.files.id_index"))

FIRST, HEAD = 256, 4096
"""About how many tasks the head holds after a process's first listing, and after later ones."""
SLICE = 64
LOSSES = 2
SAMPLE = 1024
_END, _LATER = f".{AVAILABLE}", f".{LATER}"
_bare = re.compile(r"[A-Za-z0-9_-]{1,120}\.available").fullmatch
_stamped = lazy_pattern(r"[A-Za-z0-9_-]{1,120}\.f(?:0|[1-9][0-9]{0,17})p([0-46-9])\.available")
_asked = lazy_pattern(r"p[0-46-9]q[0-9]+(?:r[0-9]+)?\.available$")
"""Whether a task with its own priority has asked a question: its priority is not at the end."""


class Queue:
    """The head of the queue, as this process last listed it."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._slices: list[list[str]] = []
        self._near: list[str] = []
        """The sorted names that include every other name of an id in the slices."""
        self._losses = 0
        self._tried: set[str] = set()
        """The names that could not be claimed since the iteration began."""
        self._until = 0
        self._patience = 0
        """Until when slices are left after losses; from then on the head is walked to its end."""
        self._crowded = False
        """Whether other claimants were met since the last listing: then start elsewhere."""
        self._left = False
        """Whether some of the queue is not in the head: it did not fit, or a slice was left."""

    def __iter__(self) -> Iterator[Task]:
        """Tasks to try, best first, from the last listing and then from a new one."""
        start = self._store.port.boottime()
        self._tried.clear()
        self._patience = start + PATIENCE
        if start < self._until:
            yield from self._drain()
        while True:
            self.refill()
            yield from self._drain()
            if not self._left:
                return

    def lost(self, task: Task) -> None:
        """Note a task that another worker got or that is not found; twice means go elsewhere."""
        self._tried.add(task.name)
        self._losses += 1

    def passed(self, task: Task) -> None:
        """Note a task that cannot be claimed; its neighbours are still worth trying."""
        self._tried.add(task.name)

    def _drain(self) -> Iterator[Task]:
        while self._slices:
            if not self._slices[-1]:
                self._slices.pop()
            elif self._losses >= LOSSES and self._store.port.boottime() < self._patience:
                self._losses = 0
                self._crowded = self._left = True
                self._slices.pop()  # its other claimants will empty it
                self._jump()
            else:
                name = self._slices[-1].pop()
                if doubled(self._near, name):
                    self._tried.add(name)  # else the next head could consist of such names again
                elif (task := names.read(name)) is not None:
                    yield task

    def _jump(self) -> None:
        """Move a random slice of the same priority to the front."""
        slices, same = self._slices, 0
        if not slices or not slices[-1]:
            return
        front = _priority_of(slices[-1][-1])
        while same < len(slices) and _priority_of(slices[-1 - same][-1]) == front:
            same += 1
        n = len(slices) - 1 - int(self._store.port.nonce(), 16) % same
        slices[n], slices[-1] = slices[-1], slices[n]

    def refill(self) -> list[str]:
        """List the directory and keep the head of what is available or due; returns all names."""
        store = self._store
        start = store.port.boottime()
        listed = store.listing()
        size = max(HEAD, len(listed) // 16) if self._until else FIRST  # most claim only once
        available = [n for n in listed if n.endswith(_END) and n not in self._tried]
        # The last letter leaves out nearly all names of a long board, at a third of the price.
        later = [n for n in listed if n[-1] == "r" and n.endswith(_LATER)]
        store.due_at = 0
        due = [t for t in delays.due_of(store, later) if t.name not in self._tried] if later else []
        heads = _heads(available, due, size)
        slices = [
            head[at : at + SLICE][::-1] for head in heads for at in range(0, len(head), SLICE)
        ]
        self._slices = slices[::-1]
        self._near = _near(listed, heads)
        self._left = sum(map(len, heads)) < len(available) + len(due)
        self._losses = 0
        if self._crowded:
            self._crowded = False
            self._jump()
        self._until = good_until(start, store.port.boottime())
        return listed


def _heads(available: list[str], due: list[Task], size: int) -> list[list[str]]:
    """About the first `size` names of a queue in their order, one list for each priority."""
    asked = {n for n in available if "q" in n and _asked().search(n)}
    if asked:
        available = [n for n in available if n not in asked]
    stamped = [n for n in available if n[-12:-11] == "p"]  # few tasks have their own priority
    if stamped:
        available = [n for n in available if n[-12:-11] != "p"]
    by_priority = {DEFAULT_PRIORITY: available}
    for name in (*stamped, *asked):
        by_priority.setdefault(_priority_of(name), []).append(name)
    for task in due:
        by_priority.setdefault(task.priority, []).append(task.name)
    heads: list[list[str]] = []
    for priority in sorted(by_priority, reverse=True):
        heads.append(_first(by_priority[priority], size))
        size -= len(heads[-1])
        # A head that was cut ends the list: the rest of its priority comes before any lower one.
        if size <= 0 or len(heads[-1]) < len(by_priority[priority]):
            break
    return heads


def _first(found: list[str], size: int) -> list[str]:
    """About the first `size` of these names in order, or all if they are not many more.

    All names up to a limit are sorted; a sample of the names gives the limit.
    """
    if len(found) > 4 * size:
        sample = sorted(found[:: max(1, len(found) // SAMPLE)])
        end = sample[size * len(sample) // len(found)]
        found = [n for n in found if n <= end]
    return sorted(found)


def _near(listed: list[str], heads: list[list[str]]) -> list[str]:
    """The names of a listing that may share an id with a name in these heads, sorted."""
    if len(listed) < HEAD:
        return sorted(listed)
    begins = {name for head in heads for name in head}
    for name in tuple(begins):
        if not _bare(name) and (task := names.read(name)) is not None:
            begins.update(names.spellings(task.id))
    parts = {begin.partition(".")[0] for begin in begins}
    if not parts:
        return []
    # Comparing a name is much faster than splitting it, and most are outside of the range.
    first, end = min(parts), max(f"{part}/" for part in parts)  # "/" is next after the dot
    between = [n for n in listed if first <= n < end]
    return sorted([n for n in between if n.partition(".")[0] in parts])


def _priority_of(name: str) -> int:
    if name[-12:-11] != "p" and not name.endswith(_LATER) and not _asked().search(name):
        return DEFAULT_PRIORITY
    if m := _stamped().fullmatch(name):  # the usual form; `read` takes far longer
        return int(m[1])
    task = names.read(name)
    return task.priority if task is not None else DEFAULT_PRIORITY


def doubled(listed: list[str], name: str) -> bool:
    """Whether a sorted listing has another name of the same id, so that neither is claimed."""
    if _bare(name):  # the usual form, for which the next name decides
        at = bisect_left(listed, begin := name[: -len(AVAILABLE)])
        following = listed[at + 1] if at + 1 < len(listed) else ""
        if listed[at] == name and not following.startswith(begin):
            return False
    task = names.read(name)
    return task is None or any(other.name != name for other in id_index.carriers(listed, task.id))
