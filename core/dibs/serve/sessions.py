"""Sessions: a sign of life that several locks share. Each is a lock of its own on the board.

So a session outlives this server, and any server before the board may hear its keepalive.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.model.errors import BadName, Held, Lost, NotExact, Refused, Unclaimable
from dibs.model.task import HELD
from dibs.serve.lease_terms import LeaseTerms
from dibs.serve.lock_desk import Answer, HeldLock, LockDesk, moment
from dibs.serve.lock_names import SESSION
from dibs.serve.problems import Refusal

if TYPE_CHECKING:
    from dibs.protocols import Claim
    from dibs.serve.tokens import Principal

DEFAULT, LEAST, MOST = 60, 10, 300
_SESSIONS = 10_000
_AGAIN = 0.5
"""Seconds until an expired session is looked at again."""


class Sessions:
    """The sessions of one board; everything here runs in the threads of verbs."""

    def __init__(self, desk: LockDesk) -> None:
        self._desk = desk
        self._live: dict[str, HeldLock] = {}
        """The sessions that this server knows, by their ids."""
        self._next = 0.0
        """When it looks again at those that may be over, on the monotonic clock."""

    def begin(self, who: Principal, agent: str | None, ttl: int, mark: str = "") -> Answer:
        """A new session. Its number is the lowest that is free, so that few locks are made.

        By its `mark` the one is found that the same request has begun over another server.
        """
        if mark and (begun := self._begun(who, mark)) is not None:
            return begun
        used = {lease.task.id for lease in tuple(self._live.values())}
        for number in range(1, _SESSIONS + 1):
            ident = f"{SESSION}{number}"
            if ident in used:
                continue
            start = time.monotonic()
            try:
                claim = self._desk.board.acquire(ident, owner=who.owner(agent), ttl=ttl, nonce=mark)
            except Held as held:  # another server has it for a session, perhaps for this request
                if (
                    mark
                    and held.task.claim.endswith(f"-{mark}")
                    and (begun := self._begun(who, mark))
                ):
                    return begun
            except (BadName, Unclaimable):
                pass  # a shell has made something else of that id
            else:
                lease = self._known(claim, who.owner(agent))
                lease.count_from(start, ttl)
                return self._new(lease)
        raise Refusal("busy", f"there are {_SESSIONS:,} sessions", retry_after_ms=10_000)

    def _begun(self, who: Principal, mark: str) -> Answer | None:
        """The session whose name ends with this mark, with a new sign of life."""
        for task in self._desk.board.snapshot(ended=False).tasks.values():
            mine = task.state == HELD and task.id.startswith(SESSION)
            if mine and task.claim.endswith(f"-{mark}"):
                with suppress(Refusal):  # it has ended since
                    self.keep(who, task.stem)
                    return self._new(self.find(who, task.stem))
        return None

    def _new(self, lease: HeldLock) -> Answer:
        """What whoever begins a session gets."""
        interval = max(1, round(lease.ttl) // 2)
        return self._fields(lease) | {"keepalive_interval_secs": interval}

    def keep(self, who: Principal, session: str) -> Answer:
        """The session lives on for its ttl."""
        lease = self.find(who, session)
        start = time.monotonic()
        try:
            self._claim(lease).beat()
        except Lost:
            lease.until = start  # the next tick finds out whether it has ended
            raise _unknown() from None
        lease.count_from(start, lease.ttl)
        return self._fields(lease)

    def show(self, who: Principal, session: str) -> Answer:
        """A session, with the number of its locks."""
        lease = self.find(who, session)
        locks = [one for one in tuple(self._desk.leases.values()) if one.terms.session == session]
        more = {"lock_count": len(locks), "active": True, "ttl_seconds": round(lease.ttl)}
        return self._fields(lease) | {"user_id": lease.owner} | more

    def finish(self, who: Principal, session: str) -> None:
        """End a session, and release the ephemeral locks that it has."""
        lease = self.find(who, session)
        with suppress(Lost):
            self._claim(lease).release()
        self._end(session)

    def find(self, who: Principal, session: str) -> HeldLock:
        """The session with that id, if it lives and is the caller's."""
        lease = self._live.get(session) or self._attached(session)
        if lease is None or not who.owns(lease.owner):
            raise _unknown()
        if lease.left <= 0 and not self._renewed(lease):
            raise _unknown()
        return lease

    def tick(self) -> None:
        """End the sessions that are over by what the board says; without an answer none is."""
        now = time.monotonic()
        if now < self._next:
            return
        over = [(session, lease) for session, lease in tuple(self._live.items()) if lease.left <= 0]
        self._next = now + _AGAIN if over else now
        for session, lease in over:
            if self._is_over(lease):
                self._end(session)
        mine = {lease.terms.session for lease in tuple(self._desk.leases.values())}
        for session in mine - self._live.keys() - {""}:
            if self._attached(session) is None:
                self._end(session)

    def _is_over(self, lease: HeldLock) -> bool:
        """Whether an expired session has ended: until it is reaped, any server may renew it."""
        if self._renewed(lease):
            return False
        with suppress(Refused):  # its end is not proved yet, or it was renewed just now
            self._desk.board.reap_claim(lease.task.name, asked=False)
        return self._desk.board.holder(lease.task) is None

    def _renewed(self, lease: HeldLock) -> bool:
        """Whether another server has heard its keepalive."""
        found = self._desk.board.status(lease.task.id)
        if found.task != lease.task or found.remaining <= 0:
            return False
        lease.count_from(time.monotonic() + found.remaining - lease.ttl, lease.ttl)
        return True

    def _attached(self, session: str) -> HeldLock | None:
        """A session that another server began, or this one before it was started again.

        None if it has ended; one that has expired may still be renewed.
        """
        try:
            claim = self._desk.board.attach(session)
        except (NotExact, BadName):
            return None
        if not claim.task.id.startswith(SESSION):
            return None
        found = self._desk.board.status(claim.task.id)
        if not found.held or found.task != claim.task:
            return None
        lease = self._known(claim, found.owner)
        lease.count_from(time.monotonic() + found.remaining - found.ttl, found.ttl)
        return lease

    def _known(self, claim: Claim, owner: str) -> HeldLock:
        lease = self._live[claim.name] = HeldLock(claim.task, "", owner, "", LeaseTerms())
        lease.keep(self._desk.board, claim)
        return lease

    def _claim(self, lease: HeldLock) -> Claim:
        return lease.own_claim(self._desk.board)

    def _end(self, session: str) -> None:
        self._live.pop(session, None)
        self._desk.release_all(session)

    def _fields(self, lease: HeldLock) -> Answer:
        return {"session_id": lease.id, "expires_at": moment(lease.left)}


def _unknown() -> Refusal:
    return Refusal("session_not_found", "there is no such session, or it has ended")
