"""Named leases: the same renames under other state words, for agents whose tasks are no files.

A lock that nobody holds lies below `.dibs/free`, its fence in its name: where a hundred thousand
names were used once, none of them is in the way of a listing of the board.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs import adding, janitor, names
from dibs.claims import Claim, Terms, attach, take
from dibs.errors import BadName, Changed, Exists, Held, Lost
from dibs.facts import facts_of, record_of
from dibs.names import AVAILABLE, FREE, HELD, Task
from dibs.records import Record
from dibs.store import KNOWN, RECORDS, tell

if TYPE_CHECKING:
    from collections.abc import Collection

    from dibs.facts import Facts
    from dibs.store import Store


_LOOKS = 3


class Status(NamedTuple):
    """What a lock is right now."""

    task: Task | None
    """None for a name that nobody ever acquired, which is as free as any."""
    held: bool
    owner: str = ""
    host: str = ""
    metadata: str = ""
    age: float = 0.0
    ttl: float = 0.0
    remaining: float = 0.0
    """Seconds left of the lease; 0 once it has expired, whoever may still believe in it."""

    @property
    def expired(self) -> bool:
        """Whether the lease is over: the next `acquire` takes it, once the expiry is proved."""
        return self.held and self.age > self.ttl


def acquire(store: Store, ident: str, terms: Terms, lease: str = "") -> Claim:
    """Get the lock, or raise `Held` with its holder.

    The same lease again, by its name or as the very process that holds it, lasts longer, with the
    ttl and the metadata that are given this time.
    """
    names.escape(ident)
    store.ready()
    if lease:
        return _again(store, ident, terms, lease)
    start = store.port.boottime()
    lost: set[str] = set()
    while True:
        store.hesitate(ident, start)
        task = _find(store, ident, lost) or _publish(store, ident)
        if task is None:
            continue
        if task.state == HELD:
            mine = _own(store, task, terms)
            if mine is not None:
                return mine
            _take_over(store, task)
            continue
        claim = take(store, task, terms)
        if claim is not None:
            return claim
        lost.add(task.name)


def resume(store: Store, ident: str, terms: Terms, exact: str = "") -> Claim:
    """Take one's own claim or lock anew after a restart: a higher fence voids the old self.

    By owner text alone only when the old self is expired or dead; with its exact name, always.
    The ttl and the metadata stay what they were where none are given.
    """
    store.ready()
    now = store.clock.now()
    if exact:
        old = attach(store, exact).task
        if ident and old.id != ident:
            raise BadName(f"{exact} is not a claim of {ident!a}")
        terms.keep_owner(_kept_owner(store, old, terms))
    else:
        old = _own_of(store, ident, terms) if ident else _only_of(store, terms)
        facts = facts_of(store, old)
        if facts is not None and janitor.patience(store, facts, now) > 0:
            raise held_by(store, facts, f", or resume with its exact name {old.stem}")
    terms.keep(record_of(store, old.stem)[0] or Record())
    claim = take(store, old, terms, "resume")
    if claim is None:
        raise store.changed(old.name, old.id, "somebody took it meanwhile, or the answer was lost")
    store.drop(f"{RECORDS}/{old.stem}")
    return claim


def _kept_owner(store: Store, old: Task, terms: Terms) -> str:
    """The owner that a claim stays with, when it is resumed by its exact name.

    The name is the credential; another owner's text beside it is a mistake. A claim that was made
    without an owner has its host's name instead, and takes the one that is given now.
    """
    record = record_of(store, old.stem)[0]
    owner = record.owner if record and record.owner else old.owner
    unnamed = record is not None and owner == record.host
    if terms.named_owner not in (None, owner) and not unnamed and store.look(old.name):
        raise BadName(
            f"{old.stem} stays with {owner!a}: leave the owner out, or force-release the claim"
        )
    return terms.named_owner or owner


def _own_of(store: Store, ident: str, terms: Terms) -> Task:
    """The owner's claim of that id."""
    held = [t for t in store.find(ident, ended=False) if t.live and t.claim and not t.take]
    mine = [t for t in held if _owner(store, t) == terms.owner]
    if not mine:
        raise Changed(
            f"{terms.owner!a} holds no claim of {ident!a}: claim it; {tell(held)}",
            ident,
            tuple(held),
        )
    return only(ident, mine)


def _only_of(store: Store, terms: Terms) -> Task:
    """The one claim that the named owner holds; neither an id nor a name was given."""
    listed = "`dibs ls owner=O` lists what O holds: give its id or its name"
    if terms.named_owner is None:
        raise BadName(f"whose is it? {listed}")
    alike = [t for t in store.live() if t.claim and not t.take and t.owner == terms.folded]
    mine = [t for t in alike if _owner(store, t) == terms.owner]
    if len(mine) != 1:
        raise BadName(f"{terms.owner!a} holds {len(mine)} claims here, not one: {listed}")
    return mine[0]


def status(store: Store, ident: str) -> Status:
    """Who holds a lock and for how long; an unknown name is free."""
    task = _find(store, ident) or _elsewhere(store, ident)
    if task is None:
        return Status(None, held=False)
    facts = facts_of(store, task) if task.state == HELD else None
    if facts is None:
        return Status(task, held=False)
    age = facts.age(store.clock.now_or_newest(facts.beat)[0])
    record = facts.record or Record(owner=task.owner)
    left = max(0.0, facts.ttl - age)
    return Status(task, True, facts.owner, record.host, record.metadata, age, facts.ttl, left)


def _elsewhere(store: Store, ident: str) -> Task | None:
    """A lock that is not where it should be; None where the name was never used, or is free again.

    A task's id is refused, whatever became of the task.
    """
    for _ in range(_LOOKS):  # a listing misses what is renamed meanwhile
        found = list(store.find(ident))
        if found and found[0].kind == "task":
            raise _no_lock(ident)
        if found:
            return only(ident, found)
        life = adding.latest_life(store, ident)
        if life is None or adding.ended_life(store, ident, life.number) is not None:
            return None
        if store.look(adding.draft_name(ident, FREE, life.nonce)):
            return None
        if store.look(adding.draft_name(ident, AVAILABLE, life.nonce)):
            raise _no_lock(ident)
    raise _gone(store, ident)


def only(ident: str, found: list[Task]) -> Task:
    """The one name of an id; two names are a person's to sort out."""
    if len(found) > 1:
        raise Exists(f"{ident!a} has two names, so nobody may take it: {tell(found)}")
    return found[0]


def held_by(store: Store, facts: Facts, hint: str = "") -> Held:
    """The answer to everybody but the holder: how long it has left, and when to ask again."""
    task, record = facts.task, facts.record or Record()
    now = store.clock.now_or_newest(facts.beat)[0]
    remaining = max(0.0, facts.ttl - facts.age(now))
    wait = janitor.patience(store, facts, now)
    store.clock.settle()  # whoever asks again may be a new process
    until = f"for {remaining:.0f} s more unless it beats; try again then"
    if not remaining:
        doubt = "nobody can vouch for the clock yet: " if wait else ""
        until = f"past its ttl; {doubt}try again in {max(1.0, wait):.0f} s"
    text = f"{task.id!a} is held by {facts.owner!a} {until}{hint}"
    return Held(text, task, facts.owner, remaining, record.metadata, wait)


def _no_lock(ident: str) -> BadName:
    return BadName(
        f"{ident!a} is a task on this board: `dibs show` tells of it; a lock needs another name"
    )


def _gone(store: Store, ident: str) -> BadName | Exists:
    """Why nothing can be done with a known name that is not on the board."""
    from dibs.forgetting import purged

    if purged(store, ident):
        return BadName(
            f"{ident!a} is the id of a task that was purged: `dibs forget` frees it, "
            "or give the lock another name"
        )
    return Exists(f"{ident!a} was known here and has vanished: `dibs forget` frees the name")


def _again(store: Store, ident: str, terms: Terms, lease: str) -> Claim:
    claim = attach(store, lease)
    if claim.id != ident or claim.task.state != HELD:
        if claim.id == ident:
            claim.verify()  # one that ended says that it is no longer yours
        raise Lost(f"{lease} is no lease of {ident!a}; stop", lease)
    record = claim.record
    if terms.named_owner not in (None, record.owner):
        raise BadName(f"{lease} stays with {record.owner!a}: leave the owner out, or resume it")
    if terms.process not in (None, record.process):
        raise BadName(f"{lease} keeps the process it has: leave the process out, or resume it")
    _renew(claim, terms)
    return claim


def _renew(claim: Claim, terms: Terms) -> None:
    """Beat, with another ttl or text from now on where one was given."""
    claim.beat(ttl=terms.named_ttl, metadata=terms.metadata or None)


def _find(store: Store, ident: str, lost: Collection[str] = ()) -> Task | None:
    """The lock where it is most of the time: free, or held with its record.

    The board itself is not listed, so None does not say that there is none. A free name that was
    lost never returns, though a listing that some client remembers may still show it.

    A free name beside a holder is a copy, so the holder is looked for first. The free names are
    listed after it has left: then its own name is among them, and a copy shows as a double.
    """
    store.check_folder(names.free_folder(ident))
    begin = f"{names.escape(ident)}."
    stems = [stem for stem in store.ended(RECORDS) if stem.startswith(begin)]
    held = [task for stem in stems if (task := names.read(f"{stem}.{HELD}")) is not None]
    held = [task for task in held if task.id == ident and store.look(task.name)]
    if held:
        return only(ident, held)
    free = [task for task in store.free(ident) if task.name not in lost]
    if len(free) > 1:  # the listing doubles what goes round meanwhile
        free = list(store.confirmed(free))
    return only(ident, free) if free else None


def _publish(store: Store, ident: str) -> Task | None:
    """Make the name, or find that it is there; None where a look again is needed.

    Everybody who tries at once makes the same one, and one adder wins: `known/` decides, no
    listing. A winner that died before it published is helped: its nonce there makes it safe.
    A name that is on the board counts where `known/` was restored from an older copy.
    """
    life = adding.latest_life(store, ident)
    if life is None and (here := store.find(ident)):
        if here[0].kind == "task":
            raise _no_lock(ident)
        return only(ident, list(here))
    try:
        return adding.add(store, ident, b"", names.DEFAULT_PRIORITY, FREE)
    except Exists:
        pass
    life = adding.latest_life(store, ident)
    if life is None:
        raise Exists(f"{KNOWN} holds no sound entry for {ident!a}; `dibs check` tells more")
    draft = adding.draft_name(ident, FREE, life.nonce)
    if store.look(draft):
        adding.publish(store, draft, names.waiting_name(ident, life.stamp, FREE))
        return None
    from dibs.scans import search  # only for a name that is not where a lock should be

    found = search(store, [ident], quiet=1)[ident]
    if not found:
        raise _gone(store, ident)
    if found[0].kind == "task":
        raise _no_lock(ident)
    return only(ident, list(found))


def _own(store: Store, task: Task, terms: Terms) -> Claim | None:
    """The lock as the calling process's own lease, if the very process holds it and it runs."""
    record = record_of(store, task.stem)[0]
    if record is None or record.process is None or not record.process.boot:
        return None  # without a boot id a process of another machine looks the same
    if record.process != terms.process or terms.named_owner not in (None, record.owner):
        return None
    claim = Claim(store, task, record)
    try:
        _renew(claim, terms)
    except Lost:
        return None
    return claim


def _take_over(store: Store, task: Task) -> None:
    """Give an expired lock back so that it can be taken; raise `Held` for a live one."""
    now = store.clock.now()
    facts = facts_of(store, task)
    if facts is None:
        return
    if janitor.patience(store, facts, now) > 0:
        raise held_by(store, facts)
    store.clock.settle()
    janitor.give_back(store, facts, now)


def _owner(store: Store, task: Task) -> str:
    record = record_of(store, task.stem)[0]
    return record.owner if record and record.owner else task.owner
