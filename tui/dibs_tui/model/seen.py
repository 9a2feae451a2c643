"""What the reader tells the dashboard: plain values that cross from its thread to the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dibs import Event, Facts, Rates, Sample, Task, Verdict

OVERDUE = 1.5
"""Seconds that the disk may take for an answer before the head no longer calls the board live."""


class Seen(NamedTuple):
    """What one look at the board found different."""

    came: tuple[Task, ...] = ()
    went: tuple[Task, ...] = ()
    facts: Mapping[str, Facts] = {}
    """The claims that were heard of, or whose silence now lasts too long."""
    stale: Mapping[str, Verdict | None] = {}
    """Which claims became stale, with the evidence; None for one that is no longer."""
    since: Mapping[str, int] = {}
    """When tasks that nobody holds came to wait, or ended."""
    events: tuple[Event, ...] = ()
    rates: Rates | None = None
    """The counts of the last half hour, where the events are its end and take the place of all
    that was told before; None where they only go on."""
    now: Sample | None = None
    """The board's clock, when it was read."""
    exact: bool = True
    ghosts: tuple[str, ...] = ()
    """Claims that were beaten though they are over, by the stem of their names."""
    probe: float = 0.0
    """Seconds that the last touch of the probe took."""
    strangers: int = 0
    whole: bool = True
    """False until the first listing of every folder is told."""

    @property
    def news(self) -> bool:
        """Whether it is more than beats, which can wait for the next tick."""
        return bool(
            self.came or self.went or self.stale or self.since or self.events or self.ghosts
        )


class Status(NamedTuple):
    """How the reader fares; replaced whole, so that any thread may look at it."""

    fresh: float = 0.0
    """When the board was last seen whole, on the boot-time clock."""
    busy: float = 0.0
    """Since when the disk has owed an answer; 0 while it owes none."""
    live: bool = False
    """Changes are heard as they happen; else the board is polled."""
    why_polling: str = ""
    """Why no changes are heard, in one line; empty where they are, or nobody knows yet."""
    why_read_only: str = ""
    """Why nothing can be changed here, in one line with the path; empty where it can."""
    trouble: str = ""
    """One of `missing`, `denied`, `not a board`, `newer`, `older`, `foul`, `failed`; else empty."""
    cause: str = ""
    """The trouble in one line, with the path."""
    every: float = 1.0
    """Seconds between two looks at the whole board."""
    traits: tuple[str, ...] = ()
    """What is worth knowing of the file system, each in a word or two: `sshfs`, `whole seconds`."""

    @property
    def writable(self) -> bool:
        """Whether tasks can be moved here."""
        return not self.why_read_only

    def owed(self, now: float) -> float:
        """Seconds since the board was last seen, where a look at it is overdue; else 0.

        The word "live" must not outlast the looks that it rests on: the disk may hang, the reader's
        thread may have ended, and the board may be missing meanwhile.
        """
        busy = now - self.busy if self.busy else 0.0
        age = now - self.fresh
        return age if busy > OVERDUE or age > self.every + 2 * OVERDUE else 0.0

    @property
    def kind(self) -> tuple[object, ...]:
        """All of it but the times: another kind is worth painting at once."""
        return self._replace(fresh=float(self.fresh > 0), busy=0.0)
