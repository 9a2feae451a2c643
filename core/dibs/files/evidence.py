"""Judge whether the holder of a claim is dead, expired, alive or unknown, for operators to read.

No act depends on it: the rename of the exact name decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dibs import proofs
from dibs.files.facts import facts_of
from dibs.model import refusals
from dibs.model.evidence import Evidence, Verdict
from dibs.model.sample import SECOND, from_the_future

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model.holder import Holder
    from dibs.model.sample import Sample
    from dibs.model.task import Task


def judge(store: BoardFiles, facts: Facts, now: Sample, *, exact: bool = True) -> Verdict:
    """The verdict on one claim as its facts stood at `now`."""
    return _verdict(store, facts, now, exact, _gone(store, facts))


def weigh(
    store: BoardFiles, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
) -> Evidence:
    """The verdict on one claim with its proofs, from the disk now.

    `cadence` is the usual number of seconds between its beats, as the caller has observed; 0 if it
    has not seen enough beats, None if it has not watched.
    """
    if not task.live:
        raise refusals.no_holder(task)
    facts = facts_of(store, task)
    if facts is None:
        raise store.changed(task.name, task.id, "there is no evidence to show")
    now, exact = store.clock.now_or_newest(facts.beat)
    gone = _gone(store, facts)
    verdict = _verdict(store, facts, now, exact, gone)
    doubt = store.clock.doubt(now, facts.ttl) if exact else ""
    holder = store.noted(facts.holder)
    return proofs.weigh(
        store.host, holder, now, verdict, gone, others, cadence, exact=exact, doubt=doubt
    )


def _gone(store: BoardFiles, facts: Facts) -> bool | None:
    """Whether the process that holds the claim has exited; None if this host cannot know."""
    return store.host.gone(facts.process) if facts.process is not None else None


def _verdict(
    store: BoardFiles, facts: Facts, now: Sample, exact: bool, gone: bool | None
) -> Verdict:
    if gone:
        return Verdict.DEAD
    unreadable = facts.record is not None and bool(facts.record.flaw)
    if unreadable or (facts.task.is_shell_claim and facts.lock is None):
        return Verdict.UNKNOWN
    if from_the_future(facts.beat, now):
        return Verdict.UNKNOWN
    if not exact:  # the age is only a lower bound
        return Verdict.UNKNOWN
    if not facts.expired(now):
        return Verdict.ALIVE
    stale = now.fs - facts.latest > facts.ttl * SECOND and store.clock.trusts(now, facts.ttl)
    return Verdict.EXPIRED if stale else Verdict.UNKNOWN
