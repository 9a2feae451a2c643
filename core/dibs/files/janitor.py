"""Requeue claims whose holder is dead or stale. Any process may do it, any number at once."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.files import moves
from dibs.files.claims import next_after_failure
from dibs.files.clock import LOOKS
from dibs.files.facts import facts_of, session_of
from dibs.model import names
from dibs.model.answers import Reaped
from dibs.model.errors import DibsError
from dibs.model.lazy import LazyModule
from dibs.model.task import AVAILABLE, Task

if TYPE_CHECKING:
    from dibs.files import delays, shell_claims
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model import events
    from dibs.model.sample import Sample
else:
    delays, shell_claims = map(LazyModule, ("dibs.files.delays", "dibs.files.shell_claims"))
    events = LazyModule("dibs.model.events")


def reap(store: BoardFiles, ident: str | None = None) -> Reaped:
    """Reap every claim, or those of one id, whose holder is dead or stale.

    Without an id, due tasks become available and the payloads of interrupted adds are published.
    """
    store.ready()
    if ident is None:
        from dibs.files import lives  # a worker that reaps one claim does not need it

        lives.complete_all(store)
    now = store.clock.now()
    if ident is None:
        from dibs.files import presence  # no claim needs it

        presence.clear(store, lambda: now)
        listed = store.listing()
        reaped = reap_all(store, names.live(listed), now)
        made = delays.make_due(store, listed)
        from dibs.files import outputs  # no worker's verb needs it

        with suppress(DibsError):
            outputs.sweep(store, now)
        refused = reaped.refused + made.refused
        return Reaped(reaped.tasks, reaped.retry, refused, *made[:2], reaped.unproven)
    alike = store.find(ident, ended=False)
    return reap_each(store, [task for task in alike if task.live], now)


def reap_all(store: BoardFiles, live: list[Task], now: Sample) -> Reaped:
    """The same for the claims of a complete listing."""
    reaped = reap_each(store, live, now)
    with suppress(DibsError):  # the claims are reaped; what could not be removed does no harm
        if entries := store.ended(LOOKS):
            sweep(store, entries, {task.stem for task in live})
        if store.keeps_notes():
            from dibs.files import notes

            notes.sweep(store, {task.stem for task in live})
    return reaped


def reap_each(store: BoardFiles, live: Iterable[Task], now: Sample) -> Reaped:
    """The same for these claims; `now` was read before them."""
    given: list[Task] = []
    waits: list[float] = []
    refused: list[str] = []
    for task in live:
        try:
            facts = facts_of(store, task)
            if facts is None:
                continue
            wait = patience(store, facts, now)
            if wait > 0:
                waits += [wait] if facts.expired(now) else []
                continue
            ended = reap_one(store, facts, now)
            given += [ended] if ended is not None else []
        except DibsError as error:
            refused.append(f"{task.name}: {error}")
    store.clock.settle()
    retry = min(waits, default=None)
    return Reaped(tuple(given), retry, tuple(refused), unproven=len(waits))


def patience(store: BoardFiles, facts: Facts, now: Sample) -> float:
    """Seconds until this claim should be checked again; 0 if its holder is dead or stale."""
    if dead(store, facts):
        return 0.0
    return store.clock.patience(
        facts.task.stem, facts.beat, facts.pulse, facts.ttl, now, latest=facts.latest
    )


def dead(store: BoardFiles, facts: Facts) -> bool:
    """Whether the process that holds the claim is known to have exited."""
    record = facts.record
    if record is None or record.process is None or not store.settings.reap_dead:
        return False
    return store.host.gone(record.process) is True


def reap_one(
    store: BoardFiles,
    facts: Facts,
    now: Sample,
    *,
    by: str = "",
    why: str = "",
    asked: bool = False,
    bulk: str = "",
) -> Task | None:
    """Reap exactly the claim that was judged; None if it no longer exists.

    `asked`: an operator asked for it. The journal notes that, because only operators' acts can be
    undone.
    """
    task = facts.task
    found = (events.BY_OPERATOR if asked else "") + _found(store, facts, now)
    ended = _requeue(store, facts, by, found + (f"; {why}" if why else ""), bulk)
    if ended is not None:
        store.drop(f"{LOOKS}/{task.stem}")
    return ended


def _requeue(store: BoardFiles, facts: Facts, by: str, reason: str, bulk: str) -> Task | None:
    task = facts.task
    if task.is_shell_claim:
        return shell_claims.requeue(store, facts, "reap", reason, by=by, bulk=bulk)
    if task.is_takeover:
        snapshot = facts.record.shell_snapshot if facts.record else None
        ended = shell_claims.finish(store, task, snapshot, by=by)
        if ended is not None and ended.state == AVAILABLE:
            store.journal.write("reap", task.id, task.name, ended.name, by, reason, bulk=bulk)
        return ended
    dst = next_after_failure(store, task, since=facts.beat)
    session = session_of(facts.record)
    return moves.shift(store, task, dst, "reap", by, reason, bulk=bulk, session=session)


def _found(store: BoardFiles, facts: Facts, now: Sample) -> str:
    """Why the claim is reaped, for the journal."""
    if facts.task.is_takeover:
        return "the process that took it over has died"
    if not facts.expired(now) and dead(store, facts):
        return "its process has exited"
    from dibs.model.reasons import expired  # a claim that reaps nothing does not need it

    return expired(facts.age(now), facts.ttl, facts.holder.host)


def sweep(store: BoardFiles, entries: Iterable[str], live: set[str]) -> None:
    """Remove looks at claims that are gone; `live` are the stems of the existing ones."""
    for entry in entries:
        if entry in live:
            continue
        if entry.startswith("+"):
            folder, _, name = entry[1:].partition("+")
            if store.look(name if folder == "lock" else f".dibs/{folder}/{name}") is not False:
                continue
        store.drop(f"{LOOKS}/{entry}")
