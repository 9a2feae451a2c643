"""Locks: the same renames with other state words, for tasks that are not files.

A free lock is in `.dibs/free`, with its fence in its name. So names that were used once do not slow
down a listing of the board, even if there are a hundred thousand of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.files import janitor, lives
from dibs.files.board_files import KNOWN, RECORDS
from dibs.files.claims import FilesClaim, attach, take
from dibs.files.facts import facts_of, record_of, session_of
from dibs.files.pause_look import refuse_while_paused
from dibs.model import names, refusals
from dibs.model.answers import LockStatus
from dibs.model.errors import BadName, Exists, Held, Lost
from dibs.model.records import Record
from dibs.model.safe_text import command
from dibs.model.sample import SECOND
from dibs.model.slots import is_named, refuse_slot
from dibs.model.task import AVAILABLE, DEFAULT_PRIORITY, FREE, HELD, Task, describe

if TYPE_CHECKING:
    from collections.abc import Collection

    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.host import Terms

_LOOKS = 3


def acquire(store: BoardFiles, ident: str, terms: Terms, lease: str = "") -> FilesClaim:
    """Get the lock, or raise `Held` with its holder.

    A holder that gives its lease's name, or is the recorded process, renews its lease instead. It
    gets the ttl and metadata of this call.
    """
    refuse_slot(ident)
    names.escape(ident)
    store.ready()
    if lease:
        return _again(store, ident, terms, lease)
    return get(store, ident, terms)


def get(store: BoardFiles, ident: str, terms: Terms) -> FilesClaim:
    """Get the lock with that id, which may be a slot, or raise `Held` with its holder."""
    start = store.port.boottime()
    lost: set[str] = set()
    while True:
        store.hesitate(ident, start)
        task = _find(store, ident, lost) or _publish(store, ident, terms.owner)
        if task is None:
            continue
        if task.state == HELD:
            mine = own_lease(store, task, terms)
            if mine is not None:
                return mine
            _take_over(store, task)
            continue
        if start >= store.pause_look_at:
            store.pause_look_at = start + SECOND
            refuse_while_paused(store, lock=True)
        claim = take(store, task, terms)
        if claim is not None:
            return claim
        lost.add(task.name)


def resume(store: BoardFiles, ident: str, terms: Terms, exact: str = "") -> FilesClaim:
    """Claim one's own claim or lock again after a restart; the higher fence revokes the old claim.

    By owner text only if the old claim is expired or dead; by its exact name always. Where no ttl
    and no metadata are given, the old ones stay.
    """
    store.ready()
    now = store.clock.now()
    if exact:
        old = attach(store, exact).task
        if ident and not is_named(old, ident):
            raise refusals.other_id(exact, ident)
        terms.keep_owner(_kept_owner(store, old, terms))
    else:
        old = _own_of(store, ident, terms) if ident else _only_of(store, terms)
        facts = facts_of(store, old)
        if facts is not None and janitor.patience(store, facts, now) > 0:
            raise held_by(store, facts, refusals.resume_by_name(old))
    before = record_of(store, old.stem)[0]
    terms.keep(before or Record())
    claim = take(store, old, terms, "resume", session=session_of(before))
    if claim is None:
        raise store.changed(
            old.name, old.id, "another worker took it, or the disk's answer was lost"
        )
    store.drop(f"{RECORDS}/{old.stem}")
    store.take_note(old)
    return claim


def _kept_owner(store: BoardFiles, old: Task, terms: Terms) -> str:
    """The owner that a claim keeps when it is resumed by its exact name.

    The name is the credential, so another owner's text beside it is a mistake. A claim without an
    owner has its host's name instead, and takes the owner that is given now.
    """
    record = record_of(store, old.stem)[0]
    owner = record.owner if record and record.owner else old.owner
    if record is None and terms.folded == owner:
        return terms.owner  # its claimant died before it wrote more than the name
    unnamed = record is not None and owner == record.host
    if terms.named_owner not in (None, owner) and not unnamed and store.look(old.name):
        raise refusals.claim_keeps_owner(old.stem, owner)
    return terms.named_owner or owner


def _own_of(store: BoardFiles, ident: str, terms: Terms) -> Task:
    """The owner's claim of that id."""
    named = store.confirmed(t for t in store.live() if is_named(t, ident))
    held = [t for t in named if t.claim and not t.is_takeover]
    mine = [t for t in held if _owner(store, t) == terms.owner]
    if not mine:
        raise refusals.no_own_claim(terms.owner, ident, held)
    if len({task.id for task in mine}) > 1:
        raise refusals.many_slots(terms.owner, len(mine), ident)
    return only(ident, mine)


def _only_of(store: BoardFiles, terms: Terms) -> Task:
    """The only claim of the named owner, for a call without an id or a name."""
    if terms.named_owner is None:
        raise refusals.nothing_named()
    alike = [t for t in store.live() if t.claim and not t.is_takeover and t.owner == terms.folded]
    mine = [t for t in alike if _owner(store, t) == terms.owner]
    if len(mine) != 1:
        raise refusals.not_one_claim(terms.owner, len(mine))
    return mine[0]


def status(store: BoardFiles, ident: str) -> LockStatus:
    """The holder of a lock and its remaining time; an unknown name is free."""
    task = _find(store, ident) or _elsewhere(store, ident)
    if task is None:
        return LockStatus(None, held=False)
    facts = facts_of(store, task) if task.state == HELD else None
    if facts is None:
        return LockStatus(task, held=False)
    age = facts.age(store.clock.now_or_newest(facts.beat)[0])
    record = facts.record or Record(owner=task.owner)
    left = max(0.0, facts.ttl - age)
    return LockStatus(task, True, facts.owner, record.host, record.metadata, age, facts.ttl, left)


def _elsewhere(store: BoardFiles, ident: str) -> Task | None:
    """A lock in an unusual place; None if the name was never used or is free again.

    Raises if it is a task's id, whatever the state of the task.
    """
    for _ in range(_LOOKS):  # a listing misses what is being renamed
        found = list(store.find(ident))
        if found and found[0].kind == "task":
            raise refusals.is_task(ident)
        if found:
            return only(ident, found)
        life = lives.latest_life(store, ident)
        if life is None or lives.ended_life(store, ident, life.number) is not None:
            return None
        if store.look(lives.draft_name(ident, FREE, life.nonce)):
            return None
        if store.look(lives.draft_name(ident, AVAILABLE, life.nonce)):
            raise refusals.is_task(ident)
    raise _gone(store, ident)


def only(ident: str, found: list[Task]) -> Task:
    """The only name of an id; raises if there are two, which a person has to sort out."""
    if len(found) > 1:
        raise Exists(
            f"{ident!r} has two names, so no worker can claim it: keep one; {describe(found)}"
        )
    return found[0]


def held_by(store: BoardFiles, facts: Facts, hint: str = "") -> Held:
    """The error for everyone but the holder: the remaining time, and when to ask again."""
    now = store.clock.now_or_newest(facts.beat)[0]
    remaining = max(0.0, facts.ttl - facts.age(now))
    wait = janitor.patience(store, facts, now)
    store.clock.settle()  # the next call may come from a new process
    metadata = facts.record.metadata if facts.record else ""
    return refusals.held(facts.task, facts.owner, remaining, metadata, wait, hint)


def _gone(store: BoardFiles, ident: str) -> BadName | Exists:
    """The error for an id that is in `known/` but not on the board."""
    from dibs.files.forgetting import purged

    if purged(store, ident):
        return refusals.was_purged(ident)
    return Exists(
        f"{ident!r} was used here and has vanished: free it with `{command('forget', ident)}`"
    )


def _again(store: BoardFiles, ident: str, terms: Terms, lease: str) -> FilesClaim:
    claim = attach(store, lease)
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


def _renew(claim: FilesClaim, terms: Terms) -> None:
    """Confirm it, with the ttl and the metadata that were given."""
    claim.confirm(ttl=terms.named_ttl, metadata=terms.metadata or None)


def _find(store: BoardFiles, ident: str, lost: Collection[str] = ()) -> Task | None:
    """The lock in one of its usual places: free, or held with its record.

    The board's own directory is not listed, so None does not mean that there is no lock. A free
    name that was lost in a race never returns, even if some client still lists it.

    A free name beside a holder is a copy, so the holder is looked for first. If the holder left in
    between, its own free name is in the listing too, and a copy shows up as a second name.
    """
    store.check_folder(names.free_folder(ident))
    begin = f"{names.escape(ident)}."
    stems = [stem for stem in store.ended(RECORDS) if stem.startswith(begin)]
    held = [task for stem in stems if (task := names.read(f"{stem}.{HELD}")) is not None]
    held = [task for task in held if task.id == ident and store.look(task.name)]
    if held:
        return only(ident, held)
    free = [task for task in store.free(ident) if task.name not in lost]
    if len(free) > 1:  # a listing may show both names of a rename
        free = list(store.confirmed(free))
    return only(ident, free) if free else None


def _publish(store: BoardFiles, ident: str, by: str) -> Task | None:
    """Make the name, or find an existing one; None if the caller has to look again.

    All processes that try at once make the same name, and `known/` decides which adder wins. If
    the winner died before it published, another process publishes for it: its nonce in `known/`
    makes that safe. If `known/` was restored from an older copy, a name on the board counts.
    """
    life = lives.latest_life(store, ident)
    if life is None and (here := store.find(ident)):
        if here[0].kind == "task":
            raise refusals.is_task(ident)
        return only(ident, list(here))
    try:
        return lives.add(store, ident, b"", DEFAULT_PRIORITY, FREE, by=by)
    except Exists:
        pass
    life = lives.latest_life(store, ident)
    if life is None:
        raise Exists(f"{KNOWN} has no valid entry for {ident!r}: `dibs check` shows why")
    draft = lives.draft_name(ident, FREE, life.nonce)
    if store.look(draft):
        lives.publish(store, draft, names.unclaimed_name(ident, life.stamp, FREE))
        return None
    from dibs.files.scans import search  # rare: a name that is not in a usual place

    found = search(store, [ident], quiet=1)[ident]
    if not found:
        raise _gone(store, ident)
    if found[0].kind == "task":
        raise refusals.is_task(ident)
    return only(ident, list(found))


def own_lease(store: BoardFiles, task: Task, terms: Terms) -> FilesClaim | None:
    """The lock as the caller's own lease, if the recorded process is the caller and it is live."""
    record = record_of(store, task.stem)[0]
    if record is None or record.process is None or not record.process.boot:
        return None  # without a boot id, a process of another machine may look the same
    if record.process != terms.process or terms.named_owner not in (None, record.owner):
        return None
    claim = FilesClaim(store, task, record)
    try:
        _renew(claim, terms)
    except Lost:
        return None
    return claim


def _take_over(store: BoardFiles, task: Task) -> None:
    """Reap an expired lock so that it can be acquired; raise `Held` for a live one."""
    now = store.clock.now()
    facts = facts_of(store, task)
    if facts is None:
        return
    if janitor.patience(store, facts, now) > 0:
        raise held_by(store, facts)
    store.clock.settle()
    janitor.reap_one(store, facts, now)


def _owner(store: BoardFiles, task: Task) -> str:
    record = record_of(store, task.stem)[0]
    return record.owner if record and record.owner else task.owner
