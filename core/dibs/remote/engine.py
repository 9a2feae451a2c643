"""The engine for boards that a server offers: all verbs, and the entry points that open one."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

from dibs.blocks import Blocks
from dibs.host import Host, Terms, this_host
from dibs.model import names
from dibs.model.errors import BadName, DibsError, Exists, Uncertain, UnknownId
from dibs.model.lazy import LazyModule
from dibs.model.settings import Settings, check_count, check_wait
from dibs.remote import claims
from dibs.remote.addresses import location_of
from dibs.remote.claims import reason_of
from dibs.remote.sessions import RemoteSession, quoted

if TYPE_CHECKING:
    from dibs import waiting as waits
    from dibs.model import delays, events, lists, outputs, pauses, pausing, refusals, slots, undoing
    from dibs.model import questions as asking
    from dibs.model.answers import Finding, LockStatus, Reaped, Resolved
    from dibs.model.capabilities import Capability
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.evidence import Evidence
    from dibs.model.fitness import Ability
    from dibs.model.hints import HintSource
    from dibs.model.holder import Holder
    from dibs.model.location import Location
    from dibs.model.outputs import KeptOutput, Output
    from dibs.model.pauses import Pause
    from dibs.model.process import Process
    from dibs.model.questions import Question
    from dibs.model.snapshot import Snapshot
    from dibs.model.task import Task
    from dibs.model.undoing import LastActs
    from dibs.model.waiters import Waiter
    from dibs.protocols import BoardReader, BoardWriter, Claim
    from dibs.remote import reading, waiting
    from dibs.remote.claims import RemoteClaim
    from dibs.remote.log import RemoteLog
    from dibs.remote.sessions import Found as Answer
    from dibs.remote.waiting import RemotePresence, RemoteRetry
    from dibs.remote.watch import RemoteWatch
    from dibs.waiting import Waits
else:
    delays, events, lists, outputs, pauses, pausing, refusals, slots, asking, undoing = map(
        LazyModule,
        (
            "dibs.model.delays",
            "dibs.model.events",
            "dibs.model.lists",
            "dibs.model.outputs",
            "dibs.model.pauses",
            "dibs.model.pausing",
            "dibs.model.refusals",
            "dibs.model.slots",
            "dibs.model.questions",
            "dibs.model.undoing",
        ),
    )
    waits, reading, waiting = map(
        LazyModule, ("dibs.waiting", "dibs.remote.reading", "dibs.remote.waiting")
    )

Found = TypeVar("Found")
_PAYLOAD = 780_000
"""The longest payload that fits into a request, whatever its bytes are."""
_FORGOTTEN = 500
_AGES = 36_500 * 86_400


def open_served(
    where: str | os.PathLike[str],
    *,
    create: bool = False,
    read_only: bool = False,
) -> RemoteBoard:
    """The board behind an address; whether there is one its first request finds out."""
    return RemoteBoard(RemoteSession(str(where), this_host(), read_only=read_only))


class RemoteEngine:
    """The engine for boards that a server offers."""

    def locate(self, where: str | os.PathLike[str]) -> Location:
        """The location of the server."""
        return location_of(str(where))

    open = staticmethod(open_served)

    def initialize(self, where: str, *, unmounted: bool) -> tuple[RemoteBoard, str]:
        """Open the server's board, which is made where it is."""
        board = open_served(where)
        board.capabilities  # noqa: B018 - the first request, which fails without a server
        return board, ""

    def watch(
        self,
        where: str,
        report: Callable[[Delta], object],
        hints: HintSource | None,
        *,
        poll: float,
        read_only: bool,
    ) -> RemoteWatch:
        """Follow the board behind an address, from now on or as soon as it answers."""
        from dibs.remote.watch import RemoteWatch

        found = RemoteWatch(where, report, open_served)
        found.start()
        return found

    def upgrade(self, where: str) -> bool:
        """Refused."""
        _there(where, "upgrade")

    def make_roles(self, where: str) -> tuple[str, ...]:
        """Refused: a token has a role."""
        raise BadName(f"{where}: a server has tokens, which are made on the server's machine")

    def identity(self, where: str) -> str:
        """Unknown: what is behind the server may have other addresses."""
        return ""

    def reader(self, where: str) -> BoardReader:
        """Refused."""
        _there(where, "copy")

    def writer(self, where: str) -> BoardWriter:
        """Refused."""
        _there(where, "copy")


def _there(where: str, verb: str) -> NoReturn:
    raise BadName(
        f"{where}: {verb} does not work over HTTP: run it where the board of the server is"
    )


class RemoteBoard(Blocks):
    """A board behind a server; `dibs.board.Board` documents each verb."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"<board {self._session.label}>"

    def for_host(self, host: str = "", *, step: float = 0.0) -> RemoteBoard:
        old = self._session
        here = old.host._replace(name=host or old.host.name)
        return RemoteBoard(RemoteSession(old.label, here, read_only=old.read_only))

    def close(self) -> None:
        self._session.close()

    @property
    def location(self) -> Location:
        return location_of(self._session.label)

    @property
    def capabilities(self) -> frozenset[Capability]:
        from dibs.model.capabilities import Capability

        given = self._session.value(list[str], self._session.about, "capabilities")
        passed_on = Capability.CHECK, Capability.SHELL_CLAIMS
        return frozenset(each for each in passed_on if each in given)

    @property
    def settings(self) -> Settings:
        return self._session.settings

    @property
    def host(self) -> Host:
        return self._session.host

    @property
    def served(self) -> RemoteSession:
        return self._session

    @property
    def log(self) -> RemoteLog:
        return reading.log_of(self._session)

    def require_mounted(self) -> None:
        """The server has looked."""

    def owner_name(self, owner: str) -> str:
        return self._session.owner_name(owner)

    # The producer

    def add(
        self,
        ident: str,
        payload: bytes | IO[bytes] = b"",
        *,
        priority: int = 5,
        start_in: float = 0.0,
        start_at: float | None = None,
        by: str = "",
        nonce: str = "",
    ) -> Task:
        names.check_priority(priority)
        names.check_text("who acts", by)
        names.escape(ident)
        slots.refuse_slot(ident)
        if start_at is not None and start_in:
            raise BadName("a task starts at a time or after a delay: give one of them")
        if start_at is not None:
            delays.check_start(start_at)
        delays.check_delay(start_in, names.NOT_BEFORE_MAX)
        session = self._session
        found = session.change(
            "/v1/tasks",
            f"the add of {ident!r}",
            {
                "id": ident,
                **_content(payload),
                "priority": priority,
                "start_in": start_in or None,
                "start_at": start_at,
                "nonce": names.check_nonce(nonce) if nonce else None,
            },
            by=by or session.host.signature,
            done=lambda error: _added(ident, error),
        )
        return session.task(found)

    def room(self, most: int, seconds: float = 0.0) -> bool:

        def attempt() -> bool | None:
            return self._session.get("/v1/room", most=most).get("room") is True or None

        return bool(self.wait_for(attempt, seconds))

    # The worker

    def claim(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        nonce: str = "",
    ) -> RemoteClaim | None:
        terms = self._terms(owner, ttl, metadata, process, nonce)
        if ident is not None:
            names.escape(ident)
        return claims.take(
            self._session,
            "/v1/claims",
            "the claim",
            terms,
            {"id": ident, "owner": owner, "metadata": terms.metadata or None},
        )

    def claim_many(
        self,
        count: int,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> list[Claim]:
        found: list[Claim] = []
        for _ in range(check_count(count)):
            try:
                claim = self.claim(owner=owner, ttl=ttl, metadata=metadata, process=process)
            except DibsError:
                if found:
                    break
                raise
            if claim is None:
                break
            found.append(claim)
        return found

    def attach(self, name: str) -> RemoteClaim:
        return claims.attach(self._session, name)

    def resume(
        self,
        ident: str,
        *,
        owner: str | None = None,
        name: str = "",
        ttl: float | None = None,
        metadata: str | None = None,
        process: Process | int | None = None,
        nonce: str = "",
    ) -> RemoteClaim:
        terms = self._terms(owner, ttl, metadata, process, nonce)
        names.check_text("a name", name)
        found = claims.take(
            self._session,
            "/v1/resume",
            "the resume",
            terms,
            {
                "id": names.check_text("an id", ident) or None,
                "name": name or None,
                "owner": owner,
                "metadata": metadata,
            },
        )
        assert found is not None  # it is refused instead
        return found

    # Locks

    def acquire(
        self,
        ident: str,
        *,
        slots: int = 1,
        lease: str = "",
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        nonce: str = "",
        wait: float = 0.0,
    ) -> RemoteClaim:
        from dibs.model.slots import check_slots

        terms = self._terms(owner, ttl, metadata, process, nonce)
        names.escape(ident)
        check_slots(slots)

        def attempt() -> RemoteClaim | None:
            return claims.take(
                self._session,
                "/v1/acquire",
                f"the acquire of {ident!r}",
                terms,
                {
                    "id": ident,
                    "slots": slots,
                    "lease": lease or None,
                    "owner": owner,
                    "metadata": terms.metadata or None,
                },
            )

        found = self.wait_for(attempt, wait)
        assert found is not None  # `Held` is raised instead
        return found

    def status(self, ident: str) -> LockStatus:
        from dibs.model.answers import LockStatus

        names.escape(ident)
        found: LockStatus = self._read(LockStatus, "lock", f"/v1/locks/{quoted(ident)}")
        return found

    # The janitor

    def reap(self) -> Reaped:
        from dibs.model.answers import Reaped

        session = self._session
        found: Reaped = session.value(Reaped, session.change("/v1/reap", "the reap"), "reaped")
        return found

    def check(self) -> list[Finding]:
        return self._findings(self._session.get("/v1/check"), "findings")

    def repair(self, repaired: Callable[[Finding], None] | None = None) -> list[Finding]:
        found = self._session.change("/v1/repair", "the repair")
        if repaired is not None:
            for each in self._findings(found, "repaired"):
                repaired(each)
        return self._findings(found, "left")

    def _findings(self, found: Answer, key: str) -> list[Finding]:
        from dibs.model.answers import Finding

        made: list[Finding] = self._session.value(list[Finding], found, key)
        given = found[key]
        can = [each.get("repairable") is True for each in given]
        return [
            each._replace(repair=self.repair) if may else each
            for each, may in zip(made, can, strict=True)
        ]

    def probe(self, peer: str = "") -> Iterator[Ability]:
        raise BadName(f"{self._session.label}: the storage of a server is probed where it is")

    def forget(self, ident: str) -> None:
        for _, refusal in self.forget_each([ident]):
            if refusal is not None:
                raise refusal

    def forget_each(self, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
        from dibs.remote.problems import error_of

        session = self._session
        session.refuse_read_only()
        found: dict[str, DibsError | None] = {}
        for ident in dict.fromkeys(idents):
            try:
                names.escape(ident)
                found[ident] = None
            except DibsError as refusal:
                found[ident] = refusal
        wanted = [ident for ident, refusal in found.items() if refusal is None]
        for at in range(0, len(wanted), _FORGOTTEN):
            part = wanted[at : at + _FORGOTTEN]
            rows = session.change("/v1/forget", "the forget", {"ids": part}).get("ledger")
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict) and row.get("status") != "forgotten":
                    refused = error_of(session, 409, row)
                    assert isinstance(refused, DibsError)
                    found[str(row.get("id"))] = refused
        return list(found.items())

    def purge(self, older_than: float) -> int:
        seconds = refusals.check_age(older_than)
        found = self._session.change(
            "/v1/purge", "the purge", {"older_than": max(0, min(seconds, _AGES))}
        )
        return int(self._session.value(int, found, "purged"))

    # The operator: each act takes the exact name that the operator saw

    def force_release(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        if not names.check_text("a reason", reason).strip():
            raise refusals.no_reason()
        return self._act(name, "force-release", by, bulk, reason=reason_of(reason))

    def reap_claim(
        self, name: str, reason: str = "", *, by: str = "", bulk: str = "", asked: bool = True
    ) -> Task:
        return self._act(name, "reap", by, bulk, reason=reason_of(reason), asked=asked)

    def resolve(self, text: str) -> list[Resolved]:
        return lists.resolve(text, lambda wanted: reading.find_each(self._session, wanted))

    def requeue(
        self,
        name: str,
        reason: str = "",
        *,
        by: str = "",
        bulk: str = "",
        keep_attempts: bool = False,
    ) -> Task:
        keep = True if keep_attempts else None
        return self._act(name, "requeue", by, bulk, reason=reason_of(reason), keep_attempts=keep)

    def requeueable(self, name: str) -> Task:
        self._check_exact(name)
        return self._session.task(self._session.get(reading.named(name, "requeueable")))

    def park(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        return self._act(name, "park", by, bulk, reason=reason_of(reason))

    def answer(self, name: str, text: str, *, by: str = "", bulk: str = "") -> Task:
        asking.check_question("an answer", text)
        return self._act(name, "answer", by, bulk, text=text)

    def prioritize(self, name: str, priority: int, *, by: str = "", bulk: str = "") -> Task:
        names.check_priority(priority)
        return self._act(name, "prioritize", by, bulk, priority=priority)

    prioritise = prioritize

    def _act(self, name: str, verb: str, by: str, bulk: str, **fields: object) -> Task:
        self._check_exact(name)
        names.check_text("who acts", by)
        fields["bulk"] = names.check_bulk(bulk) or None
        session, by = self._session, by or self._session.host.signature
        before = () if "/" in name else names.exact(name)
        done = reading.sought(session, verb, (*before, name), by)
        path = reading.named(name, verb)
        return session.task(session.change(path, f"{name}: {verb}", fields, by=by, done=done))

    def _check_exact(self, name: str) -> None:
        """Refuse an id, with the exact names that it has now."""
        if not names.is_exact(names.check_text("a name", name)):
            now: tuple[Task, ...] = ()
            with suppress(BadName):
                now = self.find(name)
            raise refusals.not_exact(name, now)

    # What can be undone

    def undo_steps(self, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
        return undoing.undo_steps(self.log, ident)

    def not_undoable(self, event: Event, now: Iterable[Task] | None = None) -> str:
        if event.verb in events.ON_BOARD:
            return self._pause_not_undoable(event)
        return undoing.not_undoable(event, self.find(event.id) if now is None else now)

    def _pause_not_undoable(self, event: Event) -> str:
        steps = self._session.get("/v1/undo", limit=100).get("steps")
        for step in steps if isinstance(steps, list) else ():
            for row in step if isinstance(step, list) else ():
                if self._session.read(events.Event, row) == event:
                    return str(row.get("why_not", ""))
        return "it has already been undone"

    def undoable(self, what: str | Event | None = None) -> Event | None:
        return undoing.undoable(self.log, self.find, self._pause_not_undoable, what)

    def last_acts(self, idents: Iterable[str]) -> LastActs:
        return undoing.LastActs(self.log, idents)

    def undo(
        self,
        what: str | Event | None = None,
        *,
        by: str = "",
        last: LastActs | None = None,
        bulk: str = "",
    ) -> Task | None:
        names.check_text("who acts", by)
        names.check_bulk(bulk)
        session = self._session
        session.refuse_read_only()
        event = undoing.undoable(self.log, self.find, self._pause_not_undoable, what, last)
        if event is None:
            raise UnknownId("there is nothing to undo: the log has no act, or all are undone")
        by = by or session.host.signature
        what_for = f"the undo of {event.verb}"
        if event.verb in events.ON_BOARD:
            session.change("/v1/undo", what_for, {"name": event.dst, "before": event.src}, by=by)
            return None
        path, given = reading.named(event.dst, "undo"), {"before": event.src, "bulk": bulk or None}
        done = reading.sought(session, "undo", (event.dst,), by)
        return session.task(session.change(path, what_for, given, by=by, done=done))

    # Pauses

    def pause_claims(
        self,
        reason: str,
        *,
        host: str = "",
        seconds: float | None = None,
        locks: bool = False,
        by: str = "",
        nonce: str = "",
    ) -> tuple[Pause, tuple[Task, ...]]:
        from dibs.model.pauses import Pause
        from dibs.model.task import Task

        pauses.check_terms(reason, host, seconds)
        names.check_text("who acts", by)
        session = self._session
        given = {"reason": reason, "host": host or None, "seconds": seconds, "locks": bool(locks)}
        given["nonce"] = names.check_nonce(nonce) if nonce else None
        by = by or session.host.signature
        found = session.change("/v1/pauses", "the pause", given, by=by)
        made: Pause = session.value(Pause, found, "pause")
        return made, session.value(tuple[Task, ...], found, "holders")

    def resume_claims(self, names: Iterable[str], *, by: str = "") -> tuple[Pause, ...]:
        return self._resume_claims(names, by)

    def _resume_claims(self, given: Iterable[str], by: str) -> tuple[Pause, ...]:
        names.check_text("who acts", by)
        wanted = list(dict.fromkeys(pausing.check_name(name) for name in given))
        session = self._session
        session.refuse_read_only()
        if not wanted:
            return ()
        by = by or session.host.signature
        found = session.change("/v1/pauses/resume", "the resume", {"names": wanted}, by=by)
        return self._pauses(found, "ended")

    def pauses(self) -> tuple[Pause, ...]:
        return self._pauses(self._session.get("/v1/pauses"))

    def _pauses(self, found: Answer, key: str = "pauses") -> tuple[Pause, ...]:
        from dibs.model.pauses import Pause

        made: tuple[Pause, ...] = self._session.value(tuple[Pause, ...], found, key)
        return made

    # The reader

    def watch(
        self, report: Callable[[Delta], object], hints: HintSource | None = None
    ) -> RemoteWatch:
        session = self._session
        return RemoteEngine().watch(
            session.label, report, hints, poll=1.0, read_only=session.read_only
        )

    def snapshot(self, *, ended: bool = True) -> Snapshot:
        return reading.snapshot(self._session, ended=ended)

    def count_apart(self) -> dict[str, int]:
        found = self._read(dict[str, int], "counts", "/v1/counts")
        return dict.fromkeys(reading.APART, 0) | dict(found)

    def entries(
        self, snapshot: Snapshot | None = None, states: Container[str] | None = None
    ) -> list[Entry]:
        seen = snapshot if snapshot is not None else self.snapshot()
        return reading.entries(self._session, seen, states)

    def entries_of(self, tasks: Iterable[Task]) -> list[Entry]:
        return reading.entries_of(self._session, names.check_tasks(tasks))

    def claims_with(self, key: str, value: str) -> list[Entry]:
        from dibs.model.entries import Entry

        names.check_text("a key", key)
        if not names.check_text("a value", value):
            return []
        found: list[Entry] = self._read(list[Entry], "entries", "/v1/claims", key=key, value=value)
        return found

    def find(self, ident: str) -> tuple[Task, ...]:
        return reading.find(self._session, ident)

    def why_missing(self, ident: str) -> str:
        names.escape(ident)
        try:
            self._session.get(f"/v1/tasks/{quoted(ident)}")
        except DibsError as error:
            return str(error)
        return refusals.not_there(ident)

    def holder(self, task: Task) -> Holder | None:
        return reading.holder(self._session, names.check_task(task))

    def evidence(
        self, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
    ) -> Evidence:
        if not names.check_task(task).live:
            raise refusals.no_holder(task)
        from dibs.model.evidence import Evidence
        from dibs.proofs import beside

        path = reading.named(task.name, "evidence")
        found: Evidence = self._read(Evidence, "evidence", path, cadence=cadence)
        # The caller knows all claims of the host; a request has room for the names of a few.
        return found._replace(proofs=(*found.proofs, *beside(found.holder, found.now, others)))

    def questions(self, task: Task) -> tuple[Question, ...]:
        return reading.questions(self._session, names.check_task(task))

    def outputs(self, ident: str) -> list[KeptOutput]:
        from dibs.model.outputs import KeptOutput

        names.escape(ident)
        found: list[KeptOutput] = self._read(list[KeptOutput], "outputs", "/v1/outputs", id=ident)
        return found

    def output(self, claim: str, since: int = 0, last: int = 1 << 30) -> Output | None:
        from dibs.model.outputs import Output

        names.exact(claim)
        path = f"/v1/claims/{quoted(claim)}/output"
        found: Output | None = self._read(
            Output | None, "output", path, since=since, last=min(last, 1 << 24)
        )
        return found

    def result(self, task: Task) -> bytes | None:
        if not names.check_task(task).claim:
            return None
        session = self._session
        answer = session.get(reading.named(task.name, "result"))
        return reading.content(session, answer, "result")

    def payload(self, task: Task, limit: int = 1 << 20) -> bytes:
        return reading.payload(self._session, names.check_task(task), limit)

    def _read(self, kind: object, field: str, where: str, /, **query: object) -> Any:
        return self._session.value(kind, self._session.get(where, **query), field)

    # Waiting

    def wait_for(
        self,
        attempt: Callable[[], Found | None],
        seconds: float,
        *,
        presence: Waits | None = None,
    ) -> Found | None:
        if check_wait(seconds) <= 0:
            return attempt()
        return waits.wait_for(self.retry(), self._session, attempt, seconds, presence)

    def presence(self, owner: str | None = None) -> RemotePresence:
        return waiting.RemotePresence(self._session, owner)

    def waiters(self) -> tuple[Waiter, ...]:
        from dibs.model.waiters import Waiter

        found: tuple[Waiter, ...] = self._read(tuple[Waiter, ...], "waiters", "/v1/waiters")
        return found

    def wait_ended(
        self,
        tasks: Iterable[Task],
        seconds: float = float("inf"),
        ended: Callable[[Task], object] | None = None,
    ) -> list[Task | None]:
        found = names.check_tasks(tasks)
        return waiting.wait_ended(self._session, found, check_wait(seconds), ended)

    def retry(self) -> RemoteRetry:
        return waiting.RemoteRetry(self._session)

    def pause(self, seconds: float) -> None:
        waiting.pause(self._session, seconds)

    def _terms(
        self,
        owner: str | None,
        ttl: float | None,
        metadata: str | None,
        process: Process | int | None,
        nonce: str = "",
    ) -> Terms:
        self._session.refuse_read_only()
        return Terms(self._session.host, Settings(), owner, ttl, metadata, process, nonce)


def _added(ident: str, error: DibsError | None) -> None:
    """After a lost answer, what has the id is perhaps this caller's."""
    if isinstance(error, Exists):
        raise Uncertain(
            f"the add of {ident!r}: its answer was lost, and now the id exists: "
            "`dibs show` says what it is"
        ) from error


def _content(payload: bytes | IO[bytes]) -> dict[str, str]:
    """The payload as it is sent; `BadName` if it is too long, or no bytes."""
    if isinstance(payload, (bytes, bytearray)):
        found: object = bytes(payload)
    elif not hasattr(payload, "read"):
        raise BadName(f"a payload must be bytes, got {type(payload).__name__}: encode it")
    else:
        try:
            found = payload.read(_PAYLOAD + 1)
        except OSError as error:
            what = getattr(payload, "name", "the payload")
            raise BadName(f"{what}: {error.strerror}: give a file that can be read") from error
    if not isinstance(found, bytes):
        raise BadName("a payload must be bytes: open its file with mode 'rb'")
    if len(found) > _PAYLOAD:
        raise BadName(
            f"a payload over HTTP must have at most {_PAYLOAD:,} bytes: put it elsewhere, and its "
            "address here"
        )
    if not found:
        return {}
    from base64 import b64encode

    return {"payload_base64": b64encode(found).decode()}
