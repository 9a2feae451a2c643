"""Is the holder of a claim dead, silent, alive, or can nobody tell? The word that operators read.

Commentary for people: no act is decided by it, the rename of the exact name decides.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from dibs.clock import from_the_future

if TYPE_CHECKING:
    from dibs.clock import Sample
    from dibs.facts import Facts
    from dibs.store import Store


class Verdict(StrEnum):
    """What can be said of a claim's holder."""

    DEAD = "dead"
    """Its process has ended for sure: this host knows it by pid and start time."""
    EXPIRED = "expired"
    """Silent past its lease, by a clock that can be vouched for."""
    ALIVE = "alive"
    """Heard of within its lease."""
    UNKNOWN = "unknown"
    """No lock to beat, no readable record, or a clock that cannot be vouched for."""


def judge(store: Store, facts: Facts, now: Sample, *, exact: bool = True) -> Verdict:
    """The verdict on one claim as its facts stood at `now`."""
    record = facts.record
    if record is not None and record.process is not None and store.host.gone(record.process):
        return Verdict.DEAD
    unreadable = record is not None and bool(record.flaw)
    if unreadable or (facts.task.plain and facts.lock is None):
        return Verdict.UNKNOWN
    if from_the_future(facts.beat, now):
        return Verdict.UNKNOWN
    if not facts.expired(now):
        return Verdict.ALIVE
    vouched = exact and store.clock.vouches_for(now, facts.ttl)
    return Verdict.EXPIRED if vouched else Verdict.UNKNOWN
