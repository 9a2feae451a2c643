"""A sorted list of tasks that is kept true at the cost of what changes, and can be held still.

It is kept in pieces, so that neither a change nor a look at one line depends on its length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from dibs import Task

_PIECE = 512

Key = tuple[Any, ...]
_name, _id = itemgetter(0), itemgetter(1)


class Flipped:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Flipped) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flipped) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class Roll:
    """Tasks in the order of a value, of their ids and of their names.

    While it is held, what comes and goes waits; every line stays where it is. A line under the
    cursor stays as well after its task is gone, until the cursor leaves it.
    """

    def __init__(
        self, value: Callable[[Task], Any], tasks: Iterable[Task] = (), *, moving: str = ""
    ) -> None:
        """`moving` says whose values change with time: nobody's, `live` tasks', or `all`."""
        self._value = value
        self._moving = moving
        self._keys: dict[str, Key] = {}
        """What a task stands under, where its key may be another by now."""
        ordered = self._ordered(tasks)
        self._pieces = [ordered[at : at + _PIECE] for at in range(0, len(ordered), _PIECE)]
        self._tails = [self._place(piece[-1]) for piece in self._pieces]
        self._starts: list[int] = []
        self._length = len(ordered)
        self._waiting: dict[str, tuple[Task, bool]] = {}
        self._news: set[str] = set()
        self._waiting_ids: dict[tuple[str, bool], Task] = {}
        """What waits to come (True) and to go, by its id: together they are one task's new name."""
        self._holds: set[str] = set()
        self._anchor = ""
        self.version = 0
        """Grows with every change of what stands where."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> Task:
        number = self._piece_at(at)
        return self._pieces[number][at - self._starts[number]]

    def __iter__(self) -> Iterator[Task]:
        return (task for piece in self._pieces for task in piece)

    def part(self, start: int, stop: int) -> list[Task]:
        """The tasks of some lines."""
        if start >= self._length:
            return []
        number = self._piece_at(start)
        skip = start - self._starts[number]
        rest = (task for piece in self._pieces[number:] for task in piece)
        return list(islice(rest, skip, skip + max(0, stop - start)))

    def index(self, task: Task) -> int | None:
        """The line that a task stands on."""
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
        """Whether lines stand still now."""
        return bool(self._holds)

    @property
    def waiting(self) -> int:
        """How many tasks are held back from coming or going."""
        return len(self._news)

    @property
    def gone(self) -> int:
        """How many lines are of tasks that have left the list."""
        return sum(not stays for _, stays in self._waiting.values())

    def hold(self, reason: str) -> None:
        """Let every line stand where it is until `release` with the same reason."""
        self._holds.add(reason)

    def release(self, reason: str) -> bool:
        """Take over what was held back, unless another reason still holds; whether lines moved."""
        self._holds.discard(reason)
        return not self._holds and self._settle()

    def anchor(self, name: str) -> bool:
        """Keep this task's line even when the task goes; whether a line left because of it."""
        if name == self._anchor:
            return False
        self._anchor = name
        return not self._holds and self._settle()

    def put(self, task: Task) -> None:
        """Take a task in, or let it stand where its key is now."""
        if self._holds:
            self._keep_waiting(task, stays=True)
        else:
            self._waiting.pop(task.name, None)
            self._insert(task)

    def drop(self, task: Task) -> None:
        """Take a task out."""
        if self._holds or task.name == self._anchor:
            self._keep_waiting(task, stays=False)
        else:
            self._remove(task)

    def _keep_waiting(self, task: Task, *, stays: bool) -> None:
        here = task in self
        other = self._waiting_ids.get((task.id, not stays))
        old, new = (other, task) if stays else (task, other)
        if old is not None and new is not None and old in self and new not in self:
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
        """Let a task's line go on under its new name; it is sorted in once lines may move."""
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
            number -= number > 0 and number == len(self._pieces)
        piece = self._pieces[number]
        at = bisect_left(piece, key, key=self._place)
        if at < len(piece) and self._place(piece[at]) == key:
            return
        piece.insert(at, task)
        self._tails[number] = self._place(piece[-1])
        if len(piece) > 2 * _PIECE:
            self._pieces[number : number + 1] = [piece[:_PIECE], piece[_PIECE:]]
            self._tails.insert(number, self._place(piece[_PIECE - 1]))
        self._changed(1)

    def _remove(self, task: Task) -> None:
        found = self._find(task)
        self._keys.pop(task.name, None)
        if found is None:
            return
        number, at = found
        piece = self._pieces[number]
        del piece[at]
        if piece:
            self._tails[number] = self._place(piece[-1])
        else:
            del self._pieces[number], self._tails[number]
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
        piece = self._pieces[number]
        at = bisect_left(piece, key, key=self._place)
        return (number, at) if at < len(piece) and piece[at].name == task.name else None

    def _key(self, task: Task) -> Key:
        return self._value(task), task.id, task.name

    def _place(self, task: Task) -> Key:
        """The key that a task stands under, or would."""
        return self._keys.get(task.name) or self._key(task) if self._keys else self._key(task)

    def _moves(self, task: Task) -> bool:
        return self._moving == "all" or (self._moving == "live" and task.live)

    def _ordered(self, tasks: Iterable[Task]) -> list[Task]:
        ordered = sorted(tasks, key=_name)
        ordered.sort(key=_id)  # three sorts, as none of them has to make and compare tuples
        if self._moving:
            self._keys.update({task.name: self._key(task) for task in ordered if self._moves(task)})
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
