"""The holder of one claim, as every engine shows it."""

from typing import NamedTuple

from dibs.model.process import Process
from dibs.model.sample import SECOND, Sample
from dibs.model.task import Task

NO_LOCK = "no lock"
"""The flaw of a shell claim without a lock file."""
NO_RECORD = "no record"
"""The flaw of a claim whose record was not written yet, or removed."""


def act_name(task: Task, since: int) -> str:
    """The exact name for acts on a claim that was made at `since`."""
    return f"{task.name}/{since:x}" if task.is_shell_claim else task.name


def age(beat: int, now: Sample) -> float:
    """Seconds since a heartbeat, never negative."""
    return max(0, now.fs - beat) / SECOND


def expired(beat: int, ttl: float, now: Sample) -> bool:
    """Whether there was no heartbeat for longer than the ttl."""
    return now.fs - beat > ttl * SECOND


class Holder(NamedTuple):
    """The holder of one claim at one moment.

    >>> board.holder(claim.task).owner
    'web-3'
    """

    task: Task
    beat: int
    """The time of its last heartbeat, in nanoseconds of the board's clock."""
    ttl: float
    since: int
    """When the claim was made, in nanoseconds of the board's clock."""
    owner: str = ""
    host: str = ""
    process: Process | None = None
    metadata: str = ""
    default_ttl: bool = False
    """Whether it has no ttl of its own, so that the board's counts."""
    lock: str = ""
    """The content of a shell claim's lock file."""
    flaw: str = ""
    """What is missing or invalid in what it wrote; empty if all is well."""
    note: str = ""
    """What it said last about its work."""
    noted: int = 0
    """When it said that, in nanoseconds of the board's clock; 0 if it has no note."""

    @property
    def act_name(self) -> str:
        """The exact name for acts; a shell claim, without a nonce, has its rename's time added."""
        return act_name(self.task, self.since)

    def age(self, now: Sample) -> float:
        """Seconds since the last heartbeat, never negative."""
        return age(self.beat, now)

    def expired(self, now: Sample) -> bool:
        """Whether the lease has expired: no heartbeat for longer than the ttl."""
        return expired(self.beat, self.ttl, now)
