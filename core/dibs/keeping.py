"""Keep one claim while a body works on it: the thread of heartbeats, and the claim as it is used.

The thread beats every third of the ttl. It is separate, so that storage that hangs blocks nothing
else: the deadline of the claim needs no storage.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from dibs.host import boottime
from dibs.model.errors import BadName, DibsError, Lost, StorageError, Uncertain
from dibs.model.outputs import check_note
from dibs.model.safe_text import shown
from dibs.model.sample import SECOND
from dibs.model.task import AVAILABLE

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from dibs.model.questions import Question
    from dibs.model.records import Record
    from dibs.model.task import Task
    from dibs.protocols import Claim, OutputKeeper

User: TypeAlias = "threading.Thread | asyncio.Task[Any]"
"""One that can use a claim."""
_AGAIN = 0.1
"""Seconds between two attempts to end a claim while the storage fails."""
_REASON = 1000
"""How many characters of an exception's last line are kept."""


class unmasked:
    """Raises what a signal handler raised while a thread was started or joined.

    `threading` of Python 3.11 and 3.12 can replace it by `RuntimeError: release unlocked lock`, or
    by a `KeyError` of its table of threads that begin.
    """

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RuntimeError | KeyError) and error.__context__ is not None:
            raise error.__context__ from None


class Beats(threading.Thread):
    """Renews a lease every third of its ttl until `end` is called or the claim cannot be kept."""

    def __init__(
        self,
        claim: Claim,
        wake: Callable[[], None],
        block: object = None,
        left: Callable[[], None] | None = None,
    ) -> None:
        """With a `block`: once it is gone, `left` is called instead of another heartbeat.

        The block is not kept alive. A signal can raise an exception before the first line of its
        `__exit__`, and then nothing else ends the claim.
        """
        super().__init__(daemon=True, name=f"dibs-beats-{claim.id}")
        self.beats = 0
        self.error: DibsError | None = None
        """Why the work must stop; None while the claim is kept."""
        self.waits_since = 0
        """When the heartbeat that is under way began, on the boot-time clock; 0 between two."""
        self.quiet = threading.Lock()
        """Held during a heartbeat: whoever ends the claim holds it, so that none comes after."""
        self._claim = claim
        self._wake = wake
        # No `threading.Event`: an exception of a signal handler inside it can leave it locked.
        self._calls: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.over = False
        """Whether `end` was called."""
        self._block = None if block is None else weakref.ref(block, self._calls.put)
        self._left = left
        self._started_well = False
        self._note: str | None = None
        self._begun = boottime()

    def start(self) -> None:
        """Begin to beat."""
        with unmasked():
            super().start()
        self._started_well = True

    def end(self) -> None:
        """Send no more heartbeats; one that has begun may still finish."""
        self.over = True
        self._calls.put(None)

    def finish(self) -> None:
        """Send no more heartbeats, and wait until one that has begun is over."""
        self.end()
        if self._started_well:  # else the thread may hang, in a lock that an exception left locked
            with unmasked():
                self.join()

    def note(self, text: str) -> None:
        """Write this note as soon as storage allows; the last one counts."""
        self._note = text
        self._calls.put(None)

    def write_note(self) -> None:
        """Write the last note that is not written yet."""
        text, self._note = self._note, None
        if text is None:
            return
        try:
            self._claim.note(text)
        except Lost:
            raise
        except DibsError:
            pass  # the lease decides; a note can be missing

    def beaten(self) -> None:
        """Called in this thread after each heartbeat that was in time."""

    def run(self) -> None:
        """Send heartbeats until `end` is called or the claim cannot be kept."""
        due = self._begun + self._third
        while True:
            self._sleep(due)
            if self.over:
                return
            if self._block is not None and self._block() is None and self._left is not None:
                self._left()
                return
            beats = boottime() >= due
            with self.quiet:
                if self.over:
                    return
                try:
                    self.write_note()
                    if beats:
                        due = boottime() + self._third
                        self._beat()
                except DibsError as error:
                    self.error = error
                    self._wake()
                    return
            if self.over:
                return
            if beats:
                self.beaten()
                self.beats += 1
                self._wake()

    def _sleep(self, due: int) -> None:
        """Sleep until the next heartbeat, or until there is something else to do."""
        with suppress(queue.Empty):
            self._calls.get(timeout=max(0.0, (due - boottime()) / SECOND))
            while True:
                self._calls.get_nowait()

    @property
    def _third(self) -> int:
        return int(self._claim.ttl / 3 * SECOND)

    def _beat(self) -> None:
        stop = self._claim.deadline - int(self._claim.ttl / 10 * SECOND)
        self.waits_since = boottime()
        self._wake()  # so that a heartbeat that takes long is noticed
        self._claim.beat()
        self.waits_since = 0
        if boottime() >= stop:
            raise Uncertain(f"{self._claim.name}: its lease was renewed too late; stop")


class LostEvent(threading.Event):
    """Set as soon as the work must stop, even if storage hangs so that no heartbeat can fail.

    It uses nothing of `threading.Event`, which an exception of a signal handler can leave locked.
    """

    def __init__(self, past: Callable[[], bool]) -> None:
        super().__init__()
        self._past = past
        self._lost = False
        self._calls: list[Callable[[], object]] = []

    def on_set(self, call: Callable[[], object]) -> None:
        """Call this too when a heartbeat finds that the claim is lost."""
        self._calls.append(call)

    def set(self) -> None:
        """The claim is lost."""
        self._lost = True
        for call in list(self._calls):
            call()

    def is_set(self) -> bool:
        """Whether the claim is lost, or its lease was not renewed in time."""
        if not self._lost and self._past():
            self.set()
        return self._lost

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the claim is lost, or for `timeout` seconds; returns whether it is."""
        end = None if timeout is None else boottime() + int(timeout * SECOND)
        woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        wake = partial(woken.put, None)
        self._calls.append(wake)
        try:
            while not self.is_set():
                left = 1.0 if end is None else min(1.0, (end - boottime()) / SECOND)
                if left <= 0:
                    return False
                with suppress(queue.Empty):
                    woken.get(timeout=left)  # at most a second, because the deadline moves
            return True
        finally:
            self._calls.remove(wake)


class KeptClaim:
    """A claim whose lease is renewed in the background while a `with` body works.

    Leaving the body ends the claim: a task is done, a lock is released. An exception is `fail` with
    its last line, and it goes on. `KeyboardInterrupt`, `SystemExit` and a cancellation release. A
    claim that was ended inside the body, with `done`, `fail`, `release` or `ask`, is left alone.

    >>> with board.working(owner="web-3") as claim:
    ...     claim.note("step 1 of 2")
    ...     claim.check()
    >>> board.find(claim.id)[0].state
    'done'
    """

    def __init__(
        self, claim: Claim, turn: Callable[[], AbstractContextManager[object]], block: object
    ) -> None:
        """Nothing beats before `begin`. If the `block` is gone, the claim is released."""
        self._claim = claim
        self._turn = turn
        self._pid = os.getpid()
        self._ended: Task | None = None
        self._use = BodyUse()
        self._outcome = ""
        self._lost = LostEvent(self._is_past)
        self._beats = Beats(claim, self._notice, block, self._release_left)

    def __repr__(self) -> str:
        self._used()
        return description(self)

    def __enter__(self) -> Self:
        """The body that ends the claim, for the claims of a loop."""
        self._require_kept()
        self._use.enter(threading.current_thread())
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        end(self, error, fails=isinstance(error, Exception))

    # What it is

    @property
    def task(self) -> Task:
        """The task or lock, with its exact name while claimed.

        >>> claim.task.state
        'claimed'
        """
        return self._used().task

    @property
    def record(self) -> Record:
        """What the holder wrote about itself.

        >>> claim.record.owner
        'web-3'
        """
        return self._used().record

    @property
    def name(self) -> str:
        """The exact name, as verbs print and take it: `<id>.<stamp>.<claim>`.

        >>> claim.name.startswith("build.f1.web-3-")
        True
        """
        return self._used().name

    @property
    def id(self) -> str:
        """The id of the task or lock.

        >>> claim.id
        'build'
        """
        return self._used().id

    @property
    def fence(self) -> int:
        """A number that grows with every claim of this id; reject writes with a lower one.

        >>> claim.fence
        1
        """
        return self._used().fence

    @property
    def slot(self) -> int:
        """The number of the slot of a lock that was acquired with several; else 1.

        >>> claim.slot
        1
        """
        return self._used().slot

    @property
    def ttl(self) -> float:
        """The lease: how many seconds the claim lasts without a heartbeat.

        >>> claim.ttl
        120
        """
        return self._used().ttl

    @property
    def deadline(self) -> int:
        """When the body must stop unless a heartbeat succeeds; boot-time clock, nanoseconds.

        >>> claim.deadline > 0
        True
        """
        return self._used().deadline

    @property
    def path(self) -> str | None:
        """The path of the payload; None if it is not a file on this host.

        >>> claim.path == os.path.abspath(f"tasks/{claim.task.name}")
        True
        """
        return self._used().path

    @property
    def outcome(self) -> str:
        """How it ended: `done`, `failed`, `released`, `asked`, `lost` or `uncertain`.

        >>> claim.outcome
        ''
        """
        self._used()
        return self._outcome

    def payload(self, limit: int = 1 << 30) -> bytes:
        """The payload, at most `limit` bytes of it.

        >>> claim.payload()
        b'what to do'
        """
        return self._used().payload(limit)

    @property
    def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers.

        >>> claim.answers
        ()
        """
        return self._used().answers

    # While it is kept

    @property
    def lost(self) -> threading.Event:
        """Set as soon as the work must stop; any thread may look at it or wait for it.

        >>> with board.working() as claim:
        ...     while not claim.lost.is_set():
        ...         break  # one step of the work
        """
        self._used()
        return self._lost

    def on_lost(self, call: Callable[[], object]) -> None:
        """Call this, in any thread, when a heartbeat finds that the claim is lost.

        >>> claim.on_lost(lambda: print("lost"))
        """
        self._used()
        self._lost.on_set(call)

    def check(self) -> None:
        """Raise `Lost` if the claim is no longer yours, or if its lease could not be renewed.

        It looks at the board, at the price of one `stat`.

        >>> with board.working() as claim:
        ...     claim.check()
        ...     _ = board.force_release(claim.name, "stuck")
        ...     claim.check()
        Traceback (most recent call last):
        dibs.model.errors.Lost: ...
        """
        self._require_kept()
        try:
            self._used().verify()
        except Lost as error:
            self._lose(error)
            raise
        except Uncertain:
            self._require_kept()  # storage that fails for a moment: the lease still decides

    def verify(self) -> None:
        """The same as `check`.

        >>> claim.verify()
        """
        self.check()

    def note(self, text: str) -> None:
        """Say in one line what the work is doing; it is written in the background.

        Of several notes in a row the last one counts.

        >>> with board.working() as claim:
        ...     claim.note("step 1 of 2")
        """
        self._require_own()
        self._used()
        check_note(text)
        if self._ended is None:
            self._beats.note(text)

    def beat(
        self,
        *,
        ttl: float | None = None,
        metadata: str | None = None,
        note: str | None = None,
    ) -> None:
        """Renew the lease now, with new terms; the heartbeats in the background need no help.

        >>> claim.beat(ttl=300)
        """
        self._require_kept()
        with self._beats.quiet:
            try:
                self._used().beat(ttl=ttl, metadata=metadata, note=note)
            except Lost as error:
                self._lose(error)
                raise

    def keep_output(self, limit: int) -> OutputKeeper:
        """Where to keep what the work prints, at most `limit` bytes: the beginning and the end.

        >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
        """
        self._require_own()
        return self._used().keep_output(limit)

    # How it ends

    def done(self, result: bytes | None = None) -> Task:
        """Commit the finished task now, perhaps with a result; leaving the body does nothing more.

        >>> with board.working() as claim:
        ...     task = claim.done(b"42")
        >>> board.result(task)
        b'42'
        """
        return self._end("done", lambda: self._claim.done(result))

    def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Count a failed attempt now; leaving the body does nothing more.

        >>> with board.working() as claim:
        ...     task = claim.fail("no such branch", retry_in=60)
        >>> task.state
        'later'
        """
        return self._end("failed", lambda: self._claim.fail(reason, retry_in=retry_in))

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Give the task or lock back now, unchanged; leaving the body does nothing more.

        >>> with board.working() as claim:
        ...     claim.release().state
        'available'
        """
        return self._end("released", lambda: self._claim.release(reason, start_in=start_in))

    def ask(self, question: str) -> Task:
        """End the claim with a question to a person; leaving the body does nothing more.

        >>> with board.working() as claim:
        ...     claim.ask("which branch?").state
        'asked'
        """
        return self._end("asked", lambda: self._claim.ask(question))

    def _end(
        self, outcome: str, verb: Callable[[], Task], *, finished: bool = False, once: bool = False
    ) -> Task:
        """End the claim; no heartbeat comes between or after, which would find it gone.

        `finished`: the body has ended while the claim was kept; only another holder is in the way.
        `once`: nothing is done if another thread has ended it meanwhile.
        """
        self._require_own()
        if self._ended is not None:
            return verb()  # a repeated commit succeeds, anything else is refused
        if isinstance(self._beats.error, Lost) or (not finished and self._lost.is_set()):
            raise self._error()
        with self._beats.quiet:
            if once and self._ended is not None:
                return self._ended
            with suppress(DibsError):
                self._beats.write_note()
            try:
                with self._turn():
                    self._ended = verb()
            except Lost as error:
                self._lose(error)
                raise
            except Uncertain:
                self._outcome = "uncertain"
                raise
            self._outcome = outcome
            self._beats.end()
        return self._ended

    def _used(self) -> Claim:
        """The claim, for a body that uses it."""
        self._use.users.add(threading.current_thread())
        return self._claim

    def _release_left(self) -> None:
        """In the thread of the heartbeats: no one is left who would end the claim."""
        if self._ended is None and not self._lost.is_set():
            self._beats.over = True
            with suppress(DibsError):
                self._release_once("its block was left without an end")
            self._lost.set()  # for code that still works on it

    def _release_once(self, reason: str) -> None:
        """Release the claim, unless another thread ends it meanwhile."""
        self._end("released", lambda: self._claim.release(reason), once=True)

    def _fail_once(self, reason: str) -> None:
        """Fail the task, unless another thread ends the claim meanwhile."""
        self._end("failed", lambda: self._claim.fail(reason), once=True)

    def _finish(self) -> None:
        """End the claim after a body without an error; tries again until the lease is over."""
        if self._ended is None and self._lost.is_set():
            self._require_kept()
        while self._ended is None:
            try:
                if self._claim.task.kind == "lock":
                    self._end("released", self._claim.release, finished=True, once=True)
                else:
                    self._end("done", self._claim.done, finished=True, once=True)
            except (StorageError, Uncertain) as error:
                again = not isinstance(error, Uncertain) or error.again
                over = self._claim.deadline + int(self._claim.ttl / 5 * SECOND)
                if not again or boottime() >= over:
                    raise
                time.sleep(_AGAIN)

    def _give_back(self, error: BaseException, *, fails: bool) -> None:
        """End the claim after an error of the body, which is more important than one of ours."""
        if self._ended is not None or self._lost.is_set():
            return
        reason = last_line(error)
        try:
            if fails and self._claim.task.kind == "task":
                self._fail_once(reason)
            else:
                self._release_once(reason)
        except DibsError as trouble:
            error.add_note(f"dibs: the claim {self._claim.name} was not ended: {trouble}")

    # What it knows

    def _is_elsewhere(self) -> bool:
        """Whether this is a fork of the process that has the claim."""
        return os.getpid() != self._pid

    def _is_past(self) -> bool:
        if self._ended is not None:
            return False
        return self._is_elsewhere() or 0 < self._claim.deadline <= boottime()

    def _notice(self) -> None:
        if self._beats.error is not None and self._ended is None:
            self._outcome = "lost"
            self._lost.set()

    def _lose(self, error: Lost) -> None:
        self._outcome = "lost"
        self._beats.error = self._beats.error or error
        self._beats.end()
        self._lost.set()

    def _require_own(self) -> None:
        """Refuse a fork: two processes would work under one claim."""
        if self._is_elsewhere():
            text = (
                f"{self._claim.name} belongs to process {self._pid}, of which this is a fork; stop"
            )
            raise Lost(text, self._claim.name)

    def _require_kept(self) -> None:
        self._require_own()
        if self._ended is not None:
            raise Lost(
                f"{self._claim.name} has ended: it is {self._ended.state}; stop", self._claim.name
            )
        if self._lost.is_set():
            self._outcome = "lost"
            raise self._error()

    def _error(self) -> Lost:
        """Why the work must stop, as a new error for each caller."""
        found, name = self._beats.error, self._claim.name
        if isinstance(found, Lost):
            return Lost(str(found), found.name, found.now)
        why = str(found) if found is not None else f"{name}: its lease was not renewed in time"
        return Lost(f"{why.removesuffix('; stop')}; stop", name)


class BodyUse:
    """Who has used the claim of a loop: it is done only if the loop's own body worked on it.

    A thread or task that has ended since counts as the body, which must have waited for it.
    """

    def __init__(self) -> None:
        self.users: set[User] = set()
        """Those that have used it."""
        self.inside: User | None = None
        """The one whose `with` it is in now."""

    def enter(self, user: User) -> None:
        """It is the body of this user."""
        self.users.add(user)
        self.inside = user

    def runs(self) -> bool:
        """Whether one of those that have used it still runs."""
        return any(_runs(user) for user in list(self.users))

    def require(self, name: str, user: User | None) -> None:
        """Refuse to call the task done if the body of this user did not work on it."""
        failure: BaseException | None = None
        if self.inside is not None:
            what = "is still being worked on"
        elif not self.users:
            what = "was not used by the body of the loop"
        elif user in self.users:
            return
        elif self.runs():
            what = "was used only by another thread or task, which still runs"
        elif (failure := next(filter(None, map(_failure, self.users)), None)) is not None:
            what = "was used only by another task, which failed"
        else:
            return
        raise BadName(
            f"{name} {what}, so it is not done: put the work, and what waits for it, into "
            "`with claim:`; for several tasks at a time use `board.work(handler, concurrency=4)`"
        ) from failure


def _runs(user: User) -> bool:
    """Whether a thread, or a task of asyncio, has not ended yet."""
    return user.is_alive() if isinstance(user, threading.Thread) else not user.done()


def _failure(user: User) -> BaseException | None:
    """Why a task of asyncio failed that has ended; no one can know that of a thread."""
    if isinstance(user, threading.Thread):
        return None
    try:
        return user.exception()
    except BaseException as cancelled:  # raised by `exception` itself
        return cancelled


def begin(kept: KeptClaim) -> None:
    """Begin to beat; if that is impossible the claim is released."""
    try:
        kept._beats.start()
    except BaseException:
        kept._beats.end()
        with suppress(DibsError):
            kept._claim.release("its heartbeats could not be started")
        raise


def end(kept: KeptClaim, error: BaseException | None, *, fails: bool) -> None:
    """End a claim as its body ended; `fails`: an error of the body is a failed attempt."""
    if kept._is_elsewhere():
        return  # the parent has the claim, and it ends it
    kept._use.inside = None
    try:
        if error is None:
            kept._finish()
        else:
            kept._give_back(error, fails=fails)
    except DibsError:
        raise
    except BaseException:  # of a signal handler, such as a second Ctrl+C while it was being ended
        with suppress(DibsError):
            kept._release_once("interrupted")
        raise
    finally:
        kept._beats.finish()


def drop(kept: KeptClaim, reason: str, *, fails: bool = False) -> None:
    """Release a claim that its body has not ended, or fail its task; errors are ignored."""
    if not is_open(kept):
        return
    try:
        with suppress(DibsError):
            if fails:
                kept._fail_once(reason)
            else:
                kept._release_once(reason)
    finally:
        kept._beats.finish()


def require_use(kept: KeptClaim, user: User | None) -> None:
    """Refuse to call the task of a loop done if the body of this user did not work on it."""
    kept._use.require(kept._claim.name, user)


def description(kept: KeptClaim) -> str:
    """What a claim is now; no use of it by a body."""
    state = kept._outcome or ("lost" if kept._lost.is_set() else "kept")
    return f"<{state} claim {kept._claim.name}>"


def has_ended(kept: KeptClaim) -> bool:
    """Whether it is known how the claim ended; no use of it by a body."""
    return bool(kept._outcome)


def is_open(kept: KeptClaim) -> bool:
    """Whether no one has ended the claim, or tried to, and it is not lost."""
    return not (has_ended(kept) or kept._beats.over or kept._is_elsewhere())


def is_free(kept: KeptClaim) -> bool:
    """Whether its end made the task available at once."""
    return kept._ended is not None and kept._ended.state == AVAILABLE


def last_line(error: BaseException) -> str:
    """An exception in one line: its type, and the last line of its text."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:  # of a class whose text cannot be made
        lines = []
    kind = type(error).__qualname__
    text = f"{kind}: {lines[-1]}" if lines else kind
    return shown(text.encode("utf-8", "backslashreplace").decode())[:_REASON]
