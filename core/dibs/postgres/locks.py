"""Locks: tasks without work, which are free or held, and whose rows are made on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model import names, refusals
from dibs.model.answers import LockStatus
from dibs.model.errors import BadName, DibsError, Exists, Held, Lost, Unclaimable
from dibs.model.names import escape
from dibs.model.slots import (
    SEPARATOR,
    check_slots,
    is_named,
    refuse_slot,
    slot_id,
    split,
)
from dibs.model.task import HELD, Task
from dibs.postgres import producing, reading, reaping
from dibs.postgres.claims import PostgresClaim, attach, take

if TYPE_CHECKING:
    from dibs.host import Terms
    from dibs.model.holder import Holder
    from dibs.postgres.reaping import Suspect
    from dibs.postgres.sessions import Session


def acquire(session: Session, name: str, slots: int, terms: Terms, lease: str) -> PostgresClaim:
    """Get any slot of a lock, or raise `Held` if each of them has a holder.

    A holder that gives its lease's name, or is the recorded process, renews its lease instead.
    """
    refuse_slot(name)
    escape(slot_id(name, check_slots(slots)))  # the longest of them
    session.refuse_read_only()
    if lease:
        return _again(session, name, terms, lease)
    leases = _leases(session, name, slots)
    for found in leases.values():
        if (mine := _own_lease(session, found, terms)) is not None:
            return mine
    held: list[Held] = []
    unusable: list[DibsError] = []
    start = int(session.nonce(), 16) % slots
    numbers = [1 + (start + n) % slots for n in range(slots)]
    try:
        for number in sorted(numbers, key=lambda number: number in leases):
            try:
                return _get(session, slot_id(name, number), terms)
            except Held as error:
                held.append(error)
            except (BadName, Exists, Unclaimable) as error:
                unusable.append(error)
        if not held:
            raise unusable[0]
        raise refusals.all_held(name, slots, min(held, key=lambda error: error.retry))
    finally:  # an error that refers to itself would keep the connection until it is collected
        held.clear()
        unusable.clear()


def resume(session: Session, ident: str, terms: Terms, exact: str = "") -> PostgresClaim:
    """Claim one's own claim or lock again after a restart; the higher fence revokes the old claim.

    By owner text only if the old claim is expired or dead; by its exact name always. Where no ttl
    and no metadata are given, the old ones stay.
    """
    session.refuse_read_only()
    now = session.now()
    if exact:
        claim = attach(session, exact)
        old, record = claim.task, claim.record
        if ident and not is_named(old, ident):
            raise refusals.other_id(exact, ident)
        owner = record.owner or old.owner
        here = reading.holder(session, old) is not None
        if terms.named_owner not in (None, owner) and owner != record.host and here:
            raise refusals.claim_keeps_owner(old.stem, owner)
        terms.keep_owner(terms.named_owner or owner)
    else:
        holders = list(reading.holders(session).values())
        old = (_own_of(holders, ident, terms) if ident else _only_of(holders, terms)).task
        found = reaping.suspect(session, old)
        if found is not None and reaping.patience(session, found, now) > 0:
            raise held_by(session, found, refusals.resume_by_name(old))
        record = attach(session, old.name).record
    terms.keep(record)
    taken = take(session, old, terms, "resume", own=True)
    if taken is None:
        why = "another worker took it, or the answer was lost"
        raise reading.changed(session, old.name, old.id, why)
    return taken


def _own_of(holders: list[Holder], ident: str, terms: Terms) -> Holder:
    """The owner's claim of that id."""
    escape(ident)
    named = [found for found in holders if is_named(found.task, ident)]
    mine = [found for found in named if found.owner == terms.owner]
    if not mine:
        raise refusals.no_own_claim(terms.owner, ident, [found.task for found in named])
    if len(mine) > 1:
        raise refusals.many_slots(terms.owner, len(mine), ident)
    return mine[0]


def _only_of(holders: list[Holder], terms: Terms) -> Holder:
    """The only claim of the named owner, for a call without an id or a name."""
    if terms.named_owner is None:
        raise refusals.nothing_named()
    mine = [found for found in holders if found.owner == terms.owner]
    if len(mine) != 1:
        raise refusals.not_one_claim(terms.owner, len(mine))
    return mine[0]


def status(session: Session, name: str) -> LockStatus:
    """The state of a lock, with each of its slots if it has been used with several."""
    first = _status(session, name)
    if split(name)[1] > 1:
        return first
    begin = f"{escape(name)}{escape(SEPARATOR)}"
    rows = session.rows(
        "SELECT name FROM dibs.task WHERE state IN ('free', 'held') AND eid >= %s AND eid < %s",
        (begin, f"{begin}:"),
    )
    others = [t for t in reading.tasks_of(n for (n,) in rows) if split(t.id)[0] == name]
    numbers = sorted({split(task.id)[1] for task in others})
    each = [_status(session, slot_id(name, n))._replace(slot=n) for n in numbers]
    return first._replace(slots=(first, *each)) if each else first


def _status(session: Session, ident: str) -> LockStatus:
    found = reading.find(session, ident)
    if not found:
        return LockStatus(None, held=False)
    (task,) = found
    if task.kind == "task":
        raise refusals.is_task(ident)
    now = session.now()
    holder = reading.holder(session, task) if task.state == HELD else None
    if holder is None:
        return LockStatus(task, held=False)
    age = holder.age(now)
    left = max(0.0, holder.ttl - age)
    about = holder.owner, holder.host, holder.metadata
    return LockStatus(task, True, *about, age, holder.ttl, left)


def _get(session: Session, ident: str, terms: Terms) -> PostgresClaim:
    """Get the lock with that id, which may be a slot, or raise `Held` with its holder."""
    while True:
        found = reading.find(session, ident)
        if not found:
            folder = names.free_folder(ident)
            made = producing.publish(session, ident, b"", folder=folder, by=terms.owner)
            if made is None and not reading.find(session, ident):
                raise refusals.was_purged(ident)
            continue
        (task,) = found
        if task.kind == "task":
            raise refusals.is_task(ident)
        if task.state == HELD:
            _take_over(session, task)
            continue
        claim = take(session, task, terms, lock=True)
        if claim is not None:
            return claim


def _leases(session: Session, name: str, slots: int) -> dict[int, Holder]:
    """The slots that are held, by number."""
    eids = [escape(slot_id(name, number)) for number in range(1, slots + 1)]
    rows = session.rows(
        f"SELECT {reading.HOLDER} FROM dibs.claim c WHERE c.eid = ANY (%s)", (eids,)
    )
    holders = (reading.holder_of(session, row) for row in rows)
    return {
        split(found.task.id)[1]: found
        for found in holders
        if found is not None and found.task.state == HELD
    }


def _own_lease(session: Session, found: Holder, terms: Terms) -> PostgresClaim | None:
    """The lock as the caller's own lease, if the recorded process is the caller and it is live."""
    if found.process is None or not found.process.boot or found.process != terms.process:
        return None  # without a boot id, a process of another machine may look the same
    if terms.named_owner not in (None, found.owner):
        return None
    claim = attach(session, found.task.name)
    try:
        _renew(claim, terms)
    except Lost:
        return None
    return claim


def _again(session: Session, ident: str, terms: Terms, lease: str) -> PostgresClaim:
    claim = attach(session, lease)
    ours = is_named(claim.task, ident)
    if not ours or claim.task.state != HELD:
        if ours:
            claim.verify()  # raises for a lease that has ended
        raise refusals.not_a_lease(lease, ident)
    record = claim.record
    if terms.named_owner not in (None, record.owner):
        raise refusals.lease_keeps_owner(lease, record.owner)
    if terms.process not in (None, record.process):
        raise refusals.lease_keeps_process(lease)
    _renew(claim, terms)
    return claim


def _renew(claim: PostgresClaim, terms: Terms) -> None:
    """Confirm it, with the ttl and the metadata that were given."""
    claim.confirm(ttl=terms.named_ttl, metadata=terms.metadata or None)


def _take_over(session: Session, task: Task) -> None:
    """Reap an expired lock so that it can be acquired; raise `Held` for a live one."""
    now = session.now()
    found = reaping.suspect(session, task)
    if found is None:
        return
    if reaping.patience(session, found, now) > 0:
        raise held_by(session, found)
    reaping.reap_one(session, found.holder, now)


def held_by(session: Session, suspect: Suspect, hint: str = "") -> Held:
    """The error for everyone but the holder: the remaining time, and when to ask again."""
    now, found = session.now(), suspect.holder
    reaping.doubt(session, [suspect], now)
    remaining = max(0.0, found.ttl - found.age(now))
    wait = reaping.patience(session, suspect, now)
    return refusals.held(found.task, found.owner, remaining, found.metadata, wait, hint)
