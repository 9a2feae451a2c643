"""The engine for boards in PostgreSQL with all its verbs, and the entry points that open one."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from typing import IO, TYPE_CHECKING, TypeVar

from dibs.blocks import Blocks
from dibs.host import Host, Terms, this_host
from dibs.model import names
from dibs.model.capabilities import Capability
from dibs.model.errors import BadName, BoardMissing, StorageError
from dibs.model.lazy import LazyModule
from dibs.model.sample import SECOND
from dibs.model.settings import Settings, check_count, check_wait
from dibs.model.task import ASKED, LATER, WAITING, Task
from dibs.postgres import claims
from dibs.postgres.addresses import location_of
from dibs.postgres.sessions import Session

if TYPE_CHECKING:
    from dibs import proofs
    from dibs import waiting as waits
    from dibs.model import delays, events, lists, refusals, undoing
    from dibs.model.answers import Finding, LockStatus, Reaped, Resolved
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.errors import DibsError
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
    from dibs.model.undoing import LastActs
    from dibs.model.waiters import Waiter
    from dibs.postgres import (
        acts,
        checkup,
        locks,
        outputs,
        pausing,
        producing,
        questions,
        reading,
        reaping,
        schema,
        waiting,
    )
    from dibs.postgres.claims import PostgresClaim
    from dibs.postgres.copying import PostgresReader, PostgresWriter
    from dibs.postgres.log import PostgresLog
    from dibs.postgres.waiting import PostgresPresence, PostgresRetry
    from dibs.postgres.watch import PostgresWatch
    from dibs.protocols import Claim
    from dibs.waiting import Waits
else:
    acts, checkup, locks, outputs, pausing, producing, questions, reading, reaping = map(
        LazyModule,
        (
            "dibs.postgres.acts",
            "dibs.postgres.checkup",
            "dibs.postgres.locks",
            "dibs.postgres.outputs",
            "dibs.postgres.pausing",
            "dibs.postgres.producing",
            "dibs.postgres.questions",
            "dibs.postgres.reading",
            "dibs.postgres.reaping",
        ),
    )
    schema, waiting, waits, proofs, delays, events, lists, refusals, undoing = map(
        LazyModule,
        (
            "dibs.postgres.schema",
            "dibs.postgres.waiting",
            "dibs.waiting",
            "dibs.proofs",
            "dibs.model.delays",
            "dibs.model.events",
            "dibs.model.lists",
            "dibs.model.refusals",
            "dibs.model.undoing",
        ),
    )

Found = TypeVar("Found")
_STALE = f"""
SELECT dibs.clock(), EXISTS (SELECT FROM dibs.claim c
  WHERE c.process OR c.beat + {claims.TTL} * 1e9 < dibs.clock())
"""
"""Whether there is a claim that a worker may have to reap first, and the time."""


def open_database(
    where: str | os.PathLike[str],
    *,
    create: bool = False,
    read_only: bool = False,
) -> PostgresBoard:
    """The board in a database; with `create` its tables are made if there are none."""
    session = Session(str(where), this_host(), read_only=read_only)
    try:
        session.connect()
    except BoardMissing:
        if not create or read_only:
            raise
        schema.initialize(str(where))
        session.connect()
    return PostgresBoard(session)


class PostgresEngine:
    """The engine for boards in databases."""

    def locate(self, where: str | os.PathLike[str]) -> Location:
        """The location of the database, whose password is never shown."""
        return location_of(str(where))

    open = staticmethod(open_database)

    def initialize(self, where: str, *, unmounted: bool) -> tuple[PostgresBoard, str]:
        """Make a database a board; also returns why not to use it, or an empty text."""
        schema.initialize(where)
        board = open_database(where)
        unfit = board.durability == "durable: not"
        return board, "fsync is off, so a crash of the server can lose tasks" if unfit else ""

    def watch(
        self,
        where: str,
        report: Callable[[Delta], object],
        hints: HintSource | None,
        *,
        poll: float,
        read_only: bool,
    ) -> PostgresWatch:
        """Follow the board in a database, from now on or as soon as it exists."""
        from dibs.postgres.watch import PostgresWatch

        found = PostgresWatch(where, report, open_database)
        found.start()
        return found

    def upgrade(self, where: str) -> bool:
        """Bring the tables of a board up to date; False if they are."""
        return schema.upgrade(where)

    def make_roles(self, where: str) -> tuple[str, ...]:
        """Make the roles of a reader, a worker and an operator."""
        return schema.make_roles(where)

    def identity(self, where: str) -> str:
        """The cluster and the database, whatever host or standby leads to it."""
        from dibs.postgres.copying import identity

        return identity(where)

    def reader(self, where: str) -> PostgresReader:
        """Reads the complete board in a database, to copy it."""
        from dibs.postgres.copying import PostgresReader

        return PostgresReader(where)

    def writer(self, where: str) -> PostgresWriter:
        """Writes a complete board in a database that has none, or an empty one."""
        from dibs.postgres.copying import PostgresWriter

        return PostgresWriter(where)


class PostgresBoard(Blocks):
    """A board in a database; `dibs.board.Board` documents each verb."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._swept = 0

    def __repr__(self) -> str:
        return f"<board {self._session.label}>"

    def for_host(self, host: str = "", *, step: float = 0.0) -> PostgresBoard:
        return PostgresBoard(self._session.for_host(host, int(step * SECOND)))

    def close(self) -> None:
        self._session.close()

    @property
    def location(self) -> Location:
        return location_of(self._session.where)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset((Capability.CHECK, Capability.LONG_PAYLOADS, Capability.LOCAL_EVIDENCE))

    @property
    def settings(self) -> Settings:
        return self._session.settings

    @property
    def host(self) -> Host:
        return self._session.host

    @property
    def durability(self) -> str:
        """What an acknowledged change survives, in a few words."""
        return self._session.server.durability

    @property
    def log(self) -> PostgresLog:
        from dibs.postgres.log import PostgresLog

        return PostgresLog(self._session)

    def require_mounted(self) -> None:
        """A database is no mount."""

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
        return producing.add(self._session, ident, payload, priority, start_in, start_at, by, nonce)

    def room(self, most: int, seconds: float = 0.0) -> bool:

        def attempt() -> bool | None:
            (count,) = self._session.row(
                "SELECT count(*) FROM (SELECT 1 FROM dibs.task "
                "WHERE state IN ('available', 'later') LIMIT %s) few",
                (most + 1,),
            )
            return bool(count <= most) or None

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
    ) -> PostgresClaim | None:
        terms = self._terms(owner, ttl, metadata, process, nonce)
        self._session.refuse_read_only()
        if ident is not None:
            return self._claim_one(ident, terms)
        swept = self._session.boottime() >= self._swept
        if swept:
            self._sweep()
        claim = claims.take(self._session, None, terms)
        if claim is None and not swept and self._sweep():
            claim = claims.take(self._session, None, terms)
        return claim

    def claim_many(
        self,
        count: int,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> list[Claim]:
        check_count(count)
        terms = self._terms(owner, ttl, metadata, process)
        self._session.refuse_read_only()
        swept = self._session.boottime() >= self._swept
        if swept:
            self._sweep()
        found = claims.take_many(self._session, count, terms)
        if not found and not swept and self._sweep():
            found = claims.take_many(self._session, count, terms)
        return list(found)

    def attach(self, name: str) -> PostgresClaim:
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
    ) -> PostgresClaim:
        terms = self._terms(owner, ttl, metadata, process, nonce)
        return locks.resume(self._session, ident, terms, name)

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
    ) -> PostgresClaim:
        terms = self._terms(owner, ttl, metadata, process, nonce)
        found = self.wait_for(
            lambda: locks.acquire(self._session, ident, slots, terms, lease), wait
        )
        assert found is not None  # `Held` is raised instead
        return found

    def status(self, ident: str) -> LockStatus:
        return locks.status(self._session, ident)

    # The janitor

    def reap(self) -> Reaped:
        return reaping.reap(self._session)

    def check(self) -> list[Finding]:
        return checkup.check(self._session)

    def repair(self, repaired: Callable[[Finding], None] | None = None) -> list[Finding]:
        return self.check()

    def probe(self, peer: str = "") -> Iterator[Ability]:
        raise BadName(f"{self._session.label}: a database needs no probe: `dibs check` looks at it")

    def forget(self, ident: str) -> None:
        for _, refusal in self.forget_each([ident]):
            if refusal is not None:
                raise refusal

    def forget_each(self, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
        return producing.forget_each(self._session, idents)

    def purge(self, older_than: float) -> int:
        return acts.purge(self._session, older_than)

    # The operator: each act takes the exact name that the operator saw

    def force_release(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.force_release(self._session, name, reason, by, bulk)

    def reap_claim(
        self, name: str, reason: str = "", *, by: str = "", bulk: str = "", asked: bool = True
    ) -> Task:
        return acts.reap_claim(self._session, name, reason, by, asked=asked, bulk=bulk)

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
        return acts.requeue(self._session, name, reason, by, keep_attempts=keep_attempts, bulk=bulk)

    def requeueable(self, name: str) -> Task:
        return acts.seen(self._session, name, *acts.REQUEUED)

    def park(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.park(self._session, name, reason, by, bulk)

    def answer(self, name: str, text: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.answer(self._session, name, text, by, bulk)

    def undo_steps(self, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
        return undoing.undo_steps(self.log, ident)

    def not_undoable(self, event: Event, now: Iterable[Task] | None = None) -> str:
        if event.verb in events.ON_BOARD:
            return pausing.why_not_undoable(self._session, event)
        return undoing.not_undoable(event, self.find(event.id) if now is None else now)

    def undoable(self, what: str | Event | None = None) -> Event | None:
        return acts.undoable(self._session, what)

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
        return acts.undo(self._session, what, by, last, bulk)

    def prioritize(self, name: str, priority: int, *, by: str = "", bulk: str = "") -> Task:
        return acts.prioritize(self._session, name, priority, by, bulk)

    prioritise = prioritize

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
        return pausing.pause_claims(
            self._session, reason, host=host, seconds=seconds, locks=locks, by=by, nonce=nonce
        )

    def resume_claims(self, names: Iterable[str], *, by: str = "") -> tuple[Pause, ...]:
        return pausing.resume_claims(self._session, names, by)

    def pauses(self) -> tuple[Pause, ...]:
        return pausing.in_force(self._session, self._session.now().fs)

    # The reader

    def watch(
        self, report: Callable[[Delta], object], hints: HintSource | None = None
    ) -> PostgresWatch:
        return PostgresEngine().watch(
            self._session.where, report, hints, poll=1.0, read_only=self._session.read_only
        )

    def snapshot(self, *, ended: bool = True) -> Snapshot:
        return reading.snapshot(self._session, ended=ended)

    def count_apart(self) -> dict[str, int]:
        return reading.count_apart(self._session)

    def entries(
        self, snapshot: Snapshot | None = None, states: Container[str] | None = None
    ) -> list[Entry]:
        seen = snapshot if snapshot is not None else self.snapshot()
        return reading.entries(self._session, seen, states)

    def entries_of(self, tasks: Iterable[Task]) -> list[Entry]:
        return reading.entries_of(self._session, names.check_tasks(tasks))

    def claims_with(self, key: str, value: str) -> list[Entry]:
        names.check_text("a key", key)
        return reading.claims_with(self._session, key, names.check_text("a value", value))

    def find(self, ident: str) -> tuple[Task, ...]:
        return reading.find(self._session, ident)

    def why_missing(self, ident: str) -> str:
        return refusals.not_there(ident)

    def holder(self, task: Task) -> Holder | None:
        return reading.holder(self._session, names.check_task(task))

    def evidence(
        self, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
    ) -> Evidence:
        if not names.check_task(task).live:
            raise refusals.no_holder(task)
        session = self._session
        now = session.now()
        suspect = reaping.suspect(session, task)
        if suspect is None:
            raise reading.changed(session, task.name, task.id, "there is no evidence to show")
        from dibs.model.evidence import Verdict

        found = suspect.holder
        gone = session.host.gone(found.process) if found.process is not None else None
        doubt = reaping.doubt_of(session, suspect, now)
        verdict = Verdict.DEAD if gone else reaping.verdict(session, suspect, now)
        if verdict is Verdict.UNKNOWN:
            reaping.doubt(session, [suspect], now)
        return proofs.weigh(session.host, found, now, verdict, gone, others, cadence, doubt=doubt)

    def questions(self, task: Task) -> tuple[Question, ...]:
        return questions.asked_and_answered(self._session, names.check_task(task))

    def payload(self, task: Task, limit: int = 1 << 20) -> bytes:
        found = claims.payload(self._session, names.check_task(task), limit)
        if found is None:
            raise reading.changed(self._session, task.name, task.id, "nothing was read")
        return found

    def outputs(self, ident: str) -> list[KeptOutput]:
        return outputs.kept(self._session, ident)

    def output(self, claim: str, since: int = 0, last: int = 1 << 30) -> Output | None:
        return outputs.read(self._session, outputs.stem_of(claim), since, last)

    def result(self, task: Task) -> bytes | None:
        found = names.check_task(task)
        return outputs.result(self._session, found.stem) if found.claim else None

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

    def presence(self, owner: str | None = None) -> PostgresPresence:
        return waiting.PostgresPresence(self._session, owner)

    def waiters(self) -> tuple[Waiter, ...]:
        return reading.waiters(self._session, self._session.now().fs)

    def wait_ended(
        self,
        tasks: Iterable[Task],
        seconds: float = float("inf"),
        ended: Callable[[Task], object] | None = None,
    ) -> list[Task | None]:
        found = names.check_tasks(tasks)
        return waiting.wait_ended(self._session, found, check_wait(seconds), ended)

    def retry(self) -> PostgresRetry:
        return waiting.PostgresRetry(self._session)

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
        session = self._session
        return Terms(session.host, session.settings, owner, ttl, metadata, process, nonce)

    def _claim_one(self, ident: str, terms: Terms) -> PostgresClaim:
        session = self._session
        paused, _ = pausing.look(session, lock=False)
        if paused is not None:
            raise paused
        without_holder = ""
        while True:
            found = reading.find(session, ident)
            if not found:
                raise refusals.unknown(ident)
            (task,) = found
            if task.kind == "lock":
                raise refusals.is_lock(ident)
            if task.state == ASKED:
                asked = questions.asked_and_answered(session, task)
                owner = asked[-1].owner if asked else ""
                raise refusals.waits_for_answer(task, owner or task.owner)
            if not task.live and task.state not in WAITING:
                raise refusals.has_ended(ident, found)
            now = session.now()
            if task.state == LATER and not delays.is_due(task, now.fs):
                raise refusals.starts_later(task, (task.not_before * SECOND - now.fs) / SECOND)
            if task.live:
                suspect = reaping.suspect(session, task)
                if suspect is None:  # it ended meanwhile, or its row was removed by hand
                    if task.name == without_holder:
                        raise StorageError(f"{task.name} has no row of its claim: see `dibs check`")
                    without_holder = task.name
                    continue
                if reaping.patience(session, suspect, now) > 0:
                    raise locks.held_by(session, suspect)
                reaping.reap_one(session, suspect.holder, now)
                continue
            claim = claims.take(session, task, terms)
            if claim is not None:
                return claim

    def _sweep(self) -> bool:
        """Reap now and then while claiming: an expired claim can be claimed like any task."""
        session = self._session
        start = session.boottime()
        moment, stale = session.row(_STALE)
        session.sample(moment, start)
        reaped = bool(stale) and reaping.sweep(session)
        spent = session.boottime() - start
        self._swept = start + max(int(session.settings.ttl / 4 * SECOND), 20 * spent)
        return reaped
