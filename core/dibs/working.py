"""Blocks that claim, keep and end: one task, one task after another, a pool, a lock.

They use a board only through its public verbs, so they are the same for every engine. Threads may
share one board: its claims and their ends take turns.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from dibs.intake import LONGEST, Intake, IntakeStep
from dibs.keeping import (
    KeptClaim,
    begin,
    description,
    drop,
    end,
    has_ended,
    is_free,
    require_use,
    unmasked,
)
from dibs.model.breaker import Breaker
from dibs.model.errors import BadName, DibsError, NothingToClaim, short
from dibs.model.settings import check_wait
from dibs.waiting import logged

if TYPE_CHECKING:
    from dibs.host import Host
    from dibs.model.location import Location
    from dibs.model.process import Process
    from dibs.protocols import Claim, Presence, Retry

Found = TypeVar("Found")
log = logging.getLogger("dibs")
log.addHandler(logging.NullHandler())
_AGAIN = (
    "%s was released and is available at once: this worker would claim it again, so it claims "
    "nothing more; release with `start_in` to go on"
)

_LEFT = (
    "the loop was left before the task was done; use `with claim:` in the loop, and an exception "
    "is the reason"
)


class Desk(Protocol):
    """A board, as much of it as the blocks use."""

    @property
    def location(self) -> Location: ...

    @property
    def host(self) -> Host: ...

    def claim(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> Claim | None: ...

    def acquire(
        self,
        ident: str,
        *,
        slots: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
    ) -> Claim: ...

    def wait_for(
        self,
        attempt: Callable[[], Found | None],
        seconds: float,
        *,
        presence: Presence | None = None,
    ) -> Found | None: ...

    def retry(self) -> Retry: ...

    def presence(self, owner: str | None = None) -> Presence: ...


class ClaimTerms(NamedTuple):
    """The terms of the claims of a block."""

    owner: str | None = None
    ttl: float | None = None
    metadata: str = ""
    process: Process | int | None = None

    def claim(self, board: Desk, ident: str | None = None) -> Claim | None:
        """Claim the next task, or the one named, without waiting.

        This process is the holder: when it has exited, the task is requeued at once.
        """
        process = self.process
        if process is None:
            process = _this_process(board.host, os.getpid())
        with turn(board):
            return board.claim(
                ident,
                owner=self.owner,
                ttl=self.ttl,
                metadata=self.metadata,
                process=process,
            )

    def acquire(self, board: Desk, ident: str, slots: int) -> Claim:
        """Acquire the lock without waiting.

        No process is recorded: threads of one process would renew each other's lock.
        """
        with turn(board):
            return board.acquire(
                ident,
                slots=slots,
                owner=self.owner,
                ttl=self.ttl,
                metadata=self.metadata,
            )


@cache
def _this_process(host: Host, pid: int) -> Process | None:
    """The identity of this process, read once; a fork has another pid."""
    return host.process(pid)


class _Turns:
    """One lock for each board that threads of this process share."""

    def __init__(self) -> None:
        self._guard = threading.RLock()  # what is collected meanwhile may need a turn too
        self._locks: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()

    def of(self, board: Desk) -> threading.RLock:
        with self._guard:
            return self._locks.setdefault(board, threading.RLock())


_turns = _Turns()


def _forget_turns() -> None:
    """In a fork another thread may have had its turn, and it does not exist there."""
    global _turns
    _turns = _Turns()


os.register_at_fork(after_in_child=_forget_turns)


def turn(board: Desk) -> threading.RLock:
    """What holds the board alone among the threads of this process, for one step.

    The lock itself: a context manager in Python can be interrupted by a signal while it is entered.
    """
    return _turns.of(board)


def keep(board: Desk, claim: Claim, block: object) -> KeptClaim:
    """Begin to keep a claim for a block; released if that is impossible."""
    kept = hold(board, claim, block)
    begin(kept)
    return kept


def hold(board: Desk, claim: Claim, block: object) -> KeptClaim:
    """A claim for the body of a block, which does not beat before `begin`."""
    log.debug("claimed %s", claim.name)
    return KeptClaim(claim, partial(turn, board), block)


def nothing(board: Desk) -> NothingToClaim:
    """The error of a body that got no task."""
    where = board.location.label
    return NothingToClaim(f"{where}: no task is available: add one, or give `wait` to wait for one")


class Working:
    """A `with` block that claims on entry, keeps the claim, and ends it on exit.

    >>> with board.working(owner="web-3", wait=60) as claim:
    ...     claim.id
    'build'
    """

    def __init__(self, board: Desk, verb: str, what: str, take: Callable[[], Claim]) -> None:
        self._board = board
        self._verb = verb
        self._what = what
        self._take = take
        self._kept: KeptClaim | None = None
        self._entries: dict[str, object] = {}
        """The entry that waits, or is kept; no lock, which says of no one that he has locked it."""

    def __repr__(self) -> str:
        now = description(self._kept) if self._kept is not None else "not entered"
        return f"<working {self._what}: {now}>"

    def __enter__(self) -> KeptClaim:
        entry = object()
        claim: Claim | None = None
        try:
            if self._entries.setdefault("one", entry) is not entry:
                raise in_use(self._verb)
            claim = self._take()
            self._kept = kept = hold(self._board, claim, self)
            begin(kept)
            return kept
        except BaseException:
            if self._entries.get("one") is entry:
                self._leave(claim)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._kept is None:
            raise not_entered(self._verb)
        try:
            leave(self._kept, error, fails=isinstance(error, Exception))
        finally:
            self._leave()

    def _leave(self, claim: Claim | None = None) -> None:
        """Release what a signal left without an end."""
        kept, self._kept = self._kept, None
        self._entries.clear()
        if kept is not None:
            drop(kept, "interrupted")
        elif claim is not None:
            with suppress(DibsError):
                claim.release("interrupted")


def in_use(verb: str) -> BadName:
    """The error for a block that is entered twice."""
    return BadName(f"this block is entered already: call `board.{verb}` again for each `with`")


def not_entered(verb: str) -> BadName:
    """The error for a block that is left without having been entered."""
    return BadName(f"this block is not entered: use it as `with board.{verb}:`")


def leave(
    kept: KeptClaim, error: BaseException | None = None, *, fails: bool | None = None
) -> None:
    """End a kept claim as its body ended, and log how; an `Exception` of the body `fails`."""
    try:
        end(kept, error, fails=isinstance(error, Exception) if fails is None else fails)
    except DibsError as trouble:
        log.warning("%s was not ended: %s", kept.name, trouble)
        raise
    if kept.outcome == "lost":
        log.warning("%s was lost", kept.name)
    else:
        log.debug("%s: %s", kept.outcome, kept.name)


def working(board: Desk, ident: str | None, terms: ClaimTerms, wait: float) -> Working:
    """The block of one task: the next one, or the one named."""
    check_wait(wait)

    def take() -> Claim:
        presence = board.presence(terms.owner) if wait > 0 and ident is None else None
        claim = board.wait_for(lambda: terms.claim(board, ident), wait, presence=presence)
        if claim is None:
            raise nothing(board)
        return claim

    what = short(ident) if ident is not None else "on the next task"
    return Working(board, "working(...)", what, take)


def lock(board: Desk, ident: str, slots: int, terms: ClaimTerms, wait: float) -> Working:
    """The block of a lock."""
    check_wait(wait)

    def take() -> Claim:
        claim = board.wait_for(lambda: terms.acquire(board, ident, slots), wait)
        assert claim is not None  # `Held` is raised instead
        return claim

    return Working(board, "lock(...)", f"under the lock {short(ident)}", take)


def work(
    board: Desk,
    handler: Callable[[KeptClaim], object] | None,
    concurrency: int,
    terms: ClaimTerms,
    wait: float,
    breaker: int,
    stop: threading.Event | None,
) -> WorkLoop | int:
    """A loop over tasks; with a handler it runs here, for several tasks at a time."""
    if handler is None:
        if concurrency != 1:
            raise BadName("a `for` loop works on one task at a time: give a handler for several")
        return WorkLoop(board, terms, wait, breaker, stop)
    if type(concurrency) is not int or concurrency < 1:
        raise BadName(f"concurrency must be 1 or more tasks, got {short(concurrency)}")
    check_handler(handler)
    check_runs(handler)
    return Pool(board, handler, concurrency, terms, wait, breaker, stop).run()


def check_handler(handler: object) -> None:
    """Refuse a handler that cannot be called with one claim: it would fail every task.

    One whose arguments are unknown passes, as many of C do.
    """
    import inspect

    if not callable(handler):
        raise BadName(f"a handler takes one argument, the claim, got {short(handler)}")
    if hasattr(handler, "__signature__"):  # anyone may have written that
        return
    try:
        # What a decorator returns is called, and not the function that it wraps.
        taken = inspect.signature(handler, follow_wrapped=False)
        text = short(str(taken))
    except Exception:  # also of an object that computes its own attributes
        return
    try:
        taken.bind(None)
    except TypeError:
        raise BadName(
            f"a handler takes one argument, the claim, but this one takes {text}: "
            "write it as `def handler(claim):`"
        ) from None


def check_runs(handler: Callable[[KeptClaim], object]) -> None:
    """Refuse a handler that returns before its work begins: each task would be done without it."""
    import inspect

    if inspect.iscoroutinefunction(handler):
        raise BadName("a thread does not run an async handler: use `dibs.aio`")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise BadName("a thread does not run a handler with `yield`: leave the `yield` out")


def intake_of(
    board: Desk, terms: ClaimTerms, wait: float, breaker: int, stopped: Callable[[], bool]
) -> Intake:
    """The intake of a loop, which claims the next task each time."""
    return Intake(
        partial(terms.claim, board),
        board.retry(),
        Breaker(breaker),
        loop=True,
        wait=check_wait(wait),
        presence=board.presence(terms.owner) if wait > 0 else None,
        stopped=stopped,
        report=logged,
    )


class WorkLoop:
    """Claims one task after another for a `for` loop, until there is none left.

    Going on to the next task means that this one is done. Leaving the loop before that, by `break`,
    `return` or an exception, is `fail`: a loop cannot see why its body was left. So end the claim
    before a `break`, or work in `with claim:`, which knows. A claim that the body has not used, or
    that another thread works on, is not done: going on raises `BadName`, and the task fails.

    >>> for claim in board.work(owner="web-3"):
    ...     with claim:
    ...         claim.id
    'build'
    'deploy'
    """

    _over = True  # until its arguments are accepted

    def __init__(
        self,
        board: Desk,
        terms: ClaimTerms,
        wait: float,
        breaker: int,
        stop: threading.Event | None,
    ) -> None:
        self._board = board
        self._pid = os.getpid()
        self._stop = stop if stop is not None else threading.Event()
        self._kept: KeptClaim | None = None
        self._thread: threading.Thread | None = None
        """The thread that works on the claim."""
        self._free = threading.Lock()
        """Locked while a thread goes on to the next task."""
        self._closed = threading.Event()
        # Not a method: the loop would keep itself alive.
        self._intake = intake_of(board, terms, wait, breaker, partial(_is_set, stop, self._closed))
        self._over = False

    def __repr__(self) -> str:
        now = "over" if self._over else "between tasks"
        return f"<work loop: {description(self._kept) if self._kept is not None else now}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> KeptClaim:
        if self._over or os.getpid() != self._pid:
            raise StopIteration  # a fork does not claim in the name of its parent
        if not self._free.acquire(blocking=False):
            raise shared("thread", "waits for its next task")
        try:
            kept, worker = self._kept, self._worker()
            if kept is not None and worker is not None and worker.is_alive():
                raise shared("thread", f"works on {kept._claim.name}")
            return self._go_on()
        finally:
            self._free.release()

    def _worker(self) -> threading.Thread | None:
        """The other thread that has an open claim of this loop."""
        if self._kept is None or has_ended(self._kept):
            return None
        return self._thread if self._thread is not threading.current_thread() else None

    def _go_on(self) -> KeptClaim:
        """End the claim of the last body, and claim the next task."""
        claim: Claim | None = None
        try:
            self._finish()
            while (step := self._intake.step(0, 1)).claim is None:
                if step.over:
                    raise StopIteration
                self._stop.wait(step.sleep)
            claim = step.claim
            self._thread = threading.current_thread()
            self._kept = kept = hold(self._board, claim, self)
            begin(kept)
            if self._over:  # closed in another thread meanwhile
                drop(kept, "the loop was closed")
                raise StopIteration
            return kept
        except BaseException:
            if claim is not None and self._kept is None:
                with suppress(DibsError):
                    claim.release("interrupted")
            self.close()
            raise

    def close(self) -> None:
        """End the loop; a task that was not done is failed.

        >>> tasks = board.work()
        >>> next(tasks).id
        'build'
        >>> tasks.close()
        >>> board.find("build")[0].state
        'later'
        """
        self._over = True
        if os.getpid() != self._pid:
            return
        self._closed.set()
        self._intake.hide()
        if self._kept is not None:
            fail_left(self._kept)
        self._kept = None

    def __del__(self) -> None:
        if not self._over:
            self.close()

    def _finish(self) -> None:
        """The body has gone round: its task is done, unless the body ended it."""
        kept = self._kept
        if kept is None:
            return
        if not has_ended(kept):
            if self._worker() is not None:  # no one knows why that one ended
                raise shared("thread", f"has ended and left {kept._claim.name}")
            require_use(kept, self._thread)
            leave(kept, None, fails=False)
        self._kept = None
        note_end(self._intake, kept)


def _is_set(*events: threading.Event | None) -> bool:
    return any(event is not None and event.is_set() for event in events)


def shared(user: str, why: str) -> BadName:
    """The error of a loop that two threads, or two tasks of asyncio, use at a time."""
    return BadName(
        f"another {user} {why} in this loop: give each {user} its own `board.work()`, or use "
        "`board.work(handler, concurrency=4)`"
    )


def fail_left(kept: KeptClaim) -> None:
    """Fail the task of a loop that was left; nothing if its claim has ended.

    The exception that left it is not known here, and `sys.exception()` may be an older one.
    """
    drop(kept, _LEFT, fails=True)


def note_end(intake: Intake, kept: KeptClaim) -> None:
    """Count how a claim of a loop ended; a task that its body delays says nothing."""
    outcome = kept.outcome
    if outcome == "released":
        if not is_free(kept):
            outcome = "delayed"
        elif intake.hungry:
            log.warning(_AGAIN, kept.name)
    if intake.ended(kept.name, outcome):
        report_breaker(intake)


def report_breaker(intake: Intake) -> None:
    """Log that the breaker opened."""
    breaker = intake.breaker
    log.warning("%d failures in a row: waiting %d s", breaker.failures, breaker.wait)


class PoolJob:
    """One task of a pool, and how its handler ended."""

    def __init__(
        self,
        board: Desk,
        claim: Claim,
        handler: Callable[[KeptClaim], object],
        ended: Callable[[None], object],
    ) -> None:
        """`ended` is called in the job's thread, after everything else."""
        self.kept = hold(board, claim, self)
        self.error: BaseException | None = None
        self.over = False
        """Whether the handler and its claim have ended."""
        self._handler = handler
        self._ended = ended
        self._begun = threading.Lock()
        """Locked by whoever is first: the thread that begins, or the one that gives up on it."""

    def start(self) -> None:
        """Start the thread; it may run even if a signal handler raises meanwhile."""
        begin(self.kept)
        name = f"dibs-work-{self.kept.id}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        with unmasked():
            thread.start()

    def gives_up(self) -> bool:
        """Release the claim, unless the thread has begun to work."""
        if not self._begun.acquire(blocking=False):
            return False
        drop(self.kept, "its thread could not be started")
        return True

    def _work(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        fails = False
        try:
            self._handler(self.kept)
        except BaseException as failure:
            self.error, fails = failure, isinstance(failure, Exception) or is_cancelled(failure)
        try:
            leave(self.kept, self.error, fails=fails)
        except BaseException as trouble:
            self.error = trouble
        self.over = True
        self._ended(None)


def is_cancelled(error: BaseException) -> bool:
    """Whether it is a cancellation of asyncio; no one can cancel a thread."""
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def is_logged(kept: KeptClaim, error: BaseException, *, fails: bool) -> bool:
    """Log the error of a handler; False if it stops the pool.

    It stops none if it fails its task, or if the handler had ended its claim before.
    """
    if not fails or kept.outcome not in ("done", "failed", "released", "asked"):
        return False
    if kept.outcome == "failed":
        log.warning("%s failed", kept.name, exc_info=error)
    else:
        log.warning(
            "%s: its handler raised after it was %s", kept.name, kept.outcome, exc_info=error
        )
    return True


class Pool:
    """Runs a handler for several tasks at a time, each in its own thread."""

    def __init__(
        self,
        board: Desk,
        handler: Callable[[KeptClaim], object],
        concurrency: int,
        terms: ClaimTerms,
        wait: float,
        breaker: int,
        stop: threading.Event | None,
    ) -> None:
        self._board = board
        self._handler = handler
        self._most = concurrency
        self._stop = stop if stop is not None else threading.Event()
        self._intake = intake_of(board, terms, wait, breaker, self._stop.is_set)
        self._jobs: set[PoolJob] = set()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Wakes the pool; what has ended says each job, because a signal can take an item away."""
        self._error: BaseException | None = None
        self.done = 0

    def __repr__(self) -> str:
        return f"<pool: {len(self._jobs)} of {self._most} busy, {self.done} done>"

    def run(self) -> int:
        """Work until nothing is left to do; returns how many tasks were done.

        An error, and a Ctrl+C, stop it cleanly: no task is claimed any more, those that are being
        worked on end, then it is raised.
        """
        try:
            while not (step := self._step()).over:
                if step.claim is not None:
                    self._start(step.claim)
                else:
                    self._wait(step.sleep)
        except BaseException:
            self._intake.hungry = False
            while self._jobs:
                self._wait(LONGEST)
            raise
        finally:
            self._intake.hide()
        if self._error is not None:
            raise self._error
        return self.done

    def _step(self) -> IntakeStep:
        try:
            return self._intake.step(len(self._jobs), self._most)
        except DibsError as error:
            if not self._jobs:
                raise
            self._fail(error)
            return IntakeStep()

    def _start(self, claim: Claim) -> None:
        job: PoolJob | None = None
        try:
            job = PoolJob(self._board, claim, self._handler, self._ended.put)
            self._jobs.add(job)
            job.start()
        except BaseException:
            if job is None:
                with suppress(DibsError):
                    claim.release("interrupted")
            elif job.gives_up():
                self._jobs.discard(job)
            raise

    def _wait(self, seconds: float) -> None:
        """Wait for the end of a task, or until the next look."""
        with suppress(queue.Empty):
            self._ended.get(timeout=seconds)
        for job in [job for job in self._jobs if job.over]:
            self._jobs.discard(job)
            self._settle(job.kept, job.error)

    def _settle(self, kept: KeptClaim, error: BaseException | None) -> None:
        self.done += kept.outcome == "done"
        if error is not None:
            fails = isinstance(error, Exception) or is_cancelled(error)
            if not is_logged(kept, error, fails=fails):
                self._fail(error)
        note_end(self._intake, kept)

    def _fail(self, error: BaseException) -> None:
        """Claim nothing more; the first error is raised at the end."""
        self._error = self._error or error
        self._intake.hungry = False
