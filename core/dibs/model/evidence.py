"""Evidence: the verdict on a claim's holder and the observations behind it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dibs.model.holder import Holder
    from dibs.model.sample import Sample


class Verdict(StrEnum):
    """Whether a claim's holder is still working.

    >>> [verdict.name for verdict in dibs.Verdict]
    ['DEAD', 'EXPIRED', 'ALIVE', 'UNKNOWN']
    """

    DEAD = "dead"
    """Its process has exited: this host checked its pid and start time."""
    EXPIRED = "expired"
    """No heartbeat within its lease, by a trusted clock."""
    ALIVE = "alive"
    """It sent a heartbeat within its lease."""
    UNKNOWN = "unknown"
    """There is no lock to beat, no readable record, or no trusted clock."""


class Proof(NamedTuple):
    """One observation about a claim's holder; its text may quote the board.

    >>> all(proof.text for proof in board.evidence(claim.task).proofs)
    True
    """

    kind: str
    """`process`, `beat`, `cadence`, `clock`, `record`, `lock` or `host`."""
    text: str
    weight: int
    """Above 0: the holder is alive; below 0: it has ended, -2 for certain; 0: neither."""


class Evidence(NamedTuple):
    """The verdict on one claim, with the observations behind it.

    >>> board.evidence(claim.task).verdict.name
    'ALIVE'
    """

    verdict: Verdict
    holder: Holder
    now: Sample
    exact: bool
    """False if the clock could not be read; ages are then lower bounds."""
    proofs: tuple[Proof, ...]


PER_TTL = 3
"""How often a dibs worker beats within its ttl."""
BEATS = 1.5
"""A holder beats as long as its last heartbeat is within this multiple of the usual gap."""
LATE = 2.2
"""A gap between heartbeats is suspicious above this multiple of the usual gap."""
