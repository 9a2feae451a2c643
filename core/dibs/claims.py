"""A claim in its owner's hands: take it, beat, verify, and end it one of three ways."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs import names
from dibs.adding import adopt
from dibs.clock import SECOND
from dibs.errors import (
    BadName,
    BoardMissing,
    Exists,
    Lost,
    NotExact,
    Stop,
    StorageError,
    Uncertain,
    Unclaimable,
    short,
    storage_error,
)
from dibs.facts import facts_of, record_of
from dibs.names import AVAILABLE, CLAIMED, DONE, FAILED, FREE, HELD, Task
from dibs.records import Record, encode
from dibs.settings import check_ttl
from dibs.store import DEFINITE, PATIENCE, RECORDS, Store, tell

if TYPE_CHECKING:
    from dibs.host import Process

HELD_BY = {AVAILABLE: CLAIMED, FREE: HELD, CLAIMED: CLAIMED, HELD: HELD}
MARGIN = 0.8
"""The part of a ttl after which an owner that could not beat has stopped."""


FENCE_FULL = "its fence is as high as a name can hold: use another id"
STAYS = "it cannot be renamed; `dibs check` shows why, if the disk says it"
STUCK = {errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP}
"""How a rename is refused for the sake of the one file that it names."""


class Terms:
    """On what terms somebody claims: who, for how long, and what operators are shown."""

    def __init__(
        self,
        store: Store,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str | None = "",
        process: Process | int | None = None,
    ) -> None:
        self.named_owner, self.named_ttl, self.named_metadata = owner, ttl, metadata
        """What was asked for; None where the host's name and the board's ttl stand in."""
        self.owner = owner if owner is not None else store.host.name
        self.folded = names.fold_owner(self.owner)
        self.ttl = check_ttl(ttl) if ttl is not None else store.settings.ttl
        self.metadata = names.check_metadata("" if metadata is None else metadata)
        self.process = store.host.holder(process) if process is not None else None

    def keep_owner(self, owner: str) -> None:
        """Claim as the owner of before; a folded one stays the same when folded again."""
        self.owner, self.folded = owner, names.fold_owner(owner)

    def keep(self, record: Record) -> None:
        """Claim for the ttl and with the metadata of before, where none is given this time."""
        if self.named_ttl is None and record.ttl is not None:
            self.ttl = record.ttl
        if self.named_metadata is None:
            self.metadata = record.metadata

    def record(self, store: Store) -> Record:
        """What the claim's record will say."""
        return Record(
            self.owner,
            store.host.name,
            self.ttl,
            store.clock.about(),
            self.metadata,
            self.process,
        )


class Away(Uncertain):
    """The claim's name was not there, but the whole board was away: try again while time is."""


class Claim:
    """One claim: a task or lock that is the holder's until it ends it or falls silent.

    Every method either does what it says or raises: `Lost` when the claim is somebody else's by
    now, `Uncertain` when the disk did not answer in time. Both mean: stop working.
    """

    def __init__(self, store: Store, task: Task, record: Record, deadline: int = 0) -> None:
        self._store = store
        self.task = task
        self.record = record
        self.deadline = deadline
        """On the boot-time clock, in nanoseconds; 0 where only the disk can tell."""
        self._refused: set[str] = set()

    @property
    def name(self) -> str:
        """The claim as it is printed and as every verb takes it: `<id>.<stamp>.<claim>`."""
        return self.task.stem

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def fence(self) -> int:
        """Grows with every claim of this id; writes elsewhere carry it and refuse a lower one."""
        return self.task.fence

    @property
    def ttl(self) -> float:
        return self.record.ttl if self.record.ttl is not None else self._store.settings.ttl

    @property
    def payload(self) -> str:
        """The payload's path below the board."""
        return self.task.name

    def read(self, limit: int = 1 << 30) -> bytes:
        """The payload itself."""
        try:
            return self._store.port.read(self.task.name, limit)[0]
        except FileNotFoundError:
            raise self._lost("read") from None
        except OSError as error:
            raise storage_error(error) from error

    def beat(self, *, ttl: float | None = None, metadata: str | None = None) -> None:
        """Say that the work goes on; counts from before the call, and only if it ends in time."""
        record = self.record
        if ttl is not None:
            record = record._replace(ttl=check_ttl(ttl))
        if metadata is not None:
            record = record._replace(metadata=names.check_metadata(metadata))
        port, until = self._store.port, self._until()
        # Whoever holds the claim has nothing better to do than to try; a verb answers sooner.
        patience = until if self.deadline else min(until, port.boottime() + PATIENCE)
        while True:
            start = port.boottime()
            if start >= patience:
                raise self._too_late("its lease could not be renewed in time; stop")
            try:
                self._touch(record)
                beaten = True
            except OSError:
                beaten = False
            here = self._store.look(self.task.name)
            if here is False and not isinstance(gone := self._lost(), Away):
                raise gone
            if here and beaten:
                break
            port.sleep(0.05)
        if port.boottime() >= until:
            raise Uncertain(f"{self.name}: the disk answered after the lease had ended; stop")
        self.record = record
        self.deadline = start + int(MARGIN * self.ttl * SECOND)

    def verify(self) -> None:
        """Return only if the claim is still the caller's and its lease runs."""
        self._prove("verify")

    def done(self) -> Task:
        """The work is finished: this rename is the commit point."""
        if self.task.state == HELD:
            raise BadName(f"{self.name} is a lock: release it")
        return self._end("done", f"{DONE}/{self.name}")

    def fail(self, reason: str = "") -> Task:
        """The work failed: back to the queue, or parked when it has failed too often."""
        if self.task.state == HELD:
            raise BadName(f"{self.name} is a lock: release it")
        return self._end("fail", next_after_failure(self._store, self.task), reason)

    def release(self, reason: str = "") -> Task:
        """Give it back as it was; this is no attempt. A lease that has ended is not one's own."""
        if self.task.state == HELD:
            self._prove("release")
        return self._end("release", handed_back(self.task, self.task.attempts), reason)

    def _prove(self, verb: str) -> None:
        if self._store.port.boottime() >= self._until(verb):
            raise self._too_late("its lease was not renewed in time; stop", verb)
        here = self._store.look(self.task.name)
        if here is None:
            raise Uncertain(f"{self.name}: the disk does not answer; stop")
        if not here:
            raise self._lost(verb)

    def _end(self, verb: str, dst: str, reason: str = "") -> Task:
        ended = self._store.shift(self.task, dst, verb, self.record.owner, reason, self.deadline)
        if ended is None:
            raise self._lost(verb)
        return ended

    def _touch(self, record: Record) -> None:
        """Beat: by time alone, or, where the record's content changes, by replacing it whole."""
        store, path = self._store, f"{RECORDS}/{self.name}"
        if record is self.record:
            try:
                store.port.touch(path)
                return
            except FileNotFoundError:  # removed by hand: write it anew while the name stands
                if store.look(self.task.name) is False:
                    raise
        draft = f"{RECORDS}/{self.name}.{store.port.nonce()}"
        try:
            store.write(draft, encode(record))
            store.port.rename(draft, path)
        except OSError:
            store.drop(draft)
            raise

    def _until(self, verb: str = "beat") -> int:
        """When this claim's lease ends for its owner.

        A process that did not make the claim has no deadline of its own: it reads the age from
        the disk, and a lease that is past its ttl is over even if nobody took it.
        """
        if self.deadline:
            return self.deadline
        store = self._store
        start = store.port.boottime()
        try:
            now = store.clock.now()
            facts = facts_of(store, self.task)
        except (OSError, StorageError) as error:
            raise Uncertain(f"{self.name}: the disk does not answer: {error}; stop") from error
        if facts is None:
            raise self._lost(verb)
        if facts.expired(now):
            self._leave_trace(verb, self.task.name)
            past = f"{self.name}: the lease expired {facts.age(now) - facts.ttl:.0f} s ago: stop"
            late = "" if self.task.state == HELD else ", or commit finished work with done"
            raise Lost(past + late, self.name, (self.task,))
        return start + int(facts.ttl * SECOND) - max(0, now.fs - facts.beat)

    def _lost(self, verb: str = "beat") -> Stop:
        """Why the name was not there: a listing tells a lost claim from a board that is away."""
        away = Away(f"{self.name}: the whole board is away, and nobody can tell whose it is; stop")
        try:
            now = self._store.find(self.id)
        except BoardMissing:
            return away
        except StorageError:
            now = ()
        if any(task.name == self.task.name for task in now):  # it is back since we looked
            return away
        self._leave_trace(verb)
        return Lost(f"{self.name} is no longer yours; stop: {tell(now)}", self.name, now)

    def _too_late(self, why: str, verb: str = "beat") -> Stop:
        """Why work stops after the deadline: the claim is gone for sure, or nobody can tell."""
        if self._store.look(self.task.name) is False:
            gone = self._lost(verb)
            if not isinstance(gone, Away):
                return gone
        return Uncertain(f"{self.name}: {why}")

    def _leave_trace(self, verb: str, still: str = "") -> None:
        """Let operators see that a holder came back to a claim it had lost: once for each verb.

        `still` is the claim's name where it is there, and only the lease has expired.
        """
        if verb not in self._refused:
            self._refused.add(verb)
            self._store.journal.write("refused", self.id, self.name, still, self.record.owner, verb)


def take(
    store: Store, task: Task, terms: Terms, verb: str = "claim", patience: int = PATIENCE
) -> Claim | None:
    """Take exactly this name; None when somebody was faster, `Unclaimable` when nobody can.

    The deadline counts from before the rename. The record follows the name, because a record
    from before would make a fresh claim look old.
    """
    if task.fence >= names.FENCE_MAX:
        raise Unclaimable(f"{task.name}: {FENCE_FULL}", task.name)
    if task.state in (AVAILABLE, FREE) and not _fits(store, task):
        return None
    if task.state == AVAILABLE:
        adopt(store, task)
    stamp = task.stamp._replace(fence=task.fence + 1)
    stem = names.claim_stem(task.id, stamp, f"{terms.folded}-{store.port.nonce()}")
    dst = f"{stem}.{HELD_BY[task.state]}"
    record = terms.record(store)
    start = store.port.boottime()
    deadline = start + int(MARGIN * terms.ttl * SECOND)
    if not store.rename_moves_ctime:
        with suppress(OSError):
            store.port.touch(task.name)
    taken = Task(dst, task.id, HELD_BY[task.state], *stamp, stem.rpartition(".")[2])
    claim, line = Claim(store, taken, record, deadline), encode(record)
    try:
        if not _grab(store, task.name, dst, until=min(deadline, start + patience)):
            return None
        store.write(f"{RECORDS}/{stem}", line)
    except OSError as error:
        if _hand_back_unrecorded(store, claim):
            raise storage_error(error) from error
        why = "its record was not written, and it could not be handed back: it expires by itself"
        raise Uncertain(f"{claim.name}: {why}: {storage_error(error)}") from error
    except (KeyboardInterrupt, SystemExit):  # else it is claimed for the board's ttl by no one
        _hand_back_unrecorded(store, claim)
        raise
    # Until the record stands the claim lives by the board's ttl, which may be the shorter one.
    if store.port.boottime() >= start + int(MARGIN * min(terms.ttl, store.settings.ttl) * SECOND):
        raise Uncertain(f"{claim.name}: it took longer than its lease to write its record; stop")
    store.journal.write(verb, task.id, task.name, dst, terms.owner, terms.metadata)
    store.sync("", every=True)
    return claim


def _fits(store: Store, task: Task) -> bool:
    """Whether the file is there; `Unclaimable` where its worker could not read it."""
    try:
        unfit = store.port.unfit(task.name)
    except FileNotFoundError:
        return False
    except OSError:  # whether the disk answers is found out by the move, which has patience
        return True
    if unfit:
        raise Unclaimable(f"{task.name}: {unfit}", task.name)
    return True


def _grab(store: Store, name: str, dst: str, until: int) -> bool:
    """The rename that claims; `Unclaimable` where the disk refuses it for this file alone."""
    try:
        return store.move(name, dst, until=until, definite=DEFINITE | STUCK)
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in STUCK:
            raise Unclaimable(f"{name}: {cause.strerror}: {STAYS}", name) from cause
        raise


def attach(store: Store, text: str) -> Claim:
    """The claim of that exact name, for a process that did not make it itself."""
    task = names.read(_live_name(store, text))
    if task is None or not task.claim or task.take:
        raise NotExact(f"{short(text)} is not a claim that can be beaten or ended by its name")
    record = None
    with suppress(StorageError):  # whoever only ends the claim does not need its record
        record = record_of(store, task.stem)[0]
    return Claim(store, task, record or Record(owner=task.owner))


def _live_name(store: Store, text: str) -> str:
    """The claimed or held name of a claim, whether it is still there or not.

    Each verb finds that out by its own rename: a commit that is repeated is still a commit.
    """
    candidates = names.exact(text)
    if len(candidates) == 1:
        return candidates[0]
    claimed, held = candidates[:2]
    return held if store.there(held) else claimed


def next_after_failure(store: Store, task: Task) -> str:
    """Where a claim goes when it failed or expired: the queue, or `failed/` at the limit."""
    attempts = min(task.attempts + 1, names.ATTEMPTS_MAX)
    if task.state == CLAIMED and attempts >= store.settings.max_attempts:
        return f"{FAILED}/" + names.claim_stem(
            task.id, task.stamp._replace(attempts=attempts), task.claim
        )
    return handed_back(task, attempts)


def handed_back(task: Task, attempts: int) -> str:
    """The name under which a claim waits again; a lock has no attempts to count."""
    if task.state == HELD:
        return names.waiting_name(task.id, task.stamp, FREE)
    return names.waiting_name(task.id, task.stamp._replace(attempts=attempts))


def _hand_back_unrecorded(store: Store, claim: Claim) -> bool:
    """Whether a claim that nothing can keep alive went back, for another worker to try."""
    try:
        store.move(claim.task.name, handed_back(claim.task, claim.task.attempts), keep=True)
    except (Exists, StorageError, Uncertain):  # then it expires
        return False
    store.drop(f"{RECORDS}/{claim.name}")
    return True
