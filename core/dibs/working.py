"""Blocks that claim, keep and end: one task, one task after another, a pool, a lock.

They use a board only through its public verbs, so they are the same for every engine. Threads may
share one board: its claims and their ends take turns.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from dibs.intake import Intake, IntakeStep
from dibs.keeping import KeptClaim
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
        self._guard = threading.Lock()
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


@contextmanager
def turn(board: Desk) -> Iterator[None]:
    """Hold the board alone among the threads of this process, for one step."""
    with _turns.of(board):
        yield


def keep(board: Desk, claim: Claim) -> KeptClaim:
    """Begin to keep a claim; released if that is impossible."""
    kept = KeptClaim(claim, partial(turn, board))
    log.debug("claimed %s", kept.name)
    return kept


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

    def __init__(self, board: Desk, what: str, take: Callable[[], Claim]) -> None:
        self._board = board
        self._what = what
        self._take = take
        self._kept: KeptClaim | None = None

    def __repr__(self) -> str:
        return f"<working {self._what}: {self._kept or 'not entered'}>"

    def __enter__(self) -> KeptClaim:
        if self._kept is not None:
            raise BadName("this block is entered already: make another with `board.working()`")
        self._kept = keep(self._board, self._take())
        return self._kept

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        kept, self._kept = self._kept, None
        assert kept is not None
        leave(kept, error)


def leave(kept: KeptClaim, error: BaseException | None = None) -> None:
    """End a kept claim as its body ended, and log how."""
    try:
        kept.__exit__(type(error) if error is not None else None, error, None)
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

    return Working(board, short(ident) if ident is not None else "on the next task", take)


def lock(board: Desk, ident: str, slots: int, terms: ClaimTerms, wait: float) -> Working:
    """The block of a lock."""
    check_wait(wait)

    def take() -> Claim:
        claim = board.wait_for(lambda: terms.acquire(board, ident, slots), wait)
        assert claim is not None  # `Held` is raised instead
        return claim

    return Working(board, f"under the lock {short(ident)}", take)


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
    return Pool(board, handler, concurrency, terms, wait, breaker, stop).run()


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
    before a `break`, or work in `with claim:`, which knows.

    >>> for claim in board.work(owner="web-3"):
    ...     with claim:
    ...         claim.id
    'build'
    'deploy'
    """

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
        self._over = True  # until its arguments are accepted
        self._intake = intake_of(board, terms, wait, breaker, self._stop.is_set)
        self._over = False

    def __repr__(self) -> str:
        return f"<work loop: {self._kept or ('over' if self._over else 'between tasks')}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> KeptClaim:
        if self._over or os.getpid() != self._pid:
            raise StopIteration  # a fork does not claim in the name of its parent
        try:
            self._finish()
            while (step := self._intake.step(0, 1)).claim is None:
                if step.over:
                    raise StopIteration
                self._stop.wait(step.sleep)
            self._kept = keep(self._board, step.claim)
            return self._kept
        except BaseException:
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
        self._intake.hide()
        kept, self._kept = self._kept, None
        if kept is not None and not kept.outcome:
            with suppress(DibsError), kept:
                kept.fail("the loop was left before the task was done")

    def __del__(self) -> None:
        if not self._over:
            self.close()

    def _finish(self) -> None:
        """The body has gone round: its task is done, unless the body ended it."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        if not kept.outcome:
            leave(kept)
        if self._intake.ended(kept.name, kept.outcome):
            report_breaker(self._intake)


def report_breaker(intake: Intake) -> None:
    """Log that the breaker opened."""
    breaker = intake.breaker
    log.warning("%d failures in a row: waiting %d s", breaker.failures, breaker.wait)


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
        self._busy = 0
        self._ended: queue.SimpleQueue[tuple[KeptClaim, BaseException | None]]
        self._ended = queue.SimpleQueue()
        self._error: BaseException | None = None
        self.done = 0

    def __repr__(self) -> str:
        return f"<pool: {self._busy} of {self._most} busy, {self.done} done>"

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
            while self._busy:
                self._wait(None)
            raise
        finally:
            self._intake.hide()
        if self._error is not None:
            raise self._error
        return self.done

    def _step(self) -> IntakeStep:
        try:
            return self._intake.step(self._busy, self._most)
        except DibsError as error:
            if not self._busy:
                raise
            self._fail(error)
            return IntakeStep()

    def _start(self, claim: Claim) -> None:
        kept = keep(self._board, claim)
        thread = threading.Thread(
            target=self._work, args=(kept,), name=f"dibs-work-{kept.id}", daemon=True
        )
        try:
            thread.start()
        except BaseException:
            with suppress(DibsError), kept:
                kept.release("its thread could not be started")
            raise
        self._busy += 1

    def _work(self, kept: KeptClaim) -> None:
        error: BaseException | None = None
        try:
            self._handler(kept)
        except BaseException as failure:
            error = failure
        try:
            leave(kept, error)
        except BaseException as trouble:
            error = trouble
        self._ended.put((kept, error))

    def _wait(self, seconds: float | None) -> None:
        """Wait for the end of a task, or until the next look."""
        try:
            kept, error = self._ended.get(timeout=seconds)
        except queue.Empty:
            return
        self._busy -= 1
        self.done += kept.outcome == "done"
        if self._intake.ended(kept.name, kept.outcome):
            report_breaker(self._intake)
        if kept.outcome == "failed" and isinstance(error, Exception):
            log.warning("%s failed", kept.name, exc_info=error)
        elif error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Claim nothing more; the first error is raised at the end."""
        self._error = self._error or error
        self._intake.hungry = False
