"""A claim over HTTP as its owner uses it: make it, beat, verify, and end it in one of four ways."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dibs.blocks import MARGIN, ClaimBase
from dibs.model import names
from dibs.model.errors import Changed, DibsError, Lost, NotAllowed, Stop, StorageError, Uncertain
from dibs.model.lazy import LazyModule
from dibs.model.records import Record
from dibs.model.sample import SECOND
from dibs.model.task import HELD
from dibs.remote.sessions import NOTHING, PATIENCE, quoted

if TYPE_CHECKING:
    from dibs.host import Terms
    from dibs.model import delays, refusals, slots
    from dibs.model import outputs as saying
    from dibs.model import questions as asking
    from dibs.model.questions import Question
    from dibs.model.task import Task
    from dibs.remote import reading
    from dibs.remote.outputs import RemoteOutput
    from dibs.remote.sessions import Done, Found, RemoteSession
else:
    delays, refusals, slots, saying, asking, reading = map(
        LazyModule,
        (
            "dibs.model.delays",
            "dibs.model.refusals",
            "dibs.model.slots",
            "dibs.model.outputs",
            "dibs.model.questions",
            "dibs.remote.reading",
        ),
    )

REASON_CHARS = 4096


class RemoteClaim(ClaimBase):
    """A claim on a task of a served board; `dibs.protocols.Claim` documents each verb."""

    def __init__(
        self, session: RemoteSession, task: Task, record: Record, deadline: int = 0
    ) -> None:
        self._session = session
        self.task = task
        self.record = record
        self.deadline = deadline
        self._late: set[str] = set()
        """The verbs that were refused: the log has a line of each, and needs no other."""

    @property
    def ttl(self) -> float:
        return self.record.ttl if self.record.ttl is not None else self._session.settings.ttl

    @property
    def path(self) -> str | None:
        return None

    def payload(self, limit: int = 1 << 30) -> bytes:
        try:
            return reading.payload(self._session, self.task, limit)
        except Changed:
            raise self._lost() from None

    def beat(
        self,
        *,
        ttl: float | None = None,
        metadata: str | None = None,
        note: str | None = None,
    ) -> None:
        """Extend the lease, counted from before the call; it counts only if it ends in time."""
        note = None if note is None else saying.check_note(note)
        self._beat({"ttl": ttl, "metadata": metadata, "note": note})

    def confirm(self, *, ttl: float | None = None, metadata: str | None = None) -> None:
        """Beat before an answer names this claim again: whoever made it does not undo it then."""
        self._beat({"ttl": ttl, "metadata": metadata, "confirm": True})

    def _beat(self, given: dict[str, Any]) -> None:
        record = self._changed_record(given["ttl"], given["metadata"])
        session, until = self._session, self.deadline
        start = session.boottime()
        if until and start >= until:
            stop = refusals.stop_or_commit(self.task)
            raise self._too_late(f"its lease could not be renewed in time: {stop}", "beat")
        found = self._post("beat", given, until or start + PATIENCE)
        if until and session.boottime() >= until:
            raise Uncertain(f"{self.name}: the server answered after the lease had ended; stop")
        own = session.number(found, "ttl")
        self.record = record
        self.deadline = start + int(MARGIN * own * SECOND)

    def note(self, text: str) -> None:
        """Say what the work is doing; the lease is not renewed."""
        self._post("note", {"text": saying.check_note(text)})

    def keep_output(self, limit: int) -> RemoteOutput:
        """Where the work's output is kept, at most `limit` bytes of it."""
        from dibs.remote.outputs import RemoteOutput

        return RemoteOutput(self._session, self.task, limit)

    def verify(self) -> None:
        """Return only if the claim is still the caller's and its lease runs."""
        self._require_time("its lease was not renewed in time; stop", "verify")
        try:
            self._post("verify")
        except NotAllowed as error:
            raise Lost(f"{self.name} is not yours: {error}", self.name) from error
        except StorageError as error:
            raise self._unknown(error) from error

    def done(self, result: bytes | None = None) -> Task:
        """Commit the finished work."""
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if result is None:
            return self._end("done")
        from base64 import b64encode

        data = b64encode(saying.check_result(result)).decode()
        return self._end("done", {"result_base64": data})

    def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Give up after a failure: requeue the task, or fail it at the limit of attempts."""
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if retry_in is not None:
            delays.check_delay(retry_in)
        return self._end("fail", {"reason": reason_of(reason), "retry_in": retry_in})

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Make it available again, no attempt counted; a lock's expired lease is refused."""
        if delays.check_delay(start_in) and self.task.state == HELD:
            raise refusals.free_at_once(self.name)
        if self.task.state == HELD:
            self._require_time("its lease was not renewed in time; stop", "release")
        given = {"reason": reason_of(reason), "start_in": start_in or None}
        return self._end("release", given)

    def release_unconfirmed(self, reason: str = "") -> bool:
        """Release it unless anyone has confirmed or beaten it; whether it was released."""
        done = reading.sought(self._session, "release", (self.task.name,))
        found = self._post("release-unconfirmed", {"reason": reason_of(reason)}, done=done)
        self._over = found.get("status") != "kept"
        return self._over

    def ask(self, question: str) -> Task:
        """End the claim with a question to a person; no attempt is counted."""
        if self.task.state == HELD:
            raise refusals.cannot_ask(self.name)
        asking.check_question("a question", question)
        return self._session.task(self._post("ask", {"question": question}))

    @cached_property
    def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers."""
        return reading.questions(self._session, self.task) if self.task.question else ()

    def _end(self, verb: str, fields: Mapping[str, object] = NOTHING) -> Task:
        done = reading.sought(self._session, verb, (self.task.name,))
        found = self._post(verb, fields, done=done)
        self._over = True
        return self._session.task(found)

    def _post(
        self,
        verb: str,
        fields: Mapping[str, object] = NOTHING,
        until: int = 0,
        done: Done | None = None,
    ) -> Found:
        if verb in self._late and not reading.is_there(self._session, self.task):
            raise self._lost()
        path = f"/v1/claims/{quoted(self.task.name)}/{verb}"
        what = f"{self.name}: {'the heartbeat' if verb == 'beat' else verb}"
        try:
            return self._session.change(path, what, fields, until=until, done=done)
        except Lost as error:
            self._late.add(verb)
            if self._over:
                raise refusals.lost(self.task, error.now, over=True) from None
            raise

    def _unknown(self, error: StorageError) -> Uncertain:
        doubt = Uncertain(f"{self.name}: the server does not answer: {error}; stop")
        doubt.again = True
        return doubt

    def _lost(self) -> Lost:
        """The error for a name that is gone."""
        return refusals.lost(self.task, reading.find(self._session, self.id), over=self._over)

    def _require_time(self, why: str, verb: str) -> None:
        if self.deadline and self._session.boottime() >= self.deadline:
            raise self._too_late(why, verb)

    def _too_late(self, why: str, verb: str) -> Stop:
        """The error for missing the deadline: the claim is lost, or that is unknown."""
        try:
            if not reading.is_there(self._session, self.task):
                self._post(verb)  # it is refused, and the log shows that it came too late
        except Stop as error:
            return error
        except StorageError as error:
            return self._unknown(error)
        return Uncertain(f"{self.name}: {why}")


def reason_of(text: str) -> str | None:
    """A reason as it is sent: as much of it as the log keeps; None if it is empty."""
    return names.check_text("a reason", text)[:REASON_CHARS] or None


def take(
    session: RemoteSession,
    path: str,
    what: str,
    terms: Terms,
    fields: Mapping[str, object],
) -> RemoteClaim | None:
    """Claim, acquire or resume; None if nothing is available.

    The end of the claim's name is chosen here: by it the claim is found if the answer was lost. The
    deadline counts from before the request.
    """
    _release_unanswered(session)
    start = session.boottime()
    mark = terms.nonce or session.nonce()
    try:
        found = session.change(
            path,
            f"{what} ({mark})",
            {
                **fields,
                "ttl": terms.named_ttl,
                "process": terms.process._asdict() if terms.process is not None else None,
                "host": session.host.name,
                "nonce": mark,
            },
            looks=True,
        )
    except (KeyboardInterrupt, SystemExit):  # else it stays claimed without a worker
        session.close()  # what the server has not begun to answer it releases by itself
        with suppress(DibsError):
            _release_made(session, mark)
        raise
    except Uncertain:
        if not terms.nonce:  # else the caller can find it
            session.unanswered.add(mark)
        raise
    if found.get("status") == "empty":
        return None
    task, ttl = session.task(found), session.number(found, "ttl")
    if not task.live:
        raise session.foreign("its answer has no claim", found)
    given = found.get("record")
    record = _record(given if isinstance(given, dict) else {}, ttl, terms)
    deadline = start + int(MARGIN * ttl * SECOND)
    if session.boottime() >= deadline:
        raise Uncertain(f"{task.stem}: the answer took longer than its lease; stop")
    return RemoteClaim(session, task, record, deadline)


def _record(given: dict[str, Any], ttl: float, terms: Terms) -> Record:
    """The record of a claim that was just made: what was asked for, and what the server added."""
    owner, metadata, at = (given.get(key) for key in ("owner", "metadata", "claimed_at"))
    return Record(
        owner if isinstance(owner, str) else terms.owner,
        terms.host,
        ttl,
        at if type(at) is float else 0.0,
        metadata if isinstance(metadata, str) else terms.metadata,
        terms.process,
    )


def _release_unanswered(session: RemoteSession) -> None:
    """Release what earlier requests claimed whose answers were lost, unless someone has it."""
    for mark in tuple(session.unanswered):
        try:
            _release_made(session, mark)
        except DibsError as error:
            if error.again:
                raise
        session.unanswered.discard(mark)


def _release_made(session: RemoteSession, mark: str) -> None:
    """Release a claim whose maker never learned its name."""
    for task in reading.snapshot(session, ended=False).tasks.values():
        if task.live and task.claim.endswith(f"-{mark}"):
            RemoteClaim(session, task, Record()).release_unconfirmed("its answer was lost")


def attach(session: RemoteSession, text: str) -> RemoteClaim:
    """The claim of that exact name, for a process that did not make it."""
    found = [names.read(name) for name in names.exact(text)[:2]]
    session.unanswered -= {task.claim[-10:] for task in found if task is not None}
    known = [task for task in found if task is not None and task.live and task.claim]
    if not known or found[0] is None:
        raise refusals.not_a_claim(text)
    for task in known:
        with suppress(StorageError):  # done, fail and release do not need the record
            holder = reading.holder(session, task)
            if holder is not None:
                ttl = None if holder.default_ttl else holder.ttl
                about = holder.owner, holder.host, ttl, holder.since / SECOND, holder.metadata
                return RemoteClaim(session, task, Record(*about, holder.process))
    return RemoteClaim(session, known[0], Record(owner=known[0].owner))
