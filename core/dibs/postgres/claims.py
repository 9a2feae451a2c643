"""A claim as its owner uses it: make it, beat, verify, and end it in one of three ways."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from dibs.blocks import MARGIN, ClaimBase
from dibs.model import names
from dibs.model.errors import DibsError, Lost, Stop, StorageError, Uncertain, Unclaimable
from dibs.model.lazy import LazyModule
from dibs.model.records import TTL_MAX, Record, decode, encode
from dibs.model.sample import SECOND
from dibs.model.task import ASKED, DONE, HELD, Task
from dibs.postgres.sessions import AGAIN, PATIENCE
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.host import Terms
    from dibs.model import delays, refusals, slots
    from dibs.model import outputs as saying
    from dibs.model import questions as asking
    from dibs.model.questions import Question
    from dibs.postgres import pausing, questions, reading, steps
    from dibs.postgres.outputs import OutputRows
    from dibs.postgres.sessions import Session
else:
    delays, refusals, slots, saying, asking = map(
        LazyModule,
        (
            "dibs.model.delays",
            "dibs.model.refusals",
            "dibs.model.slots",
            "dibs.model.outputs",
            "dibs.model.questions",
        ),
    )
    pausing, questions, reading, steps = map(
        LazyModule,
        (
            "dibs.postgres.pausing",
            "dibs.postgres.questions",
            "dibs.postgres.reading",
            "dibs.postgres.steps",
        ),
    )

TTL = f"least(greatest(c.ttl, 0), {TTL_MAX})"
"""The ttl of a claim in SQL. A row from before the limits may have any number, even NaN, and every
worker looks at it."""
_LOOKS = 5
_CONFIRM = """
WITH beaten AS MATERIALIZED (SELECT dibs.beat(%s, %s, %s, %s, NULL) AS done)
SELECT b.done, dibs.durable()::text FROM beaten b
"""
"""A heartbeat that survives a crash of the server, so that none undoes the claim after it."""
_MADE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 7305801))"
"""Waits until a step that makes a claim has ended."""
_TAKE = "SELECT * FROM dibs.take(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_TAKE_NAMED = _TAKE.replace("take(", "take_named(")
_TAKE_MANY = "SELECT * FROM dibs.take_many(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


class PostgresClaim(ClaimBase):
    """A claim on a task of a board in a database; `dibs.protocols.Claim` documents each verb."""

    def __init__(self, session: Session, task: Task, record: Record, deadline: int = 0) -> None:
        self._session = session
        self.task = task
        self.record = record
        self.deadline = deadline
        self._eid = names.escape(task.id)
        self._refused: set[str] = set()

    @property
    def ttl(self) -> float:
        return self.record.ttl if self.record.ttl is not None else self._session.settings.ttl

    @property
    def path(self) -> str | None:
        return None

    def payload(self, limit: int = 1 << 30) -> bytes:
        found = payload(self._session, self.task, limit)
        if found is None:
            raise self._lost("read")
        return found

    def beat(
        self,
        *,
        ttl: float | None = None,
        metadata: str | None = None,
        note: str | None = None,
    ) -> None:
        """Extend the lease, counted from before the call; it counts only if it ends in time."""
        said = None if note is None else packed(saying.check_note(note))
        self._beat("SELECT dibs.beat(%s, %s, %s, %s, %s)", ttl, metadata, (said,))

    def confirm(self, *, ttl: float | None = None, metadata: str | None = None) -> None:
        """Beat before an answer names this claim again: whoever made it does not undo it then."""
        self._beat(_CONFIRM, ttl, metadata)

    def _beat(
        self,
        sql: str,
        ttl: float | None,
        metadata: str | None,
        more: tuple[object, ...] = (),
    ) -> None:
        record = self._changed_record(ttl, metadata)
        session, until = self._session, self._until()
        start = session.boottime()
        if start >= until:
            stop = refusals.stop_or_commit(self.task)
            raise self._too_late(f"its lease could not be renewed in time: {stop}")
        data = encode(record) if record is not self.record else None
        (beaten, *_) = session.step(
            sql,
            (self._eid, self.task.name, ttl, data, *more),
            f"{self.name}: the heartbeat",
            until if self.deadline else min(until, start + PATIENCE),
        )
        if not beaten:
            raise self._lost()
        if session.boottime() >= until:
            raise Uncertain(f"{self.name}: the server answered after the lease had ended; stop")
        self.record = record
        self.deadline = start + int(MARGIN * self.ttl * SECOND)

    def note(self, text: str) -> None:
        """Say what the work is doing; the lease is not renewed."""
        note = packed(saying.check_note(text))
        (noted,) = self._session.step(
            "SELECT dibs.note(%s, %s, %s)", (self._eid, self.task.name, note), f"{self.name}: note"
        )
        if not noted:
            raise self._lost("note")

    def keep_output(self, limit: int) -> OutputRows:
        """Where the work's output is kept, at most `limit` bytes of it."""
        from dibs.postgres.outputs import OutputRows

        return OutputRows(self._session, self.task, limit)

    def verify(self) -> None:
        """Return only if the claim is still the caller's and its lease runs."""
        self._prove("verify")

    def done(self, result: bytes | None = None) -> Task:
        """Commit the finished work."""
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if result is not None:
            saying.check_result(result)
        return self._end("done", f"{DONE}/{self.name}", result=result)

    def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Give up after a failure: requeue the task, or fail it at the limit of attempts."""
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if retry_in is not None:
            delays.check_delay(retry_in)
        dst = steps.next_after_failure(self._session, self.task, retry_in=retry_in)
        return self._end("fail", dst, reason)

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Make it available again, no attempt counted; a lock's expired lease is refused."""
        if delays.check_delay(start_in) and self.task.state == HELD:
            raise refusals.free_at_once(self.name)
        if self.task.state == HELD:
            self._prove("release")
        dst = steps.requeued_name(self.task, self.task.attempts)
        if start_in:
            dst = steps.later_name(self._session, self.task, self.task.attempts, start_in)
        return self._end("release", dst, reason)

    def release_unconfirmed(self, reason: str = "") -> bool:
        """Release it unless anyone has beaten it since it was made; whether it was released."""
        session, by = self._session, self.record.owner
        rows = session.rows(
            "SELECT since FROM dibs.claim WHERE eid = %s AND name = %s", (self._eid, self.task.name)
        )
        if not rows:
            return False
        dst = steps.requeued_name(self.task, self.task.attempts)
        outcome = steps.move(session, self.task, dst, "release", by, reason, beat=rows[0][0])
        self._over = outcome == steps.MOVED
        return self._over

    def ask(self, question: str) -> Task:
        """End the claim with a question to a person; no attempt is counted."""
        if self.task.state == HELD:
            raise refusals.cannot_ask(self.name)
        asking.check_question("a question", question)
        session, task = self._session, self.task
        asked = asking.Question(
            task.fence, question, self.record.owner, session.host.name, session.about()
        )
        text = steps.Text(asking.encode_question(asked, task), task.fence)
        by, reason = self.record.owner, asking.summary(question)
        dst = f"{task.stem}.{ASKED}"
        if steps.move(session, task, dst, "ask", by, reason, text=text) == steps.MOVED:
            found = names.read(dst)
            assert found is not None
            return found
        for now in reading.find(session, task.id):
            asked_before = questions.asked_and_answered(session, now)
            if any(each.fence == task.fence for each in asked_before):
                return now
        raise self._lost("ask")

    @cached_property
    def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers."""
        if not self.task.question:
            return ()
        return questions.asked_and_answered(self._session, self.task)

    def _prove(self, verb: str) -> None:
        if self._session.boottime() >= self._until(verb):
            raise self._too_late("its lease was not renewed in time; stop", verb)
        if not self._here():
            raise self._lost(verb)

    def _here(self) -> bool:
        try:
            return bool(
                self._session.rows(
                    "SELECT 1 FROM dibs.claim WHERE eid = %s AND name = %s",
                    (self._eid, self.task.name),
                )
            )
        except StorageError as error:
            raise self._unknown(error) from error

    def _unknown(self, error: StorageError) -> Uncertain:
        doubt = Uncertain(f"{self.name}: the server does not answer: {error}; stop")
        doubt.again = True
        return doubt

    def _end(self, verb: str, dst: str, reason: str = "", result: bytes | None = None) -> Task:
        by = self.record.owner
        moved = steps.move(self._session, self.task, dst, verb, by, reason, result=result)
        if moved != steps.MOVED and not self._ended_as(dst):
            raise self._lost(verb)
        self._over = True
        task = names.read_any(dst)
        assert task is not None
        if moved != steps.MOVED and result is not None:
            from dibs.postgres import outputs

            if outputs.result(self._session, self.name) != result:
                raise refusals.other_result(task)
        return task

    def _ended_as(self, dst: str) -> bool:
        """Whether an earlier call has ended this claim in the same way: that name has its nonce."""
        made = names.read_any(dst)
        if made is None or made.claim != self.task.claim:
            return False
        return any(task.name == dst for task in reading.find(self._session, self.id))

    def _until(self, verb: str = "beat") -> int:
        """When this claim's lease ends for its owner.

        A process that did not make the claim has no deadline of its own, so it asks the server. A
        lease that is past its ttl is over even if no one has taken the task.
        """
        if self.deadline:
            return self.deadline
        session = self._session
        start = session.boottime()
        try:
            rows = session.rows(
                f"SELECT c.beat, {TTL}, dibs.clock() FROM dibs.claim c "
                "WHERE c.eid = %s AND c.name = %s",
                (self._eid, self.task.name),
            )
        except StorageError as error:
            raise self._unknown(error) from error
        if not rows:
            raise self._lost(verb)
        beat, ttl, now = rows[0]
        if now - beat > ttl * SECOND:
            beat = self._beat_of_history(beat)
        if now - beat > ttl * SECOND:
            self._leave_trace(verb, self.task.name)
            raise refusals.expired(self.task, (now - beat) / SECOND - ttl)
        return start + int(ttl * SECOND) - int(max(0, now - beat))

    def _beat_of_history(self, beat: int) -> int:
        """The last beat once more: on a server that was promoted, leases begin again."""
        session, name = self._session, self.task.name
        with suppress(DibsError):
            session.rows("SELECT dibs.doubt(%s)", ([name],))
            rows = session.rows("SELECT beat FROM dibs.claim WHERE name = %s", (name,))
            return int(rows[0][0]) if rows else beat
        return beat

    def _lost(self, verb: str = "beat") -> Stop:
        """The error for a name that is gone."""
        try:
            now = reading.find(self._session, self.id)
        except StorageError as error:
            return self._unknown(error)
        if not asking.has_asked(
            self.task, now
        ):  # else it ended in order, so operators need no trace
            self._leave_trace(verb)
        return refusals.lost(self.task, now, over=self._over)

    def _too_late(self, why: str, verb: str = "beat") -> Stop:
        """The error for missing the deadline: the claim is lost, or that is unknown."""
        if not self._here():
            gone = self._lost(verb)
            if isinstance(gone, Lost):
                return gone
        return Uncertain(f"{self.name}: {why}")

    def _leave_trace(self, verb: str, still: str = "") -> None:
        """Log for operators that a holder came back to a lost claim, once for each verb.

        `still` is the claim's name if it exists and only the lease has expired.
        """
        if verb not in self._refused:
            self._refused.add(verb)
            from dibs.postgres.log import PostgresLog

            log, by = PostgresLog(self._session), self.record.owner
            log.trace("refused", self._eid, self.name, still, by, verb)


def take(
    session: Session,
    task: Task | None,
    terms: Terms,
    verb: str = "claim",
    *,
    lock: bool = False,
    own: bool = False,
) -> PostgresClaim | None:
    """Claim exactly this name, or the head of the queue without one; None if it is gone.

    `own`: its owner claims it again, which no pause stops. The deadline counts from before the
    call.
    """
    if task is not None and task.fence >= names.FENCE_MAX:
        raise Unclaimable(f"{task.name}: {refusals.FENCE_FULL}", task.name)
    claim = f"{terms.folded}-{terms.nonce or session.nonce()}"
    record = terms.record(session.about())
    src = task.name if task is not None else None
    name, start = _taken(
        session,
        _TAKE_NAMED if terms.nonce else _TAKE,
        (src, claim),
        terms,
        record,
        verb,
        lock=lock,
        own=own,
        made=(claim,),
        named=bool(terms.nonce),
    )
    if not name:
        return None
    taken = names.read(name)
    if taken is None or not taken.claim:  # a row outside the limits, where no upgrade was since
        return take(session, None, terms, verb) if task is None else None
    return _held(session, taken, record, start)


def take_many(session: Session, count: int, terms: Terms) -> list[PostgresClaim]:
    """Claim the first of the queue, at most so many, in one step."""
    made = [f"{terms.folded}-{session.nonce()}" for _ in range(count)]
    record = terms.record(session.about())
    taken, start = _taken(session, _TAKE_MANY, (made,), terms, record, "claim", made=made)
    tasks = [task for task in map(names.read, taken.split()) if task is not None and task.claim]
    if taken and not tasks:
        return take_many(session, count, terms)
    return [_held(session, task, record, start) for task in tasks]


def _taken(
    session: Session,
    sql: str,
    what: tuple[object, ...],
    terms: Terms,
    record: Record,
    verb: str,
    *,
    made: Sequence[str],
    named: bool = False,
    lock: bool = False,
    own: bool = False,
) -> tuple[str, int]:
    """The names that a step has taken, empty if none; and when it began."""
    known: list[str] | None = None if own else []
    texts = verb, packed(terms.owner), packed(terms.metadata)
    for claim in tuple(session.unanswered):  # without a worker, unless another answer gave it
        _give_back(session, claim)
        session.unanswered.discard(claim)
    for _ in range(_LOOKS):
        start = session.boottime()
        try:
            outcome, taken = session.step(
                sql,
                (
                    *(*what, encode(record), terms.ttl, terms.process is not None),
                    *(*texts, lock, known, AGAIN),
                ),
                f"the {verb} of {made[0]}",
            )
        except (KeyboardInterrupt, SystemExit):  # else it stays claimed without a worker
            for claim in made:
                with suppress(DibsError):
                    _give_back(session, claim)
            raise
        except Uncertain:
            if not named:  # else the caller can find it
                session.unanswered.update(made)
            raise
        if outcome != "paused":
            return taken if outcome == "taken" else "", start
        paused, known = pausing.look(session, lock=lock)
        if paused is not None:
            raise paused
    raise Uncertain(f"the {verb}: pauses come and go too fast: try again")


def _held(session: Session, taken: Task, record: Record, start: int) -> PostgresClaim:
    """The claim with a lease that is counted from before its step."""
    ttl = record.ttl if record.ttl is not None else session.settings.ttl
    deadline = start + int(MARGIN * ttl * SECOND)
    if session.boottime() >= deadline:
        raise Uncertain(f"{taken.stem}: the answer took longer than its lease; stop")
    return PostgresClaim(session, taken, record, deadline)


def _give_back(session: Session, claim: str) -> None:
    """Release a claim whose maker never learned its name, unless someone has beaten it since."""
    session.rows(_MADE, (claim,))  # the server may be at it
    rows = session.rows("SELECT name FROM dibs.claim WHERE strpos(name, %s) > 0", (f".{claim}.",))
    for task in reading.tasks_of(name for (name,) in rows):
        made = PostgresClaim(session, task, Record(owner=task.owner))
        made.release_unconfirmed("its answer was lost")


def attach(session: Session, text: str) -> PostgresClaim:
    """The claim of that exact name, for a process that did not make it."""
    candidates = names.exact(text)
    task = names.read(candidates[0])
    session.unanswered -= {task.claim} if task is not None else set()
    if len(candidates) > 1:
        held = names.read(candidates[1])
        if held is not None and reading.holder(session, held) is not None:
            task = held
    if task is None or not task.live or not task.claim:
        raise refusals.not_a_claim(text)
    rows = session.rows(
        "SELECT record FROM dibs.claim WHERE eid = %s AND name = %s",
        (names.escape(task.id), task.name),
    )
    return PostgresClaim(session, task, decode(rows[0][0]) if rows else Record(owner=task.owner))


def payload(session: Session, task: Task, limit: int) -> bytes | None:
    """The beginning of a payload; None if the task's name is gone."""
    rows = session.rows(
        """
        SELECT substr(p.data, 1, %s) FROM dibs.task t JOIN dibs.payload p USING (eid)
        WHERE t.eid = %s AND t.name = %s
        """,
        (min(limit, 2**31 - 1), names.escape(task.id), task.name),
    )
    return bytes(rows[0][0]) if rows else None
