"""A sorted list of tasks with cheap updates, which can be frozen.

The list is kept in pieces, so that the cost of a change or of a lookup does not grow with it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any

from dibs import Task
from dibs_tui.text.natural import natural

_PIECE = 512
_FEW = 16
"""So many tasks are sorted into a piece one by one; for more it is sorted as a whole."""
_UNSORTED = 8 * _PIECE
"""The tasks that an unsorted piece may have: each split makes the keys of all again."""

Key = tuple[Any, ...]
_name = itemgetter(0)


def _natural_id(task: Task) -> str:
    return natural(task.id)


_natural = lru_cache(8192)(natural)
"""Looking a task up compares it with few others, which are often the same ones."""


class Descending:
    """A value that sorts in reverse."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class SortedTasks:
    """Tasks sorted by a value, then by id in natural order, and by name.

    While the list is held, every line stays in place and changes wait. The line under the cursor
    stays even when its task is gone, until the cursor moves on.
    """

    def __init__(
        self,
        value: Callable[[Task], Any],
        tasks: Iterable[Task] = (),
        *,
        moving: str = "",
        stored: frozenset[str] = frozenset(),
    ) -> None:
        """`moving`: whose values change with time: none (empty), `live` or `later` tasks, or `all`.

        `stored`: the states of the tasks whose values may change besides.
        """
        self._value = value
        self._stored = stored
        self._moving = moving
        self._keys: dict[str, Key] = {}
        """The key that a task was sorted in by, if that key may have changed since."""
        ordered = self._ordered(tasks)
        self._pieces = [ordered[at : at + _PIECE] for at in range(0, len(ordered), _PIECE)]
        self._tails = [self._place(piece[-1]) for piece in self._pieces]
        """The key of the last task of each piece, or of the last once the piece is sorted."""
        self._unsorted = [False] * len(self._pieces)
        self._starts: list[int] = []
        self._length = len(ordered)
        self._waiting: dict[str, tuple[Task, bool]] = {}
        self._news: set[str] = set()
        self._waiting_ids: dict[tuple[str, bool], Task] = {}
        """Tasks that wait to come (True) or to go, by id: one of each is a task with a new name."""
        self._holds: set[str] = set()
        self._anchor = ""
        self.version = 0
        """Changes whenever a line changes its task."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> Task:
        number = self._piece_at(at)
        return self._piece(number)[at - self._starts[number]]

    def __iter__(self) -> Iterator[Task]:
        return (task for number in range(len(self._pieces)) for task in self._piece(number))

    def part(self, start: int, stop: int) -> list[Task]:
        """The tasks of these lines."""
        if start >= self._length:
            return []
        number = self._piece_at(start)
        skip = start - self._starts[number]
        rest = (task for n in range(number, len(self._pieces)) for task in self._piece(n))
        return list(islice(rest, skip, skip + max(0, stop - start)))

    def index(self, task: Task) -> int | None:
        """The line of a task; None if it is not in the list."""
        found = self._find(task)
        if found is None:
            return None
        number, at = found
        self._piece_at(0)
        return self._starts[number] + at

    def __contains__(self, task: Task) -> bool:
        return self._find(task) is not None

    @property
    def held(self) -> bool:
        """Whether lines stay in place now."""
        return bool(self._holds)

    @property
    def waiting(self) -> int:
        """The number of tasks that wait to come or to go."""
        return len(self._news)

    @property
    def gone(self) -> int:
        """The number of lines whose tasks have left the list."""
        return sum(not stays for _, stays in self._waiting.values())

    def hold(self, reason: str) -> None:
        """Keep every line in place until `release` with the same reason."""
        self._holds.add(reason)

    def release(self, reason: str) -> bool:
        """Apply the waiting changes, unless another reason still holds; True if lines moved."""
        self._holds.discard(reason)
        return not self._holds and self._settle()

    def anchor(self, name: str) -> bool:
        """Keep this task's line even when the task goes; True if the kept line before it went."""
        if name == self._anchor:
            return False
        self._anchor = name
        return not self._holds and self._settle()

    def put(self, task: Task) -> None:
        """Insert a task, or move it to where its key belongs now."""
        if self._holds:
            self._keep_waiting(task, stays=True)
        else:
            self._waiting.pop(task.name, None)
            self._insert(task)

    def force(self, come: Iterable[Task], go: Iterable[Task]) -> None:
        """Insert and remove tasks at once, because the operator has asked for it."""
        for task in go:
            self._remove(task)
        for task in come:
            self._insert(task)

    def put_many(self, tasks: Iterable[Task]) -> None:
        """Insert many tasks that are not in the list; a piece is sorted when it is next read."""
        tasks = iter(tasks)
        if not self._pieces:
            for task in islice(tasks, 1):
                self.put(task)
        if self._holds or self._waiting:
            for task in tasks:
                self.put(task)
            return
        parts: dict[int, list[tuple[Key, Task]]] = {}
        tails, pieces, added = self._tails, self._pieces, 0
        for task in tasks:
            key = self._new_key(task)
            if self._moves(task):
                self._keys[task.name] = key
            number = min(bisect_left(tails, key), len(pieces) - 1)
            parts.setdefault(number, []).append((key, task))
            added += 1
        for number in sorted(parts, reverse=True):  # a split moves only the pieces after it
            self._put_part(number, parts[number])
        self._changed(added)

    def _put_part(self, number: int, part: list[tuple[Key, Task]]) -> None:
        """Insert tasks with their keys into a piece; few of them leave it sorted."""
        piece = self._pieces[number]
        self._tails[number] = max(self._tails[number], *(key for key, _ in part))
        if self._unsorted[number] or len(part) > _FEW:
            piece += [task for _, task in part]
            self._unsorted[number] = True
        else:
            for key, task in part:
                piece.insert(bisect_left(piece, key, key=self._place), task)
        if len(piece) > _UNSORTED:
            self._split(number)

    def after(self, key: Key | None, count: int) -> tuple[list[Task], Key | None]:
        """At least `count` tasks that are sorted after a key, and the key of the last of them.

        Without a key, the first ones; at the end no tasks and no key. A list that changes in
        between can be read in parts like this.
        """
        number = bisect_right(self._tails, key) if key is not None else 0
        if number == len(self._pieces):
            return [], None
        piece = self._piece(number)
        start = bisect_right(piece, key, key=self._place) if key is not None else 0
        found = piece[start:]
        while len(found) < count and number + 1 < len(self._pieces):
            number += 1
            found += self._piece(number)
        return found, self._place(found[-1]) if found else None

    def merge(self, tasks: Sequence[Task], *, without: Iterable[Task] = ()) -> None:
        """Insert many tasks that are in the order of this list already, `without` some of them.

        Those may be in this list, the others not. No key is made of the tasks, so none of them
        may be one whose value moves.
        """
        others = list(self)
        self._pieces = [list(tasks[at : at + _PIECE]) for at in range(0, len(tasks), _PIECE)]
        self._tails = [self._place(piece[-1]) for piece in self._pieces]
        self._unsorted = [False] * len(self._pieces)
        self._length = 0
        self._changed(len(tasks))
        for task in without:  # few, while a look at every task would hold the keys up
            self._remove(task)
        self.put_many(others)

    def settle(self) -> None:
        """Apply the waiting changes, and keep no line in place any longer."""
        self._holds.clear()
        self._anchor = ""
        self._settle()

    def drop(self, task: Task) -> None:
        """Remove a task."""
        if self._holds or task.name == self._anchor:
            self._keep_waiting(task, stays=False)
        else:
            self._remove(task)

    def _keep_waiting(self, task: Task, *, stays: bool) -> None:
        here = task in self
        other = self._waiting_ids.get((task.id, not stays))
        old, new = (other, task) if stays else (task, other)
        if (
            old is not None
            and new is not None
            and old.state == new.state  # else it leaves its place, as in a list of one state
            and old in self
            and new not in self
        ):
            self._rename(old, new)
            return
        if here or stays:
            self._waiting[task.name] = (task, stays)
        else:
            self._waiting.pop(task.name, None)
        if here != stays:
            self._news.add(task.name)
            self._waiting_ids[task.id, stays] = task
        else:
            self._news.discard(task.name)

    def _rename(self, old: Task, new: Task) -> None:
        """Keep a task's line under its new name; the task is sorted in once lines may move."""
        found = self._find(old)
        assert found is not None
        number, at = found
        key = self._place(old)
        self._keys.pop(old.name, None)
        self._keys[new.name] = key
        self._pieces[number][at] = new
        self._tails[number] = self._place(self._pieces[number][-1])
        for stays, task in ((False, old), (True, new)):
            self._waiting_ids.pop((task.id, stays), None)
            self._waiting.pop(task.name, None)
            self._news.discard(task.name)
        self._waiting[new.name] = (new, True)
        self.version += 1

    def _settle(self) -> bool:
        waiting, self._waiting, self._news = self._waiting, {}, set()
        before = self.version
        self._waiting_ids.clear()
        for name, (task, stays) in waiting.items():
            if stays:
                self._insert(task)
            elif name == self._anchor:
                self._waiting[name] = (task, False)
            else:
                self._remove(task)
        return self.version != before

    def _insert(self, task: Task) -> None:
        key = self._key(task)
        if self._keys.get(task.name, key) != key:
            self._remove(task)
        if self._moves(task):
            self._keys[task.name] = key
        number = bisect_left(self._tails, key)
        if number == len(self._pieces):
            if not self._pieces:
                self._pieces.append([])
                self._tails.append(key)
                self._unsorted.append(False)
            number -= number > 0 and number == len(self._pieces)
        piece = self._piece(number)
        at = bisect_left(piece, key, key=self._place)
        if at < len(piece) and self._place(piece[at]) == key:
            return
        piece.insert(at, task)
        self._tails[number] = self._place(piece[-1])
        if len(piece) > 2 * _PIECE:
            self._split(number)
        self._changed(1)

    def _split(self, number: int) -> None:
        piece = self._piece(number)
        size = -(-len(piece) // (len(piece) // _PIECE))
        parts = [piece[at : at + size] for at in range(0, len(piece), size)]
        self._pieces[number : number + 1] = parts
        self._tails[number:number] = [self._place(part[-1]) for part in parts[:-1]]
        self._unsorted[number : number + 1] = [False] * len(parts)

    def _piece(self, number: int) -> list[Task]:
        """A piece, sorted."""
        piece = self._pieces[number]
        if self._unsorted[number]:
            piece.sort(key=self._new_place)
            self._unsorted[number] = False
        return piece

    def _remove(self, task: Task) -> None:
        key = self._place(task)
        number = bisect_left(self._tails, key)
        piece = self._pieces[number] if number < len(self._pieces) else []
        at = None
        if piece and not self._unsorted[number]:
            at = self._at(piece, key, task)
        elif task in piece:  # to sort it takes longer than to look at each of its tasks
            at = piece.index(task)
        self._keys.pop(task.name, None)
        if at is None:
            return
        del piece[at]
        if not piece:
            del self._pieces[number], self._tails[number], self._unsorted[number]
        elif not self._unsorted[number]:
            self._tails[number] = self._place(piece[-1])
        self._changed(-1)

    def _changed(self, by: int) -> None:
        self._length += by
        self._starts = []
        self.version += 1

    def _find(self, task: Task) -> tuple[int, int] | None:
        key = self._place(task)
        number = bisect_left(self._tails, key)
        if number == len(self._pieces):
            return None
        at = self._at(self._piece(number), key, task)
        return (number, at) if at is not None else None

    def _at(self, piece: list[Task], key: Key, task: Task) -> int | None:
        """Where a task with this key is in a sorted piece; None if it is not in it."""
        at = bisect_left(piece, key, key=self._place)
        return at if at < len(piece) and piece[at].name == task.name else None

    def _key(self, task: Task) -> Key:
        return self._value(task), _natural(task.id), task.name

    def _new_key(self, task: Task) -> Key:
        """The same for one of many tasks, which are not looked up again soon."""
        return self._value(task), natural(task.id), task.name

    def _place(self, task: Task) -> Key:
        """The key that a task was sorted in by, or would be."""
        return self._keys.get(task.name) or self._key(task) if self._keys else self._key(task)

    def _new_place(self, task: Task) -> Key:
        return self._keys.get(task.name) or self._new_key(task)

    def parted(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        """Those whose values stay, and those whose values may change without a report of it."""
        if not self._moving and not self._stored:
            return tasks, []
        return [t for t in tasks if not self._moves(t)], [t for t in tasks if self._moves(t)]

    def _moves(self, task: Task) -> bool:
        if self._moving == "all" or task.state in self._stored:
            return True
        return task.live if self._moving == "live" else self._moving == task.state

    def _ordered(self, tasks: Iterable[Task]) -> list[Task]:
        # Three stable sorts are faster than one that makes and compares tuples.
        ordered = sorted(tasks, key=_name)
        ordered.sort(key=_natural_id)
        if self._moving or self._stored:
            self._keys.update(
                {task.name: self._new_key(task) for task in ordered if self._moves(task)}
            )
        ordered.sort(key=self._place if self._keys else self._value)
        return ordered

    def _piece_at(self, at: int) -> int:
        if not self._starts:
            start = 0
            for piece in self._pieces:
                self._starts.append(start)
                start += len(piece)
        if at < 0 or at >= self._length:
            raise IndexError(at)
        return bisect_left(self._starts, at + 1) - 1
