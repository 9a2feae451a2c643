"""A claim as its owner uses it: make it, beat, verify, and end it in one of three ways."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from dibs.blocks import MARGIN, ClaimBase
from dibs.files import moves
from dibs.files.board_files import GONE, KNOWN, NOTES, PATIENCE, RECORDS, BoardFiles
from dibs.files.facts import facts_of, record_of
from dibs.files.pause_look import find_pause
from dibs.model import names
from dibs.model.errors import (
    BoardMissing,
    DibsError,
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
from dibs.model.lazy import LazyModule
from dibs.model.names import PAUSED
from dibs.model.records import Record, encode
from dibs.model.sample import SECOND
from dibs.model.task import CLAIMED, DONE, FAILED, FREE, HELD, WAITING, Task

if TYPE_CHECKING:
    from types import ModuleType

    from dibs.files import confirming, delays, questions
    from dibs.files.outputs import OutputFiles
    from dibs.host import Terms
    from dibs.model import delays as retrying
    from dibs.model import questions as asking
    from dibs.model import refusals
    from dibs.model.questions import Question
else:
    questions, refusals = map(LazyModule, ("dibs.files.questions", "dibs.model.refusals"))
    asking = LazyModule("dibs.model.questions")
    delays, retrying = map(LazyModule, ("dibs.files.delays", "dibs.model.delays"))
    confirming = LazyModule("dibs.files.confirming")


_UNCLAIMED = (*WAITING, FREE)
STAYS = "it cannot be renamed: `dibs check` shows why, if the disk reports it"
STUCK = {errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP}
"""The errors of a rename that concern only the one file."""
_DEFINITE = moves.DEFINITE | STUCK
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NEW = 3.0
"""Seconds in which the first heartbeat of another process than its maker confirms a claim."""


def _outputs() -> ModuleType:
    """The rules for notes and results, imported by the claims that have some."""
    from dibs.model import outputs

    return outputs


class FilesClaim(ClaimBase):
    """A claim on a task of a files board; `dibs.board.Claim` documents each verb."""

    def __init__(self, store: BoardFiles, task: Task, record: Record, deadline: int = 0) -> None:
        self._store = store
        self.task = task
        self.record = record
        self.deadline = deadline
        self._refused: set[str] = set()

    @property
    def ttl(self) -> float:
        return self.record.ttl if self.record.ttl is not None else self._store.settings.ttl

    @property
    def path(self) -> str | None:
        root = self._store.root
        return os.path.join(root, self.task.name) if root else None

    def payload(self, limit: int = 1 << 30) -> bytes:
        try:
            return self._store.port.read(self.task.name, limit)[0]
        except FileNotFoundError:
            raise self._lost("read") from None
        except OSError as error:
            raise storage_error(error) from error

    def beat(
        self,
        *,
        ttl: float | None = None,
        metadata: str | None = None,
        note: str | None = None,
    ) -> None:
        """Extend the lease, counted from before the call; it counts only if it ends in time."""
        if note is not None:
            note = _outputs().check_note(note)
        record = self._changed_record(ttl, metadata)
        if not self._is_new() or not self._confirmed(record):
            self._renew(record)
        if note is not None:
            self._note(note)

    def _is_new(self) -> bool:
        """Whether its record may look as it was made, and its maker may be about to undo it."""
        made = self.record.claimed_at
        return not self.deadline and 0 <= self._store.clock.about() - made < _NEW

    def _confirmed(self, record: Record) -> bool:
        """Beat by confirming it; False on a full disk, where a plain heartbeat needs no space."""
        try:
            self.confirm(ttl=record.ttl, metadata=record.metadata)
        except StorageError:
            return False
        return True

    def confirm(self, *, ttl: float | None = None, metadata: str | None = None) -> None:
        """Beat before an answer names this claim again: whoever made it does not undo it then."""
        record = self._changed_record(ttl, metadata)
        if record.confirmed:
            self._renew(record)
            return
        if confirming.is_beaten(self._store, self.task):  # a turn that was left does not matter
            self._renew(record._replace(confirmed=True))
            confirming.end_turn(self._store, self.task)
            return
        with confirming.turn(self._store, self.task) as mine:
            if not mine:
                if self._store.look(self.task.name) is False:
                    raise self._lost()
                raise Uncertain(f"{self.name}: it may be released just now: try again")
            self._renew(record._replace(confirmed=True))

    def _renew(self, record: Record) -> None:
        port, until = self._store.port, self._until()
        # A holder has nothing better to do than to keep trying; a single command gives up sooner.
        most = self._store.patience or (0 if self.deadline else PATIENCE)
        patience = min(until, port.boottime() + most) if most else until
        why = ""
        while True:
            start = port.boottime()
            if start >= patience:
                stop = refusals.stop_or_commit(self.task)
                raise self._too_late(f"its lease could not be renewed in time{why}: {stop}")
            try:
                self._touch(record)
                beaten = True
            except OSError as error:
                if record is not self.record and error.errno in _FULL:
                    self._renew(self.record)
                    raise self._unchanged(error) from error
                beaten, why = False, f": {error.strerror}"
            here = self._store.look(self.task.name)
            if here is False and isinstance(gone := self._lost(), Lost):
                raise gone
            if here and beaten:
                break
            port.sleep(0.05)
        if port.boottime() >= until:
            raise Uncertain(f"{self.name}: the disk answered after the lease had ended; stop")
        self.record = record
        self.deadline = start + int(MARGIN * self.ttl * SECOND)

    def _unchanged(self, error: OSError) -> StorageError:
        """The error for a beat on a full disk: it needs no space, but a changed record does."""
        return StorageError(
            f"{self.name}: {error.strerror}, so its record could not be changed; the lease was "
            f"renewed with its former ttl of {self.ttl:g} s: free some space, then try again"
        )

    def note(self, text: str) -> None:
        """Say what the work is doing; the lease is not renewed."""
        self._note(_outputs().check_note(text))

    def _note(self, text: str) -> None:
        from dibs.files import notes

        notes.write(self._store, self.name, text)
        # Looked for afterwards: whoever ended the claim removed the note that was there then.
        if self._store.look(self.task.name) is False:
            self._store.drop(f"{NOTES}/{self.name}")
            raise self._lost("note")

    def keep_output(self, limit: int) -> OutputFiles:
        """Where the work's output is kept, at most `limit` bytes of it."""
        from dibs.files.outputs import OutputFiles

        return OutputFiles(self._store, self.name, limit)

    def verify(self) -> None:
        """Return only if the claim is still the caller's and its lease runs."""
        self._prove("verify")

    def done(self, result: bytes | None = None) -> Task:
        """Commit the finished work: this rename is the commit point."""
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if result is None:
            return self._end("done", f"{DONE}/{self.name}")
        return self._done_with(_outputs().check_result(result))

    def _done_with(self, result: bytes) -> Task:
        """The same with a result, which is in place first: a commit without it cannot be seen."""
        from dibs.files import outputs

        store, dst = self._store, f"{DONE}/{self.name}"
        here = store.look(self.task.name)
        there = here is not True and store.look(dst)
        if here is False and there is False:
            raise self._lost("done")
        if there is None:  # a result that is written now might replace that of the commit
            raise self._no_answer()
        if there:
            ended = self._end("done", dst)
            if outputs.result(store, self.name) != result:
                raise refusals.other_result(ended)
            return ended
        outputs.write_result(store, self.name, result)
        try:
            return self._end("done", dst)
        except Lost:
            outputs.drop_result(store, self.name)
            raise

    def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Give up after a failure: requeue the task, or fail it at the limit of attempts.

        It starts again after the delay of the settings, or `retry_in` seconds from now.
        """
        if self.task.state == HELD:
            raise refusals.release_it(self.name)
        if retry_in is not None:
            retrying.check_delay(retry_in)
        return self._end(
            "fail", next_after_failure(self._store, self.task, retry_in=retry_in), reason
        )

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Make it available again, no attempt counted; a lock's expired lease is refused.

        With `start_in` it starts only that many seconds from now.
        """
        if retrying.check_delay(start_in) and self.task.state == HELD:
            raise refusals.free_at_once(self.name)
        if self.task.state == HELD:
            self._prove("release")
        dst = requeued_name(self.task, self.task.attempts)
        if start_in:
            dst = delays.later_name(self._store, self.task, self.task.attempts, start_in)
        return self._end("release", dst, reason)

    def release_unconfirmed(self, reason: str = "") -> bool:
        """Release it unless anyone has confirmed or beaten it; whether it was released."""
        self._over = confirming.release(self._store, self.task, self.record.owner, reason)
        return self._over

    def ask(self, question: str) -> Task:
        """End the claim with a question to a person; no attempt is counted."""
        if self.task.state == HELD:
            raise refusals.cannot_ask(self.name)
        asking.check_question("a question", question)
        asked = questions.ask(self._store, self.task, question, self.record, self.deadline)
        if asked is None:
            raise self._lost("ask")
        return asked

    @cached_property
    def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers."""
        if not self.task.question:
            return ()
        return questions.asked_and_answered(self._store, self.task)

    def _prove(self, verb: str) -> None:
        if self._store.port.boottime() >= self._until(verb):
            raise self._too_late("its lease was not renewed in time; stop", verb)
        here = self._store.look(self.task.name)
        if here is None:
            raise Uncertain(f"{self.name}: the disk does not answer; stop")
        if not here:
            raise self._lost(verb)

    def _no_answer(self) -> Uncertain:
        doubt = Uncertain(f"{self.name}: the disk does not answer, so it is unknown; try again")
        doubt.again = True
        return doubt

    def _end(self, verb: str, dst: str, reason: str = "") -> Task:
        ended = moves.shift(
            self._store, self.task, dst, verb, self.record.owner, reason, self.deadline
        )
        if ended is None:
            raise self._lost(verb)
        self._over = True
        return ended

    def _touch(self, record: Record) -> None:
        """Beat by touching the record, or by replacing it if its content changes."""
        store, path = self._store, f"{RECORDS}/{self.name}"
        if record is self.record:
            try:
                store.port.touch(path)
                return
            except FileNotFoundError:  # removed by hand: write it again while the name exists
                if store.look(self.task.name) is False:
                    raise
        if store.look(".dibs") is False:  # making a new one would hide the old one
            raise FileNotFoundError(errno.ENOENT, ".dibs is missing: move it back")
        draft = f"{RECORDS}/{self.name}.{store.port.nonce()}"
        try:
            store.write(draft, encode(record))
            store.port.rename(draft, path)
        except OSError:
            store.drop(draft)
            raise

    def _until(self, verb: str = "beat") -> int:
        """When this claim's lease ends for its owner.

        A process that did not make the claim has no deadline of its own, so it reads the age from
        the disk. A lease that is past its ttl is over even if no one has taken the task.
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
            raise refusals.expired(self.task, facts.age(now) - facts.ttl)
        return start + int(facts.ttl * SECOND) - max(0, now.fs - facts.beat)

    def _lost(self, verb: str = "beat") -> Stop:
        """The error for a missing name: a listing shows whether the claim or the board is gone."""
        away = Uncertain(
            f"{self.name}: the board is gone, so it is unknown whether the claim is still yours; "
            "stop"
        )
        away.again = True
        try:
            now = self._store.find(self.id)
        except BoardMissing:
            return away
        except StorageError:
            now = ()
        if any(task.name == self.task.name for task in now):  # it came back
            return away
        if asking.has_asked(self.task, now):  # it ended in order, so operators need no trace
            return refusals.lost(self.task, now, over=False)
        self._store.drop(f"{RECORDS}/{self.name}")  # whoever ended it may have come before it
        if now or self._was_here():
            self._leave_trace(verb)
        return refusals.lost(self.task, now, over=self._over)

    def _was_here(self) -> bool:
        """Whether the id was ever on the board, as far as its list of ids shows."""
        try:
            return self._store.there(f"{KNOWN}/{names.escape(self.id)}.0")
        except (StorageError, Uncertain):
            return True

    def _too_late(self, why: str, verb: str = "beat") -> Stop:
        """The error for missing the deadline: the claim is lost, or that is unknown."""
        if self._store.look(self.task.name) is False:
            gone = self._lost(verb)
            if isinstance(gone, Lost):
                return gone
        return Uncertain(f"{self.name}: {why}")

    def _leave_trace(self, verb: str, still: str = "") -> None:
        """Journal for operators that a holder came back to a lost claim, once for each verb.

        `still` is the claim's name if it exists and only the lease has expired.
        """
        if verb not in self._refused:
            self._refused.add(verb)
            self._store.journal.write("refused", self.id, self.name, still, self.record.owner, verb)


def take(
    store: BoardFiles,
    task: Task,
    terms: Terms,
    verb: str = "claim",
    patience: int = PATIENCE,
    session: str = "",
) -> FilesClaim | None:
    """Claim exactly this name; None if another worker was faster, `Unclaimable` if none can.

    The deadline counts from before the rename. The record is written after it, because an older
    record would make a new claim look old.
    """
    if task.fence >= names.FENCE_MAX:
        raise Unclaimable(f"{task.name}: {refusals.FENCE_FULL}", task.name)
    if task.state in _UNCLAIMED and not _fits(store, task):
        return None
    if task.state in WAITING:
        adopt(store, task)
    fence = task.fence + 1
    taken = names.claimed(task, fence, f"{terms.folded}-{terms.nonce or store.port.nonce()}")
    record = terms.record(store.clock.about())
    start = store.port.boottime()
    deadline = start + int(MARGIN * terms.ttl * SECOND)
    if not store.rename_moves_ctime:
        with suppress(OSError):
            store.port.touch(task.name)
    claim = FilesClaim(store, taken, record, deadline)
    found: list[str] = []
    try:
        if not _grab(store, task.name, taken.name, min(deadline, start + patience), found):
            return None
        if found and terms.nonce:  # so it is not this call's to record, to give away or to undo
            raise Uncertain(f"{claim.name}: another process may have made it: ask again")
        # After the rename, which alone makes the promise of a pause hold: a process may have been
        # stopped for hours before it. An owner that claims its own task again is not stopped.
        free = task.live or store.port.missing(PAUSED)
        paused = None if free else find_pause(store, lock=task.kind == "lock")
        if paused is None:
            store.write(f"{RECORDS}/{claim.name}", encode(record))
    except FileExistsError as error:  # whoever wrote it has found the claim by its name
        raise Uncertain(f"{claim.name}: another process uses it: {error.strerror}") from error
    except OSError as error:
        if _requeue_unrecorded(store, claim):
            raise storage_error(error) from error
        why = "its record could not be written, nor the claim released; it will expire"
        raise Uncertain(f"{claim.name}: {why}: {storage_error(error)}") from error
    except (KeyboardInterrupt, SystemExit):  # else it stays claimed for the ttl without a worker
        with suppress(DibsError):
            claim.release_unconfirmed("interrupted")
        raise
    if paused is not None:
        if _requeue_unrecorded(store, claim):
            raise paused
        raise Uncertain(f"{claim.name} could not be released, and it will expire: {paused}")
    # Until the record exists the claim has the board's ttl, which may be shorter.
    if store.port.boottime() >= start + int(MARGIN * min(terms.ttl, store.settings.ttl) * SECOND):
        raise Uncertain(f"{claim.name}: it took longer than its lease to write its record; stop")
    store.journal.write(
        verb, task.id, task.name, taken.name, terms.owner, terms.metadata, session=session
    )
    store.sync("", every=True)
    return claim


def _fits(store: BoardFiles, task: Task) -> bool:
    """Whether the file exists; raises `Unclaimable` if its worker could not read it."""
    try:
        unfit = store.port.unfit(task.name)
    except FileNotFoundError:
        return False
    except OSError:  # the rename finds out, with several tries
        return True
    if unfit:
        raise Unclaimable(f"{task.name}: {unfit}", task.name)
    return True


def adopt(store: BoardFiles, task: Task) -> None:
    """Note the id of an available task in `known/`; a task that dibs added is noted already.

    The note is missing if a shell worker added the task, or if the entry was lost. A fence above 0
    means that the id may have had earlier lives, so the entry of its current life is written too.
    """
    # Looking is faster than creating what exists, and an entry is never removed.
    if not store.lacks(f"{KNOWN}/{names.escape(task.id)}.0"):
        return
    if not store.note_known(task.id, 0) or not task.fence:
        return
    number = 0
    while store.there(f"{GONE}/{names.escape(task.id)}.{number}"):
        number += 1
    store.note_known(task.id, number)


def _grab(store: BoardFiles, name: str, dst: str, until: int, found: list[str]) -> bool:
    """The rename that claims; `Unclaimable` if the disk refuses it only for this file."""
    try:
        return moves.move(store, name, dst, until=until, definite=_DEFINITE, found=found)
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in STUCK:
            raise Unclaimable(f"{name}: {cause.strerror}: {STAYS}", name) from cause
        raise


def attach(store: BoardFiles, text: str) -> FilesClaim:
    """The claim of that exact name, for a process that did not make it."""
    task = names.read(_live_name(store, text))
    if task is None or not task.live or not task.claim or task.is_takeover:
        raise refusals.not_a_claim(text)
    record = None
    with suppress(StorageError):  # done, fail and release do not need the record
        record = record_of(store, task.stem)[0]
    return FilesClaim(store, task, record or Record(owner=task.owner))


def _live_name(store: BoardFiles, text: str) -> str:
    """The claimed or held name of a claim, whether or not it still exists.

    Each verb finds that out by its own rename, because a repeated commit must succeed again.
    """
    candidates = names.exact(text)
    if len(candidates) == 1:
        return candidates[0]
    claimed, held = candidates[:2]
    return held if store.there(held) else claimed


def stem_of(text: str) -> str:
    """The name of a claim without its state word or folder; the claim need not exist."""
    task = names.read_any(names.exact(text)[0])
    if task is None or not task.claim:
        raise NotExact(f"{short(text)} is not the exact name of a claim")
    return task.stem


def next_after_failure(
    store: BoardFiles, task: Task, since: int | None = None, retry_in: float | None = None
) -> str:
    """The name that a failed or expired claim gets: it waits, or is in `failed/` at the limit.

    Its delay counts from `since`, the last beat of an expired claim, or from now. `retry_in`
    replaces the delay of the settings.
    """
    attempts = min(task.attempts + 1, names.ATTEMPTS_MAX)
    if task.state == CLAIMED and attempts >= store.settings.max_attempts:
        return f"{FAILED}/" + names.claim_stem(
            task.id, task.stamp._replace(attempts=attempts), task.claim
        )
    delay = retry_in
    if delay is None and task.state == CLAIMED:
        delay = retrying.delay_after(store.settings.retry, attempts)
        delay = retrying.spread(delay, store.port.nonce()) if delay else 0.0
    if not delay:
        return requeued_name(task, attempts)
    return delays.later_name(store, task, attempts, delay, since)


def requeued_name(task: Task, attempts: int) -> str:
    """The name that a released claim gets; a lock has no attempts to count."""
    if task.state == HELD:
        return names.unclaimed_name(task.id, task.stamp, FREE)
    return names.unclaimed_name(task.id, task.stamp._replace(attempts=attempts))


def _requeue_unrecorded(store: BoardFiles, claim: FilesClaim) -> bool:
    """Requeue a claim that has no record, so that no one could beat it; False if that failed."""
    try:
        moves.move(
            store, claim.task.name, requeued_name(claim.task, claim.task.attempts), keep=True
        )
    except (Exists, StorageError, Uncertain):  # then it expires
        return False
    store.drop(f"{RECORDS}/{claim.name}")
    return True
