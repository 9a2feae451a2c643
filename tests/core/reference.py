"""What a board should be: a plain list in memory, and no process but one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import dibs
from dibs.names import AVAILABLE, CLAIMED, FREE, HELD
from tests.core.tools import Movable


class AgingDisk(Movable):
    """A disk on which waiting ages the folders instead of moving the clocks."""

    def sleep(self, seconds: float) -> None:
        for folder in ("", "done", "failed"):
            path = os.path.join(self.root, folder)
            status = os.stat(path)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**10))


@dataclass
class Entry:
    """One name on the board, as the reference knows it."""

    id: str
    state: str
    payload: bytes
    fence: int = 0
    attempts: int = 0
    priority: int = 5
    owner: str = ""
    beaten: float = 0.0
    claim: str = ""

    @property
    def live(self) -> bool:
        return self.state in (CLAIMED, HELD)

    def face(self) -> tuple[str, str, int, int, int, str]:
        """What its name tells."""
        return (self.id, self.state, self.fence, self.attempts, self.priority, self.claim)


@dataclass
class Kept:
    """A claim in somebody's hands, perhaps no longer theirs."""

    claim: dibs.Claim
    entry: Entry
    good: float
    """When it last beat: past four fifths of the ttl its owner has stopped."""


@dataclass
class Reference:
    """What the board should be, in memory and by one process."""

    entries: list[Entry] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    granted: dict[str, set[int]] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    now: float = 0.0

    def of(self, ident: str, *states: str) -> list[Entry]:
        return [e for e in self.entries if e.id == ident and (not states or e.state in states)]

    def present(self, ident: str) -> list[Entry]:
        return self.of(ident, AVAILABLE, CLAIMED, FREE, HELD)

    def waiting(self) -> list[Entry]:
        found = [e for e in self.entries if e.state == AVAILABLE and len(self.present(e.id)) == 1]
        return sorted(found, key=lambda e: -e.priority)

    def grant(self, entry: Entry, fence: int) -> None:
        """A fence is granted to at most one claim, and fences only grow."""
        before = self.granted.setdefault(entry.id, set())
        assert fence not in before
        if entry.id not in self.doubled:
            assert fence > max(before, default=0)
        before.add(fence)
