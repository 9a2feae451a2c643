"""The reference for a board: a plain list in memory, used by one process."""

from __future__ import annotations

from dataclasses import dataclass, field

import dibs
from dibs.model.task import ASKED, AVAILABLE, CLAIMED, FREE, HELD, LATER


@dataclass
class Entry:
    """One task or lock in the reference."""

    id: str
    state: str
    payload: bytes
    fence: int = 0
    attempts: int = 0
    priority: int = 5
    owner: str = ""
    beaten: float = 0.0
    claim: str = ""
    due: float = 0.0
    """When a later task starts, by the reference's time."""
    question: str = ""
    """What an asked task waits with."""
    answers: tuple[tuple[str, str | None], ...] = ()
    """Each earlier question with its answer, which every later claim has."""
    askers: frozenset[str] = frozenset()
    """The claims that ended with a question."""

    @property
    def live(self) -> bool:
        return self.state in (CLAIMED, HELD)

    def face(self) -> tuple[str, str, int, int, int, str]:
        """The fields that its exact name shows, without the second at which it starts."""
        return (self.id, self.state, self.fence, self.attempts, self.priority, self.claim)


@dataclass
class Kept:
    """A claim that a worker made and may have lost."""

    claim: dibs.Claim
    entry: Entry
    good: float
    """The time of its last heartbeat; its owner stops four fifths of a ttl later."""


@dataclass
class Reference:
    """The expected state of the board."""

    entries: list[Entry] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    granted: dict[str, set[int]] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    pauses: list[dibs.Pause] = field(default_factory=list)
    now: float = 0.0

    def of(self, ident: str, *states: str) -> list[Entry]:
        return [e for e in self.entries if e.id == ident and (not states or e.state in states)]

    def present(self, ident: str) -> list[Entry]:
        return self.of(ident, AVAILABLE, LATER, CLAIMED, ASKED, FREE, HELD)

    def waiting(self) -> list[Entry]:
        """The tasks that a worker may claim now, the most urgent first."""
        found = [e for e in self.entries if self.ready(e) and len(self.present(e.id)) == 1]
        return sorted(found, key=lambda e: -e.priority)

    def ready(self, entry: Entry) -> bool:
        """Whether a task is available, or later and due."""
        return entry.state == AVAILABLE or (entry.state == LATER and entry.due <= self.now)

    def grant(self, entry: Entry, fence: int) -> None:
        """Check that a new fence was never granted before and is the highest."""
        before = self.granted.setdefault(entry.id, set())
        assert fence not in before
        if entry.id not in self.doubled:
            assert fence > max(before, default=0)
        before.add(fence)
