"""Snapshots: a board at one moment, and the change between two moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.delays import next_start
from dibs.model.pauses import Pause, shell_claims_since
from dibs.model.sample import Sample
from dibs.model.task import AVAILABLE, CLAIMED, STATES, Task
from dibs.model.waiters import untaken

if TYPE_CHECKING:
    from dibs.model.holder import Holder
    from dibs.model.questions import Question
    from dibs.model.waiters import Waiter


class Change(NamedTuple):
    """The difference between two snapshots.

    >>> change = dibs.Change(added=board.find("build"), removed=())
    >>> bool(change)
    True
    """

    added: tuple[Task, ...]
    removed: tuple[Task, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class Snapshot(NamedTuple):
    """The complete board at one moment.

    >>> board.snapshot().counts()["available"]
    2
    """

    tasks: Mapping[str, Task]
    """Every task and lock by its exact name."""
    holders: Mapping[str, Holder]
    """The holder of each claim, by its exact name."""
    now: Sample
    exact: bool
    """False if the clock could not be read; ages are then lower bounds."""
    strangers: int
    """How many names on the board are not those of tasks or locks; `check` lists them."""
    dead: Set[str] = frozenset()
    """The claims whose process is known to have exited, by their exact names."""
    questions: Mapping[str, Question] = MappingProxyType({})
    """The open question of each asked task, by its exact name."""
    pauses: tuple[Pause, ...] = ()
    """The pauses that are in force."""
    waiters: tuple[Waiter, ...] = ()
    """The workers that wait for tasks."""

    @property
    def shell_claims(self) -> int:
        """How many shell claims were made during a pause, for which `mv` does not look."""
        return shell_claims_since(self.pauses, self.holders.values()) if self.pauses else 0

    def age(self, name: str) -> float | None:
        """Seconds since a claim's last heartbeat; None for anything else."""
        holder = self.holders.get(name)
        return holder.age(self.now) if holder is not None else None

    def stale(self, name: str) -> bool:
        """Whether a claim's lease has expired or its process has exited."""
        holder = self.holders.get(name)
        return holder is not None and (name in self.dead or holder.expired(self.now))

    def next_start(self) -> float | None:
        """Seconds until the next later task is due, 0 if one is; None if none waits."""
        return next_start(self.tasks.values(), self.now.fs)

    def untaken(self) -> int:
        """How many tasks are available while no worker has a live claim or waits for one.

        Workers on paused hosts do not count; 0 while the complete board is paused.
        """
        available = sum(task.state == AVAILABLE for task in self.tasks.values())
        return untaken(available, self._working_hosts(), self.pauses) if available else 0

    def _working_hosts(self) -> Iterator[str]:
        """The host of each worker that waits or has a live claim of a task."""
        yield from (waiter.host for waiter in self.waiters)
        for name, holder in self.holders.items():
            if holder.task.state == CLAIMED and not self.stale(name):
                yield holder.host

    def counts(self) -> dict[str, int]:
        """The number of tasks and locks by state; stale ones count only as stale."""
        counts = dict.fromkeys(STATES, 0)
        for name, task in self.tasks.items():
            counts["stale" if task.live and self.stale(name) else task.state] += 1
        return counts
