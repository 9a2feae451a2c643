"""How long each kind of task usually takes, learnt from the log, and what takes unusually long."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dibs.model.safe_text import age

if TYPE_CHECKING:
    from dibs.model.events import Event
    from dibs.model.task import Task

ENOUGH = 20
"""So many finished tasks of a kind are needed to know its usual duration."""
TIMES = 3
"""A claim is unusually long above this multiple of its kind's 95th percentile."""
LEAST = 60.0
"""No claim is unusually long before this many seconds."""
KEPT = 200
"""The newest durations of each kind that are kept."""
READ = 20_000
"""The most events that are read to learn from; older ones say little about today."""
VERBS = ("claim", "resume", "done")
"""The verbs of the events that show how long a task took."""
_KINDS = 2000
_OPEN = 20_000
_STARTS = ("claim", "resume")
_DONE = "done"
_without_digits = str.maketrans("", "", "0123456789")

V = TypeVar("V")


def kind_of(ident: str) -> str:
    """The kind of a task: its id without the digits."""
    return ident.translate(_without_digits)


class Usual(NamedTuple):
    """How long one kind of task usually takes, in seconds."""

    median: float
    p95: float

    @property
    def limit(self) -> float:
        """Above this many seconds a claim is unusually long."""
        return max(LEAST, TIMES * self.p95)

    def words(self, held: float) -> str:
        """What is reported about a claim that is held for so long."""
        return f"running {age(held)}, usually {age(self.median)}"


class Durations:
    """How long tasks took, by kind; events may be given in order or newest first."""

    def __init__(self) -> None:
        self._starts: dict[str, float] = {}
        """The start of each claim whose end was not seen, by exact name."""
        self._ends: dict[str, float] = {}
        """When tasks were done whose claim was not seen, by exact name."""
        self._found: dict[str, deque[float]] = {}
        self._usual: dict[str, Usual | None] = {}

    def note(self, event: Event) -> None:
        """Learn from one event; the newest durations of a kind replace the oldest."""
        if event.verb in _STARTS:
            end = self._ends.pop(event.dst, None)
            if end is not None:  # newest first: the end was seen before
                self._add(event.id, end - event.at, older=True)
            else:
                _keep(self._starts, event.dst, event.at, _OPEN)
            return
        start = self._starts.pop(event.src, None)
        if event.verb != _DONE:
            return
        if start is not None:
            self._add(event.id, event.at - start)
        else:
            _keep(self._ends, event.src, event.at, _OPEN)

    def usual(self, ident: str) -> Usual | None:
        """How long tasks of this id's kind usually take; None if too few were done."""
        kind = kind_of(ident)
        if kind not in self._usual:
            self._usual[kind] = _usual(self._found.get(kind, ()))
        return self._usual[kind]

    def too_long(self, task: Task, held: float) -> Usual | None:
        """What is usual for a claim that is held for unusually long; None for any other."""
        if held < LEAST or task.kind != "task":
            return None
        usual = self.usual(task.id)
        return usual if usual is not None and held > usual.limit else None

    def enough(self, kinds: Collection[str]) -> bool:
        """Whether nothing older can change what is usual for these kinds."""
        return all(len(self._found.get(kind, ())) == KEPT for kind in kinds)

    def _add(self, ident: str, seconds: float, *, older: bool = False) -> None:
        kind = kind_of(ident)
        found = self._found.pop(kind, None)
        found = deque(maxlen=KEPT) if found is None else found
        self._usual.pop(kind, None)
        _keep(self._found, kind, found, _KINDS)
        if not older:
            found.append(max(0.0, seconds))
        elif len(found) < KEPT:
            found.appendleft(max(0.0, seconds))
        if len(self._usual) > _KINDS:
            self._usual.clear()


def learn(newest_first: Iterable[Event], kinds: Collection[str] = ()) -> Durations:
    """What the newest events of a log show; with `kinds`, no more than these kinds need."""
    found = Durations()
    for count, event in enumerate(newest_first, 1):
        found.note(event)
        if count >= READ or (kinds and not count % ENOUGH and found.enough(kinds)):
            break
    return found


def _usual(seconds: Collection[float]) -> Usual | None:
    if len(seconds) < ENOUGH:
        return None
    ordered = sorted(seconds)
    rank = -(-95 * len(ordered) // 100)
    return Usual(ordered[len(ordered) // 2], ordered[rank - 1])


def _keep(kept: dict[str, V], key: str, value: V, most: int) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]
