"""Locks as OctoStore's clients know them, on the locks of a board.

Everything here runs in the threads of verbs; in more than one at a time only while a call hangs.
The board alone decides who has a lock. What is kept in memory only saves looks, and says when a
lease ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from dibs.host import boottime
from dibs.model.errors import BadName, DibsError, Held, Lost, NotExact, Refused
from dibs.model.sample import SECOND
from dibs.model.task import FREE, HELD
from dibs.serve.lease_terms import LeaseTerms, terms_of
from dibs.serve.lock_names import LONG, SESSION, check_lock_name, id_of, is_name
from dibs.serve.problems import Refusal
from dibs.serve.route_table import Made

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.holder import Holder
    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.serve.tokens import Principal

Answer = dict[str, Any]
DEFAULT_TTL, TTL_MOST, DELAY_MOST = 60, 3600, 30
_POLL = 5.0
"""The longest time after which a waiter for a lock must ask again, in seconds."""
_RENEWED = 0.25
"""A lease that ends so many seconds later than was known has been renewed by someone else."""
_ENDED = 10_000
"""So many ended leases are remembered, so that an old report does not bring them back."""
_AGAIN = 0.5
"""Seconds until a lease that could not be reaped is tried again."""


class HeldLock:
    """A lock that is held, as far as this server knows."""

    __slots__ = (
        *("board", "claim", "expired", "metadata", "name", "octo", "owner", "task", "terms"),
        *("ttl", "until"),
    )

    def __init__(self, task: Task, name: str, owner: str, metadata: str, terms: LeaseTerms) -> None:
        self.task = task
        self.name = name
        self.owner = owner
        self.metadata = metadata
        self.terms = terms
        self.ttl = 0.0
        """The lease without its lock delay, in seconds."""
        self.until = 0.0
        """When it ends, on the monotonic clock."""
        self.claim: Claim | None = None
        self.board: Board | None = None
        """The board of the claim: that of another thread may hang."""
        self.expired = False
        """Whether its expiry was reported."""
        self.octo = False
        """Whether it was acquired or renewed here: then it is freed as soon as it has expired."""

    @property
    def id(self) -> str:
        """How its holder names it."""
        return self.task.stem

    @property
    def left(self) -> float:
        """Seconds until it ends."""
        return self.until - time.monotonic()

    def keep(self, board: Board, claim: Claim) -> Claim:
        """Keep its claim for the next request, with the board that the claim is of."""
        self.board, self.claim = board, claim
        return claim

    def own_claim(self, board: Board) -> Claim:
        """Its claim, which counts its lease from its own last beat, or else from the board's."""
        claim = self.claim
        runs = claim is not None and claim.deadline and boottime() < claim.deadline
        if claim is not None and runs and self.board is board:
            return claim
        return self.keep(board, board.attach(self.id))

    def count_from(self, start: float, ttl: float) -> None:
        """It was renewed with a request that began then."""
        self.ttl, self.until, self.expired = ttl, start + ttl, False


class LockDesk:
    """Acquires, renews, releases and shows the locks of one board."""

    def __init__(
        self,
        board: Callable[[], Board],
        report: Callable[[Answer], object],
        heard: Callable[[], bool],
    ) -> None:
        """`board` gives that of the calling thread.

        `report` receives each event, in order, while `heard` says that anyone listens.
        """
        self._board = board
        self._heard = heard
        self._report = report
        self.leases: dict[str, HeldLock] = {}
        """The locks that are held, by their ids."""
        self._ended: dict[str, int] = {}
        self._ends: list[tuple[float, str]] = []

    @property
    def board(self) -> Board:
        """The board, in the calling thread."""
        return self._board()

    # What clients ask for

    def acquire(
        self,
        who: Principal,
        agent: str | None,
        name: str,
        *,
        ttl: int = DEFAULT_TTL,
        metadata: str = "",
        terms: LeaseTerms = LeaseTerms(),  # noqa: B008 (it is immutable)
        mark: str = "",
    ) -> Answer | Made:
        """The lock, or who has it; the same agent gets the lease again that it has, and `again`.

        By its `mark` a claim is found whose server died before it wrote more than its name.
        """
        ident = id_of(check_lock_name(name))
        if ident != name:
            terms = terms._replace(name=name)
        owner = who.owner(agent)
        while True:
            start = time.monotonic()
            try:
                claim = self.board.acquire(
                    ident, owner=owner, ttl=ttl + terms.delay, metadata=metadata, nonce=mark
                )
            except Held as held:
                if mark and held.task.claim.endswith(f"-{mark}"):
                    again = self._without_record(held.task, owner, ttl + terms.delay, metadata)
                    if again is not None:
                        claim = again
                        break
                same = held.owner == owner and (agent is not None or held.metadata == metadata)
                found = self._of_holder(held, name, same, ttl, metadata, terms)
                if found is not None:
                    mine = bool(mark) and held.task.claim.endswith(f"-{mark}")
                    new = mine or found["status"] != "acquired"
                    return found if new else found | {"again": True}
            except BadName as error:
                raise self._bad_name(ident, error) from None
            else:
                break
        self._write_terms(claim, terms)
        lease = HeldLock(claim.task, name, owner, metadata, terms)
        lease.keep(self.board, claim)
        lease.octo = True
        lease.count_from(start, ttl)
        self._begin(lease)
        return Made(_acquired(lease), lease.id, partial(self._take_back, lease))

    def renew(
        self, who: Principal, agent: str | None, name: str, lease_id: str, ttl: int | None
    ) -> Answer:
        """Count the lease again; without a ttl it keeps its own."""
        lease = self._own(who, agent, name, lease_id)
        self._beat(lease, lease.ttl if ttl is None else ttl, changed=ttl is not None)
        self.report("renewed", lease)
        return {
            "lease_id": lease.id,
            "fencing_token": lease.task.fence,
            "expires_at": moment(lease.left),
            "renew_after_ms": _third(lease.ttl),
        }

    def release(self, who: Principal, agent: str | None, name: str, lease_id: str) -> Answer:
        """Free the lock."""
        lease = self._own(who, agent, name, lease_id)
        try:
            self._claim_of(lease).release()
        except Lost:
            raise self._not_current(lease) from None
        self.end(lease, "released")
        return {"status": "released", "name": name, "lease_id": lease_id}

    def status(self, name: str) -> Answer:
        """Who has a lock; one that was never used is free."""
        ident = id_of(check_lock_name(name))
        try:
            found = self.board.status(ident)
            if found.held and not found.remaining and found.task is not None:
                with suppress(DibsError):  # it is not proved yet, or was renewed meanwhile
                    self.board.reap_claim(found.task.name, asked=False)
                found = self.board.status(ident)
        except BadName as error:
            raise self._bad_name(ident, error) from None
        if not found.held or found.task is None:
            return _free(name)
        terms = self._terms(found.task)
        left = found.remaining - terms.delay
        if left <= 0 < found.remaining:
            return _free(name) | {"available_at": moment(found.remaining)}
        lease = HeldLock(found.task, name, found.owner, found.metadata, terms)
        lease.count_from(time.monotonic() + left - found.ttl + terms.delay, found.ttl - terms.delay)
        return {"name": name, "status": "held", **_shown(lease)}

    # What the server itself does

    def end(self, lease: HeldLock, verb: str) -> None:
        """A lease has ended; it is reported once."""
        found = self.leases.get(lease.task.id)
        if found is not None and found.task.fence <= lease.task.fence:
            self.leases.pop(lease.task.id, None)
        self._ended[lease.task.id] = max(lease.task.fence, self._ended.get(lease.task.id, 0))
        while len(self._ended) > _ENDED:
            self._ended.pop(next(iter(self._ended)), None)
        if not lease.expired:
            lease.expired = True
            self.report(verb, lease)

    def release_all(self, session: str) -> None:
        """Release the locks that end with a session, if the board says that they are in it now.

        Another server may have taken a lock out of the session, as its agent asked.
        """
        for lease in list(self.leases.values()):
            if lease.terms.session != session:
                continue
            with suppress(DibsError):  # it ended already; if the storage fails, it expires
                holder = self.board.holder(lease.task)
                if holder is None:
                    continue
                lease.terms = terms_of(holder.note)
                if lease.terms.ephemeral and lease.terms.session == session and lease.left > 0:
                    self._claim_of(lease).release("its session ended")
                    self.end(lease, "released")

    def tick(self) -> None:
        """Report and reap what has expired by now."""
        now = time.monotonic()
        while self._ends and self._ends[0][0] <= now:
            _, ident = heappop(self._ends)
            lease = self.leases.get(ident)
            if lease is None:
                continue
            due = lease.until + (lease.terms.delay if lease.expired else 0)
            if due > now:
                heappush(self._ends, (due, ident))
                continue
            self._expire(lease)

    def seen(self, delta: Delta) -> None:
        """What the watch of the board reports; own acts are known already."""
        for task in (*delta.removed, *delta.added):
            known = self.leases.get(task.id)
            if task.state == FREE and known is not None and known.task.fence <= task.fence:
                self.end(known, "expired" if known.left <= 0 else "released")
        for holder in delta.holders.values():
            if holder.task.state == HELD and is_name(holder.task.id) and delta.now is not None:
                passed = (boottime() - delta.now.boot) / SECOND
                self._see(holder, holder.age(delta.now) + passed)

    def look(self, ident: str) -> None:
        """Notice what another part of this server has done to a lock, if anyone listens."""
        known = self.leases.get(ident)
        if (known is None and not self._heard()) or not is_name(ident):
            return
        with suppress(DibsError):
            found = self.board.status(ident)
            if found.task is None:
                return
            if not found.held and known is not None and known.task.fence <= found.task.fence:
                self.end(known, "released")
            elif found.held and (holder := self.board.holder(found.task)) is not None:
                self._see(holder, found.age)

    def begin(self, entries: list[Entry]) -> None:
        """The locks that are held when the server begins."""
        for entry in entries:
            for task in self.board.find(entry.id):
                holder = self.board.holder(task) if task.state == HELD else None
                if holder is not None:
                    self._see(holder, entry.age or 0.0, quietly=True)

    def report(self, verb: str, lease: HeldLock) -> None:
        """Report an event, if anyone listens."""
        if not self._heard():
            return
        self._report(
            {"event": verb, "name": lease.name, "lock": lease.name, **_shown(lease)}
            | {"timestamp": moment(0)}
        )

    def shown(self, covers: Callable[[str], bool]) -> list[Answer]:
        """The locks that are held, by what this server knows now."""
        leases = [one for one in tuple(self.leases.values()) if one.left > 0 and covers(one.name)]
        leases = [one for one in leases if not one.task.id.startswith(SESSION)]
        return [{"name": one.name, "status": "held", **_shown(one)} for one in leases]

    # Inside

    def _take_back(self, lease: HeldLock) -> None:
        """Release a new lease whose answer no one could read, unless the board says otherwise."""
        if self._claim_of(lease).release_unconfirmed("the client has gone"):
            self.end(lease, "released")

    def _of_holder(
        self, held: Held, name: str, same: bool, ttl: int, metadata: str, terms: LeaseTerms
    ) -> Answer | None:
        """What whoever asks for a held lock gets; None if it has to be asked for again."""
        task = held.task
        old = self._terms(task)
        left = held.remaining - old.delay
        if left <= 0 < held.remaining:
            raise Refusal(
                "delayed",
                f"the lease of {name} expired, and its lock delay is not over",
                {"available_at": moment(held.remaining)},
                max(1, round(held.remaining * 1000)),
            )
        if same and left > 0:
            lease = self._lease(task, name, held.owner, held.metadata, old)
            try:
                lease.terms = self._terms_now(task)
                if terms != lease.terms:
                    self._claim_of(lease).note(terms.note)
                    lease.terms = terms
                changed = metadata if metadata != lease.metadata else None
                self._beat(lease, ttl, changed=True, metadata=changed, confirm=True)
            except Lost:
                return None
            except Refusal:
                return None
            lease.metadata = metadata
            self.report("renewed", lease)
            return _acquired(lease)
        wait = min(held.retry if left <= 0 else left, _POLL)
        return {
            "status": "held",
            "holder_id": held.owner,
            "expires_at": moment(left),
            "retry_after_ms": max(1, round(wait * 1000)),
            "metadata": held.metadata or None,
        }

    def _without_record(self, task: Task, owner: str, ttl: int, metadata: str) -> Claim | None:
        """The lock again, if its claim has no record; None if it has one, or is gone."""
        if self.board.attach(task.stem).record.host:
            return None
        with suppress(DibsError):
            return self.board.resume(
                task.id, name=task.stem, owner=owner, ttl=ttl, metadata=metadata
            )
        return None

    def _own(self, who: Principal, agent: str | None, name: str, lease_id: str) -> HeldLock:
        """The lease, if it is current and the caller's."""
        ident = id_of(check_lock_name(name))
        lease = self.leases.get(ident)
        if lease is None or lease.id != lease_id:
            lease = self._attached(ident, name, lease_id)
        own = lease is not None and who.owns(lease.owner)
        if lease is None or not own or (agent is not None and who.owner(agent) != lease.owner):
            raise self._not_current(None)
        if lease.terms.delay and lease.left <= 0:
            raise self._not_current(None)
        return lease

    def _attached(self, ident: str, name: str, lease_id: str) -> HeldLock | None:
        """A lease that was made elsewhere, or before this server began."""
        try:
            claim = self.board.attach(lease_id)
        except (NotExact, BadName):
            return None
        if claim.task.id != ident or claim.task.state != HELD:
            return None
        holder = self.board.holder(claim.task)
        if holder is None:
            return None
        terms = terms_of(holder.note)
        lease = HeldLock(claim.task, name, holder.owner, holder.metadata, terms)
        found = self.board.status(ident)
        if not found.held or found.task != claim.task:
            return None
        ttl = found.ttl - terms.delay
        lease.count_from(time.monotonic() + found.remaining - terms.delay - ttl, ttl)
        lease.keep(self.board, claim)
        lease.octo = True
        known = self.leases.get(ident)
        if known is None or known.task.fence < claim.task.fence:
            self.leases[ident] = lease
            heappush(self._ends, (lease.until, ident))
        return lease

    def _lease(
        self, task: Task, name: str, owner: str, metadata: str, terms: LeaseTerms
    ) -> HeldLock:
        """The lease on a task that is held, known or not."""
        known = self.leases.get(task.id)
        if known is not None and known.task == task:
            return known
        lease = HeldLock(task, name, owner, metadata, terms)
        if known is None or known.task.fence < task.fence:
            self.leases[task.id] = lease
        return lease

    def _terms(self, task: Task) -> LeaseTerms:
        """The terms, as far as this server knows them."""
        known = self.leases.get(task.id)
        return known.terms if known is not None and known.task == task else self._terms_now(task)

    def _terms_now(self, task: Task) -> LeaseTerms:
        """The terms that the board has: another server may have changed them."""
        holder = self.board.holder(task)
        return terms_of(holder.note) if holder is not None else LeaseTerms()

    def _write_terms(self, claim: Claim, terms: LeaseTerms) -> None:
        """Write the terms of a new claim; it is released if that fails."""
        if not terms.note:
            return
        try:
            claim.note(terms.note)
        except DibsError:
            with suppress(DibsError):
                claim.release_unconfirmed("its terms could not be written")
            raise

    def _claim_of(self, lease: HeldLock) -> Claim:
        return lease.own_claim(self.board)

    def _beat(
        self,
        lease: HeldLock,
        ttl: float,
        *,
        changed: bool,
        metadata: str | None = None,
        confirm: bool = False,
    ) -> None:
        start = time.monotonic()
        try:
            claim = self._claim_of(lease)
            beat = claim.confirm if confirm else claim.beat
            beat(ttl=ttl + lease.terms.delay if changed else None, metadata=metadata)
        except Lost:
            raise self._not_current(lease) from None
        lease.count_from(start, ttl)
        heappush(self._ends, (lease.until, lease.task.id))

    def _not_current(self, lease: HeldLock | None) -> Refusal:
        """The one refusal of whoever is not the holder."""
        if lease is not None:
            self.end(lease, "expired" if lease.left <= 0 else "released")
        return Refusal("lease_not_current", "this lease is not current: stop", retry_after_ms=None)

    def _bad_name(self, ident: str, error: BadName) -> Exception:
        """Why the board refuses an id that is a valid name."""
        if any(task.kind == "task" for task in self.board.find(ident)):
            return Refusal("name_in_use", str(error))
        return error

    def _begin(self, lease: HeldLock) -> None:
        known = self.leases.get(lease.task.id)
        if known is not None and known.task.fence > lease.task.fence:
            return  # the answer to this thread was late
        if known is not None:
            self.end(known, "expired" if known.left <= 0 else "released")
        self.leases[lease.task.id] = lease
        heappush(self._ends, (lease.until, lease.task.id))
        self.report("acquired", lease)

    def _see(self, holder: Holder, age: float, *, quietly: bool = False) -> None:
        """A holder that the board shows."""
        task, terms = holder.task, terms_of(holder.note)
        if task.fence <= self._ended.get(task.id, 0):
            return
        left = holder.ttl - age - terms.delay
        known = self.leases.get(task.id)
        if known is not None and known.task.fence > task.fence:
            return
        if known is not None and known.task == task:
            if left > known.left + _RENEWED:
                known.claim, known.metadata = None, holder.metadata
                known.count_from(time.monotonic() - age, holder.ttl - terms.delay)
                heappush(self._ends, (known.until, task.id))
                self.report("renewed", known)
            return
        name = task.id if LONG not in task.id else terms.name or task.id
        lease = HeldLock(task, name, holder.owner, holder.metadata, terms)
        lease.count_from(time.monotonic() - age, holder.ttl - terms.delay)
        if quietly:
            self.leases[task.id] = lease
            heappush(self._ends, (lease.until, task.id))
        else:
            self._begin(lease)

    def _expire(self, lease: HeldLock) -> None:
        """Report a lease that is over, and free its lock as soon as the board allows it."""
        again = time.monotonic() + _AGAIN
        try:
            holder = self.board.holder(lease.task)
            if holder is None:
                self.end(lease, "expired")
                return
            found = self.board.status(lease.task.id)
            left = found.remaining - lease.terms.delay if found.task == lease.task else 0.0
            if left > 0:  # another server renewed it
                lease.count_from(time.monotonic() + left - lease.ttl, lease.ttl)
                heappush(self._ends, (lease.until, lease.task.id))
                return
            if lease.terms.delay and found.remaining > 0:
                if not lease.expired:
                    lease.expired = True
                    self.report("expired", lease)
                again = time.monotonic() + found.remaining + 0.01
            else:
                if lease.octo or lease.terms != LeaseTerms():
                    self.board.reap_claim(lease.task.name, asked=False)
                self.end(lease, "expired")
                return
        except Refused:
            pass  # the clock is not trusted yet, or it has changed
        except DibsError:
            again += _POLL
        heappush(self._ends, (again, lease.task.id))


def _acquired(lease: HeldLock) -> Answer:
    return {
        "status": "acquired",
        "name": lease.name,
        "lease_id": lease.id,
        "fencing_token": lease.task.fence,
        "expires_at": moment(lease.left),
        "renew_after_ms": _third(lease.ttl),
        "metadata": lease.metadata or None,
    }


def _shown(lease: HeldLock) -> Answer:
    """What everyone may see of a lease; its id is only the holder's."""
    return {
        "holder_id": lease.owner,
        "fencing_token": lease.task.fence,
        "expires_at": moment(lease.left),
        "metadata": lease.metadata or None,
    }


def _free(name: str) -> Answer:
    none = dict.fromkeys(("holder_id", "fencing_token", "expires_at", "metadata"))
    return {"name": name, "status": "free", **none}


def _third(ttl: float) -> int:
    return max(1, round(ttl * 1000 / 3))


def moment(left: float) -> str:
    """The time so many seconds from now, as text."""
    at = max(0, round((time.time() + left) * 1000))
    return f"{_second(at // 1000)}.{at % 1000:03d}Z"


@lru_cache(4096)  # most leases that are made at a time end within the same few seconds
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def listed(entries: list[Entry], covers: Callable[[str], bool]) -> list[Answer]:
    """The held locks among the rows of a board, by name."""
    found = []
    for entry in entries:
        terms = terms_of(entry.note)
        left = (entry.ttl or 0.0) - (entry.age or 0.0) - terms.delay
        name = entry.id if LONG not in entry.id else terms.name or entry.id
        if entry.kind != "lock" or not is_name(entry.id) or left <= 0 or not covers(name):
            continue
        shown = {"holder_id": entry.owner, "fencing_token": entry.fence}
        shown |= {"expires_at": moment(left), "metadata": entry.metadata or None}
        found.append({"name": name, "status": "held", **shown})
    return sorted(found, key=lambda one: one["name"])
