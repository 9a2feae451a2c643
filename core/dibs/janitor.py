"""Giving back what fell silent. Anyone may do it, any number at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs import plain
from dibs.claims import next_after_failure
from dibs.clock import LOOKS
from dibs.errors import DibsError
from dibs.facts import facts_of
from dibs.journal import BY_OPERATOR
from dibs.later import Later
from dibs.names import AVAILABLE, Task

if TYPE_CHECKING:
    from dibs import looks
    from dibs.clock import Sample
    from dibs.facts import Facts
    from dibs.store import Store
else:
    looks = Later("dibs.looks")


class Reaped(NamedTuple):
    """What one pass over the claims did and left."""

    given_back: tuple[Task, ...]
    """What the reaped claims became: available, free or failed."""
    waiting: float | None
    """Seconds after which to ask again for the next expired claim; None where all are alive."""
    refused: tuple[str, ...]
    """One line for each claim that could not be given back."""


def reap(store: Store, ident: str | None = None) -> Reaped:
    """Give back every claim, or those of one id, whose owner is dead or silent for too long."""
    store.ready()
    now = store.clock.now()
    given: list[Task] = []
    waits: list[float] = []
    refused: list[str] = []
    if ident is None:
        live = list(store.live())
    else:
        live = [task for task in store.find(ident, ended=False) if task.live]
    for task in live:
        try:
            facts = facts_of(store, task)
            if facts is None:
                continue
            wait = patience(store, facts, now)
            if wait > 0:
                waits += [wait] if facts.expired(now) else []
                continue
            ended = give_back(store, facts, now)
            given += [ended] if ended is not None else []
        except DibsError as error:
            refused.append(f"{task.name}: {error}")
    store.clock.settle()
    if ident is None:
        with suppress(DibsError):  # what could not be removed is litter, and the claims are reaped
            if entries := store.ended(LOOKS):
                looks.sweep(store, entries, {task.stem for task in live})
    return Reaped(tuple(given), min(waits, default=None), tuple(refused))


def patience(store: Store, facts: Facts, now: Sample) -> float:
    """Seconds after which to ask again whether it may be reaped; 0: dead, or surely silent."""
    if dead(store, facts):
        return 0.0
    return store.clock.patience(
        facts.task.stem, facts.beat, facts.pulse, facts.ttl, now, latest=facts.latest
    )


def dead(store: Store, facts: Facts) -> bool:
    """Whether the very process that holds the claim is known to have ended."""
    record = facts.record
    if record is None or record.process is None or not store.settings.reap_dead:
        return False
    return store.host.gone(record.process) is True


def give_back(
    store: Store, facts: Facts, now: Sample, *, by: str = "", why: str = "", asked: bool = False
) -> Task | None:
    """Reap exactly the claim that was judged; None when it is not there any more.

    `asked`: an operator asked for it. The journal says so, because `undo` names operators' acts.
    """
    task = facts.task
    found = (BY_OPERATOR if asked else "") + _found(store, facts, now)
    ended = _give_back(store, facts, by, found + (f"; {why}" if why else ""))
    if ended is not None:
        store.drop(f"{LOOKS}/{task.stem}")
    return ended


def _give_back(store: Store, facts: Facts, by: str, reason: str) -> Task | None:
    task = facts.task
    if task.plain:
        return plain.give_back(store, facts, "reap", reason, by=by)
    if task.take:
        sight = facts.record.sight if facts.record else None
        ended = plain.finish(store, task, sight, by=by)
        if ended is not None and ended.state == AVAILABLE:
            store.journal.write("reap", task.id, task.name, ended.name, by, reason)
        return ended
    return store.shift(task, next_after_failure(store, task), "reap", by, reason)


def _found(store: Store, facts: Facts, now: Sample) -> str:
    """What speaks for giving it back, for the journal."""
    if facts.task.take:
        return "its taker died"
    if not facts.expired(now) and dead(store, facts):
        return "its process has ended"
    return f"silent for {facts.age(now):.0f} s, ttl {facts.ttl:g} s"
