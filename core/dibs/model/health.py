"""The health of a watch: whether it can see the board, and if not, why."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

OVERDUE = 1.5
"""Seconds without an answer of the storage after which the board no longer counts as live."""


class Trouble(StrEnum):
    """Why a board cannot be seen now; screens show the value.

    >>> dibs.Trouble.MISSING.value
    'missing'
    """

    MISSING = "missing"
    """There is no board at that place."""
    NOT_MOUNTED = "not mounted"
    """The file system that has the board is not mounted."""
    DENIED = "denied"
    """This user has no right to read it."""
    NOT_A_BOARD = "not a board"
    """What is at that place cannot be used as a board."""
    NEWER_FORMAT = "newer format"
    """A later version of dibs made it."""
    OLDER_FORMAT = "older format"
    """An earlier version of dibs made it; it has to be upgraded."""
    BAD_SETTINGS = "bad settings"
    """Its settings are invalid."""
    FAILED = "failed"
    """The storage failed."""


class Health(NamedTuple):
    """The health of a watch at one moment; each change makes a new value.

    >>> watch = board.watch(lambda delta: None)
    >>> watch.health.trouble
    >>> watch.stop(60)
    True
    """

    fresh: float = 0.0
    """When the complete board was last seen, on the monotonic clock; 0 if never."""
    busy: float = 0.0
    """Since when the watch waits for the storage, on the monotonic clock; 0 if it does not."""
    touching: float = 0.0
    """Since when a reading of the board's clock waits for the storage; 0 if none does."""
    live: bool = False
    """Whether changes are reported as they happen; if not, the board is polled."""
    why_polling: str = ""
    """Why the board is polled, in one line; empty if it is live or not known yet."""
    why_read_only: str = ""
    """Why no one may act here, in one line; empty if the board can be changed."""
    storage_read_only: bool = False
    """Whether the storage takes no changes, whatever the rights: it is mounted read-only here, or
    is a standby."""
    why_full: str = ""
    """What the storage has run out of, in a few words; empty if it has room."""
    trouble: Trouble | None = None
    """Why the board cannot be seen now; None if it can."""
    cause: str = ""
    """The trouble as one line with the path."""
    every: float = 1.0
    """Seconds between two reads of the complete board."""
    traits: tuple[str, ...] = ()
    """Notable traits of the storage, in a word or two each: `sshfs`, `whole seconds`."""

    @property
    def writable(self) -> bool:
        """Whether the board can be changed."""
        return not self.why_read_only

    def lag(self, now: float) -> float:
        """Seconds since the board was last seen if the next read is overdue; else 0.

        A screen must not say "live" without recent reads: the storage may hang, the watch may
        have ended, or the board may be gone.
        """
        busy = now - self.busy if self.busy else 0.0
        age = now - self.fresh
        return age if busy > OVERDUE or age > self.every + 2 * OVERDUE else 0.0

    @property
    def kind(self) -> tuple[object, ...]:
        """Everything except the times; a change of it should be shown at once."""
        return self._replace(fresh=float(self.fresh > 0), busy=0.0, touching=0.0)
