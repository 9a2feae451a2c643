"""What a watch reports: the changes of a board since its last report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dibs.model.events import Event
from dibs.model.evidence import Verdict
from dibs.model.holder import Holder
from dibs.model.pauses import Pause
from dibs.model.questions import Question
from dibs.model.rates import Rates
from dibs.model.sample import Sample
from dibs.model.task import Task
from dibs.model.waiters import Waiter

PART = 2000
"""At most so many names come, and so many go, in one delta, so that a screen stays responsive."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Delta(NamedTuple):
    """One report of changes. Nothing in it changes later, so any thread may keep it.

    >>> seen = queue.Queue()
    >>> watch = board.watch(seen.put)
    >>> delta = next(delta for delta in iter(seen.get, None) if delta.added)
    >>> sorted(task.id for task in delta.added)
    ['build', 'deploy']
    >>> watch.stop(60)
    True
    """

    added: tuple[Task, ...] = ()
    """Tasks and locks with new names."""
    removed: tuple[Task, ...] = ()
    """Tasks and locks whose names are gone."""
    holders: Mapping[str, Holder] = _NOTHING
    """The holders of claims that are new, that beat or noted, or whose lease may have expired."""
    stale: Mapping[str, Verdict | None] = _NOTHING
    """The verdict on each claim that became stale; None for one that is no longer stale."""
    questions: Mapping[str, Question] = _NOTHING
    """What asked tasks wait with, by their exact names."""
    since: Mapping[str, int] = _NOTHING
    """When tasks became available or ended."""
    events: tuple[Event, ...] = ()
    rates: Rates | None = None
    """The counts of the last half hour; `events` then replace all earlier events. None if `events`
    continue the earlier ones."""
    now: Sample | None = None
    """The board's clock at its last reading."""
    exact: bool = True
    """Whether the clock could be read; if not, `now` is a lower bound."""
    past: tuple[Event, ...] = ()
    """Events from before `events`, newest first: why each task that is not done failed last, and
    the reaps of the last half hour. They come in slices while the log is read backwards."""
    reasons_read: bool | None = None
    """False when that reading begins, True with its end; None if it is as before."""
    late_beats: tuple[str, ...] = ()
    """Revoked claims that still beat, by their exact names without the state word."""
    probe: float = 0.0
    """How many seconds the last reading of the clock took."""
    waiters: tuple[Waiter, ...] | None = None
    """Every worker that waits for tasks, if that has changed; None if not."""
    strangers: int = 0
    """How many names on the board are not those of a task or lock."""
    more: bool = False
    """Whether another part of the same report follows at once."""
    complete: bool = True
    """False until every task of the board has been reported once."""
    pauses: tuple[Pause, ...] | None = None
    """The pauses that are in force; None if they are the same as before."""

    @property
    def news(self) -> bool:
        """Whether there is more than heartbeats, which can wait for the next second."""
        found = self.added or self.removed or self.stale or self.since or self.events or self.past
        lists = (self.waiters, self.pauses, self.reasons_read)
        return bool(found or self.late_beats) or any(each is not None for each in lists)


class DeltaPart(NamedTuple):
    """The names that one delta reports."""

    came: tuple[Task, ...]
    went: tuple[Task, ...]
    more: bool
    """Whether another part of the same difference follows."""


def parts(came: tuple[Task, ...], went: tuple[Task, ...]) -> Iterator[DeltaPart]:
    """Names that came and went, in parts of bounded size.

    Names that went come first, so that a renamed task never appears twice.
    """
    many = range(0, max(len(went), 1), PART)
    *before, last = [(came[:0], went[at : at + PART]) for at in many]
    rest = [(came[at : at + PART], went[:0]) for at in range(PART, len(came), PART)]
    found = [*before, (came[:PART], last[1]), *rest]
    for n, (new, old) in enumerate(found, 1):
        yield DeltaPart(new, old, n < len(found))
