"""The return values of a board's verbs."""

from collections.abc import Callable
from typing import NamedTuple

from dibs.model.task import Task


class Reaped(NamedTuple):
    """The result of one pass that requeues stale claims.

    >>> board.reap().tasks
    ()
    """

    tasks: tuple[Task, ...]
    """The tasks and locks that the reaped claims became: available, failed or free."""
    retry: float | None
    """Seconds until the next claim that has expired can be reaped; None if there is none."""
    refused: tuple[str, ...]
    """One line for each claim that could not be reaped, or later task that stayed."""
    due: tuple[Task, ...] = ()
    """The later tasks that became available, because they were due."""
    next: float | None = None
    """Seconds until the next later task is due; None if none waits."""
    unproven: int = 0
    """The number of claims past their lease that stay until the clock has proved it."""


class Resolved(NamedTuple):
    """The task that one line of a list means; the line may contain anything.

    >>> [found.name for found in board.resolve("build.available\\n")]
    ['build.available']
    """

    given: str
    name: str = ""
    """The exact name to act on; empty if the line means no task."""
    why: str = ""
    """Why the line means no task."""
    now: tuple[Task, ...] = ()
    """What has that id now; empty for an unknown id."""


class LockStatus(NamedTuple):
    """The state of a lock at one moment.

    >>> board.status("nightly").held
    False
    """

    task: Task | None
    """None for a name that was never acquired; such a lock is free."""
    held: bool
    owner: str = ""
    host: str = ""
    metadata: str = ""
    age: float = 0.0
    ttl: float = 0.0
    remaining: float = 0.0
    """Seconds left of the lease; 0 once it has expired."""
    slot: int = 1
    slots: "tuple[LockStatus, ...]" = ()
    """Every slot, this one first, if the lock has been used with several."""

    @property
    def expired(self) -> bool:
        """Whether the lease is over; the next `acquire` gets the lock once that is proved."""
        return self.held and self.age > self.ttl


class Finding(NamedTuple):
    """A fault of a board, or a fact about it that is worth knowing.

    >>> board.check()
    []
    """

    kind: str
    name: str
    """The path, relative to the board."""
    text: str
    """What is wrong and what to do."""
    repair: Callable[[], object] | None = None
    """Repairs it and returns False if it was repaired already; None if a person must decide."""
    ids: tuple[str, ...] = ()
    """The ids that it affects, if there are several."""
    fault: bool = True
    """False if it is worth knowing, but in order."""
    age: float | None = None
    """For how many seconds an add has not ended, by the board's clock; None for all else."""
