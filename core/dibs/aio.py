"""dibs for asyncio: `working`, `work` and `lock` as `async with`, `async for` and `await`.

Every call on the board runs in one thread of its own, so no event loop is ever blocked, not even by
a disk that hangs. A claim that was won for a task that is cancelled meanwhile is released at once.

    board = await dibs.aio.open("tasks")
    async with board.working(owner="web-3", wait=60) as claim:
        await claim.check()
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Generic, Self, TypeVar, overload
from weakref import ref

import dibs.board
from dibs.host import boottime
from dibs.keeping import BodyUse, description
from dibs.model.errors import BadName, DibsError, Held, Lost, Paused, short
from dibs.model.sample import SECOND
from dibs.model.settings import check_wait
from dibs.model.waiters import Outage, unreachable
from dibs.waiting import logged
from dibs.working import (
    ClaimTerms,
    check_handler,
    fail_left,
    in_use,
    intake_of,
    is_logged,
    keep,
    leave,
    log,
    not_entered,
    note_end,
    nothing,
    shared,
)

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.intake import Intake
    from dibs.keeping import KeptClaim, User
    from dibs.model.location import Location
    from dibs.model.process import Process
    from dibs.model.questions import Question
    from dibs.model.records import Record
    from dibs.model.task import Task
    from dibs.protocols import Claim

__all__ = ["AsyncBoard", "AsyncClaim", "AsyncLoop", "AsyncLost", "AsyncWorking", "open"]

T = TypeVar("T")
_LINGER = 2.0
"""Seconds after which the thread of a board ends if it has nothing to do."""
_LOOK = 0.25
"""Seconds between two looks at the lease, while a check waits for the disk."""
_SLICE = 1.0
"""The same, while a task waits for the loss of a claim."""
_consumer: ContextVar[ref[User]] = ContextVar("consumer")
"""Who used a claim here last: a task that `wait_for` makes for `anext` inherits it."""


async def open(
    where: str | os.PathLike[str] | None = None, *, create: bool = False, read_only: bool = False
) -> AsyncBoard:
    """Open the board at a place, or the one that `dibs.open` finds without a place.

    >>> board = await dibs.aio.open("tasks", create=True)
    >>> board
    <async board ...tasks>
    """
    calls = _Calls()
    board = await calls.do(partial(dibs.board.open, where, create=create, read_only=read_only))
    return AsyncBoard(board, calls)


class AsyncBoard:
    """A board whose every verb is awaited; it belongs to one event loop.

    >>> async with board.working(owner="web-3") as claim:
    ...     claim.id
    'build'
    """

    def __init__(self, board: Board, calls: _Calls | None = None) -> None:
        self._board = board
        self._calls = calls if calls is not None else _Calls()
        self._turn = asyncio.Lock()
        """Held by the one waiter that looks for the next task; more of them would find the same."""

    def __repr__(self) -> str:
        return f"<async board {self._board.location.label}>"

    @property
    def location(self) -> Location:
        """Where the board is, for display and for command lines.

        >>> board.location.label == board.location.where
        True
        """
        return self._board.location

    async def call(self, verb: Callable[[Board], T]) -> T:
        """What a function returns for the plain board, called in the board's thread.

        Use it for every verb that is not here, but claim with `working`, `work` and `lock`: only
        they release a claim that a cancelled task has won.

        >>> (await board.call(lambda plain: plain.snapshot())).counts()["available"]
        2
        """
        return await self._calls.do(lambda: verb(self._board))

    async def add(
        self,
        ident: str,
        payload: bytes | IO[bytes] = b"",
        *,
        priority: int = 5,
        start_in: float = 0.0,
        start_at: float | None = None,
        by: str = "",
    ) -> Task:
        """Add a task; `Exists` if the id is or was on the board.

        >>> (await board.add("report-7", b"what to do")).state
        'available'
        """
        return await self._calls.do(
            lambda: self._board.add(
                ident, payload, priority=priority, start_in=start_in, start_at=start_at, by=by
            )
        )

    async def find(self, ident: str) -> tuple[Task, ...]:
        """Every task and lock with that id, in any state; empty for an unknown id.

        >>> [task.state for task in await board.find("build")]
        ['available']
        """
        return await self._calls.do(lambda: self._board.find(ident))

    def working(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
    ) -> AsyncWorking:
        """An `async with` block that claims a task, keeps it and ends it, as `Board.working`.

        >>> async with board.working(owner="web-3", wait=60) as claim:
        ...     claim.note("step 1 of 2")
        ...     await claim.check()
        """
        terms = ClaimTerms(owner, ttl, metadata, process)
        what = short(ident) if ident is not None else "on the next task"
        take = partial(terms.claim, self._board, ident)
        return AsyncWorking(
            self._board,
            self._calls,
            "working(...)",
            what,
            take,
            wait,
            turn=self._turn if ident is None else None,
            owner=owner,
        )

    def lock(
        self,
        ident: str,
        *,
        slots: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        wait: float = 0.0,
    ) -> AsyncWorking:
        """An `async with` block that holds a lock, as `Board.lock`.

        >>> async with board.lock("nightly", wait=30) as lock:
        ...     lock.fence
        1
        """
        terms = ClaimTerms(owner, ttl, metadata)
        take = partial(terms.acquire, self._board, ident, slots)
        what = f"under the lock {short(ident)}"
        return AsyncWorking(self._board, self._calls, "lock(...)", what, take, wait)

    @overload
    def work(
        self,
        *,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: asyncio.Event | None = ...,
    ) -> AsyncLoop: ...
    @overload
    def work(
        self,
        handler: Callable[[AsyncClaim], Awaitable[object]],
        *,
        concurrency: int = ...,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: asyncio.Event | None = ...,
    ) -> Awaitable[int]: ...
    def work(
        self,
        handler: Callable[[AsyncClaim], Awaitable[object]] | None = None,
        *,
        concurrency: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
        breaker: int = 5,
        stop: asyncio.Event | None = None,
    ) -> AsyncLoop | Awaitable[int]:
        """One task after another in an `async for`, or a pool with a handler; as `Board.work`.

        A pool that is cancelled cancels its handlers, and each releases its task.

        >>> async def build(claim):
        ...     claim.note("building")
        >>> await board.work(build, concurrency=4)
        2
        """
        if handler is None and concurrency != 1:
            raise BadName("`async for` works on one task at a time: give a handler for several")
        if type(concurrency) is not int or concurrency < 1:
            raise BadName(f"concurrency must be 1 or more tasks, got {short(concurrency)}")
        if handler is not None:
            check_handler(handler)
        stopped = stop if stop is not None else asyncio.Event()
        terms = ClaimTerms(owner, ttl, metadata, process)
        intake = intake_of(self._board, terms, wait, breaker, stopped.is_set)
        loop = AsyncLoop(self._board, self._calls, intake, stopped)
        if handler is None:
            return loop
        return _AsyncPool(loop, handler, concurrency).run()


class AsyncLost:
    """Whether a claim is lost, for tasks of the event loop.

    >>> async with board.working() as claim:
    ...     claim.lost.is_set()
    False
    """

    def __init__(self, kept: KeptClaim) -> None:
        self._kept = kept
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        kept.on_lost(self._tell)

    def __repr__(self) -> str:
        return f"<lost event of {self._kept.name}: {self.is_set()}>"

    def is_set(self) -> bool:
        """Whether the work must stop.

        >>> claim.lost.is_set()
        False
        """
        return self._kept.lost.is_set()

    async def wait(self) -> None:
        """Return as soon as the work must stop.

        >>> _ = await board.call(lambda plain: plain.force_release(claim.name, "stuck"))
        >>> try:
        ...     await claim.check()
        ... except dibs.Lost:
        ...     await claim.lost.wait()
        """
        while not self.is_set():
            # Not `wait_for`: that of Python 3.11 can swallow a cancellation. The limit, because the
            # deadline passes without an event.
            with suppress(TimeoutError):
                async with asyncio.timeout(_SLICE):
                    await self._told.wait()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._told.set)


class AsyncClaim:
    """A claim whose lease is renewed in the background while an `async with` body works.

    How leaving the body ends it is as `dibs.KeptClaim` says; a task that is cancelled releases.

    >>> async with board.working(owner="web-3") as claim:
    ...     claim.note("step 1 of 2")
    ...     await claim.check()
    >>> (await board.find(claim.id))[0].state
    'done'
    """

    def __init__(self, kept: KeptClaim, calls: _Calls) -> None:
        self._kept = kept
        self._calls = calls
        self._lost = AsyncLost(kept)
        self._use = BodyUse()

    def __repr__(self) -> str:
        return description(self._used())

    async def __aenter__(self) -> Self:
        """The body that ends the claim, for the claims of a loop."""
        self._kept.__enter__()
        self._use.enter(_user())
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._use.inside = None
        await self._calls.do(partial(leave, self._kept, error, fails=_fails(error)), always=True)

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
        return self._used().outcome

    @property
    def lost(self) -> AsyncLost:
        """Set as soon as the work must stop; any task may look at it or wait for it.

        >>> claim.lost.is_set()
        False
        """
        self._used()
        return self._lost

    async def payload(self, limit: int = 1 << 30) -> bytes:
        """The payload, at most `limit` bytes of it.

        >>> async with board.working("build") as claim:
        ...     await claim.payload()
        b'what to do'
        """
        return await self._calls.do(partial(self._used().payload, limit))

    async def answers(self) -> tuple[Question, ...]:
        """The questions that were asked about this task, oldest first, with their answers.

        >>> await claim.answers()
        ()
        """
        return await self._calls.do(partial(getattr, self._used(), "answers"))

    async def check(self) -> None:
        """Raise `Lost` if the claim is no longer yours, or if its lease could not be renewed.

        It looks at the board. While a disk hangs, the end of the lease decides.

        >>> await claim.check()
        """
        call = self._calls.begin(self._used().check)
        try:
            while not (await asyncio.wait({call.future}, timeout=_LOOK))[0]:
                if self._lost.is_set():
                    raise Lost(f"{self.name}: its lease was not renewed in time; stop", self.name)
        except BaseException:
            call.leave()
            raise
        call.future.result()

    def note(self, text: str) -> None:
        """Say in one line what the work is doing; it is written in the background.

        >>> async with board.working() as claim:
        ...     claim.note("step 1 of 2")
        """
        self._used().note(text)

    async def done(self, result: bytes | None = None) -> Task:
        """Commit the finished task now; leaving the body does nothing more.

        >>> (await claim.done(b"42")).state
        'done'
        """
        return await self._calls.do(partial(self._kept.done, result), always=True)

    async def fail(self, reason: str = "", *, retry_in: float | None = None) -> Task:
        """Count a failed attempt now; leaving the body does nothing more.

        >>> (await claim.fail("no such branch", retry_in=60)).state
        'later'
        """
        verb = partial(self._kept.fail, reason, retry_in=retry_in)
        return await self._calls.do(verb, always=True)

    async def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        """Give the task or lock back now, unchanged; leaving the body does nothing more.

        >>> (await claim.release()).state
        'available'
        """
        verb = partial(self._kept.release, reason, start_in=start_in)
        return await self._calls.do(verb, always=True)

    async def ask(self, question: str) -> Task:
        """End the claim with a question to a person; leaving the body does nothing more.

        >>> (await claim.ask("which branch?")).state
        'asked'
        """
        return await self._calls.do(partial(self._kept.ask, question), always=True)

    def _used(self) -> KeptClaim:
        """The claim, for a body that uses it."""
        user = _user()
        self._use.users.add(user)
        _consumer.set(ref(user))
        return self._kept


def _this_task() -> asyncio.Task[Any] | None:
    """The task of asyncio that runs; None in a thread without one."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _user() -> User:
    """The task of asyncio that runs, or the thread without one."""
    return _this_task() or threading.current_thread()


def _fails(error: BaseException | None) -> bool:
    """Whether an error of a body is a failure: also that an inner task was cancelled.

    Only a cancellation of the task itself is one of the body.
    """
    if isinstance(error, asyncio.CancelledError):
        task = _this_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception)


class AsyncWorking:
    """An `async with` block that claims on entry, keeps the claim, and ends it on exit.

    >>> board.working("build")
    <async working 'build'>
    """

    def __init__(
        self,
        board: Board,
        calls: _Calls,
        verb: str,
        what: str,
        take: Callable[[], Claim | None],
        wait: float,
        *,
        turn: asyncio.Lock | None = None,
        owner: str | None = None,
    ) -> None:
        self._board = board
        self._calls = calls
        self._verb = verb
        self._what = what
        self._take = take
        self._wait = check_wait(wait)
        self._turn = turn
        self._presence = board.presence(owner) if turn is not None and wait > 0 else None
        self._retry = board.retry()
        self._held: DibsError | None = None
        self._outage = Outage(logged)
        self._claim: AsyncClaim | None = None
        self._free = threading.Lock()
        """Locked from before the wait until the claim has ended."""

    def __repr__(self) -> str:
        return f"<async working {self._what}>"

    async def __aenter__(self) -> AsyncClaim:
        if not self._free.acquire(blocking=False):
            raise in_use(self._verb)
        self._retry, self._held = self._board.retry(), None  # nothing of an earlier entry
        try:
            end = boottime() + int(min(self._wait, 10**9) * SECOND)
            kept = await self._look()
            if kept is None and self._wait > 0:
                kept = await self._waited(end)
            if kept is None:
                raise self._held if self._held is not None else nothing(self._board)
            self._claim = AsyncClaim(kept, self._calls)
        except BaseException:
            self._free.release()
            raise
        return self._claim

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._claim is None:
            raise not_entered(self._verb)
        try:
            await self._claim.__aexit__(kind, error, trace)
        finally:
            self._claim = None
            self._free.release()

    async def _waited(self, end: int) -> KeptClaim | None:
        """Look again until the time is up; only one waiter at a time looks for the next task."""
        if self._turn is not None:
            try:
                async with asyncio.timeout((end - boottime()) / SECOND):
                    await self._turn.acquire()
            except TimeoutError:
                return None
        try:
            kept = None
            while kept is None and (left := (end - boottime()) / SECOND) > 0:
                await asyncio.sleep(min(self._retry.every, left))
                kept = await self._look()
            return kept
        finally:
            if self._turn is not None:
                self._turn.release()
            if self._presence is not None:
                self._calls.begin(self._presence.end, always=True)

    async def _look(self) -> KeptClaim | None:
        return await self._calls.do(self._attempt, give_back=self._release)

    def _release(self, kept: KeptClaim | None) -> None:
        """Release a claim that no task waits for any more; until then it has this block."""
        _release(kept)

    def _attempt(self) -> KeptClaim | None:
        """In the board's thread: claim if an attempt is due, and begin to keep the claim."""
        if not self._retry.due():
            if self._presence is not None:
                self._presence.keep("paused" if isinstance(self._held, Paused) else "idle")
            return None
        self._retry.begin()
        self._held = claim = None
        why = ""
        try:
            claim = self._take()
        except (Held, Paused) as error:
            if isinstance(error, Held):
                self._retry.held(error)
            self._held = error
        except DibsError as error:
            self._held = unreachable(error)
            why = str(self._held)
        self._outage.note(why)
        if claim is not None:
            return keep(self._board, claim, self)
        self._retry.missed()
        return None


class AsyncLoop:
    """Claims one task after another for an `async for` loop, until there is none left.

    As in `dibs.WorkLoop`, going on means done, and leaving the loop before that is `fail`.

    >>> async for claim in board.work(owner="web-3"):
    ...     async with claim:
    ...         claim.id
    'build'
    'deploy'
    """

    def __init__(self, board: Board, calls: _Calls, intake: Intake, stop: asyncio.Event) -> None:
        self._board = board
        self._calls = calls
        self._stop = stop
        self._claim: AsyncClaim | None = None
        self._task: asyncio.Task[Any] | None = None
        """The task of asyncio that got the claim."""
        self._goes_on = False
        """Whether a task goes on to the next claim."""
        self._over = False
        self._intake = intake

    def __repr__(self) -> str:
        now = "over" if self._over else "between tasks"
        if self._claim is not None:
            now = description(self._claim._kept)
        return f"<async work loop: {now}>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncClaim:
        if self._over:
            raise StopAsyncIteration
        if self._goes_on:
            raise shared("task", "waits for its next task")
        claim = self._claim
        if claim is not None and not claim._kept.outcome and self._is_anothers(claim):
            raise shared("task", f"works on {claim._kept._claim.name}")
        self._goes_on = True
        try:
            return await self._next()
        finally:
            self._goes_on = False

    async def _next(self) -> AsyncClaim:
        """End the claim of the last body, and claim the next task."""
        try:
            await self._finish()
            while True:
                found = await self._step(0, 1)
                if self._over:  # closed by another task meanwhile
                    await self._calls.do(partial(_release, found.kept), always=True)
                if found.over or self._over:
                    raise StopAsyncIteration
                if found.kept is not None:
                    self._claim = AsyncClaim(found.kept, self._calls)
                    self._task = _this_task()
                    return self._claim
                await self._sleep(found.sleep)
                if self._over:
                    raise StopAsyncIteration
        except BaseException:
            self._calls.put(self._closing())
            raise

    async def aclose(self) -> None:
        """End the loop; a task that was not done is failed.

        >>> tasks = board.work()
        >>> (await anext(tasks)).id
        'build'
        >>> await tasks.aclose()
        >>> (await board.find("build"))[0].state
        'later'
        """
        await self._calls.do(self._closing(), always=True)

    def __del__(self) -> None:
        if not self._over:  # perhaps in another thread, without an event loop
            self._calls.put(self._closing())

    async def _step(self, busy: int, most: int) -> _KeptStep:
        """One look for a task, in the board's thread."""

        def look() -> _KeptStep:
            step = self._intake.step(busy, most)
            kept = keep(self._board, step.claim, self) if step.claim is not None else None
            return _KeptStep(kept, step.over, step.sleep)

        # Not a method of this loop: the call would keep it alive, and its end is that of its task.
        return await self._calls.do(look, give_back=lambda found: _release(found.kept))

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the next look, or until the loop is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _end(
        self, kept: KeptClaim, error: BaseException | None, *, fails: bool = False
    ) -> None:
        """End a claim as its body ended, whatever happens to the task that waits for it."""
        await self._calls.do(partial(leave, kept, error, fails=fails), always=True)

    async def _finish(self) -> None:
        """The body has gone round: its task is done, unless the body ended it."""
        claim = self._claim
        if claim is None:
            return
        kept = claim._kept
        if not kept.outcome:
            cancelled: BaseException | None = None
            try:
                await asyncio.sleep(0)  # a task that got the claim shows itself
            except asyncio.CancelledError as error:
                cancelled = error
            if not kept.outcome:
                claim._use.require(kept._claim.name, self._worker(claim))
                self._claim = None
                await self._end(kept, None)
            if cancelled is not None:
                raise cancelled
        self._claim = None
        note_end(self._intake, kept)

    def _is_anothers(self, claim: AsyncClaim) -> bool:
        """Whether the body of another task works on it, as far as this one can know."""
        task = self._task
        if task is not None and not task.done():
            return task is not _this_task()
        return self._worker(claim) not in claim._use.users and claim._use.runs()

    def _worker(self, claim: AsyncClaim) -> User | None:
        """The user whose body goes on, which made the task that runs if that is a `wait_for`."""
        user = _user()
        if user in claim._use.users or self._task is user:
            return user
        made_by = _consumer.get(None)
        return made_by() if made_by is not None else user

    def _closing(self) -> Callable[[], None]:
        """What ends the loop, in the board's thread."""
        self._over = True
        claim, self._claim = self._claim, None

        def close() -> None:
            self._intake.hide()
            if claim is not None:
                fail_left(claim._kept)

        return close


class _KeptStep:
    """What one look of a loop found."""

    def __init__(self, kept: KeptClaim | None, over: bool, sleep: float) -> None:
        self.kept = kept
        self.over = over
        self.sleep = sleep


class _AsyncPool:
    """Runs a handler for several tasks at a time, each in its own asyncio task."""

    def __init__(
        self,
        loop: AsyncLoop,
        handler: Callable[[AsyncClaim], Awaitable[object]],
        concurrency: int,
    ) -> None:
        self._loop = loop
        self._handler = handler
        self._most = concurrency
        self._running: dict[asyncio.Task[tuple[BaseException | None, bool]], KeptClaim] = {}
        self._error: BaseException | None = None
        self._done = 0

    async def run(self) -> int:
        """Work until nothing is left to do; returns how many tasks were done."""
        try:
            while not await self._go_on():
                pass
        except BaseException:
            await self._cancel()
            raise
        finally:
            await self._loop.aclose()
        if self._error is not None:
            raise self._error
        return self._done

    async def _go_on(self) -> bool:
        """One look for a task or for the end of one; returns whether all is over."""
        try:
            found = await self._loop._step(len(self._running), self._most)
        except DibsError as error:
            if not self._running:
                raise
            self._fail(error)
            return False
        if found.kept is not None:
            task = asyncio.create_task(self._work(found.kept), name=f"dibs-work-{found.kept.id}")
            self._running[task] = found.kept
        elif self._running and not found.over:
            done, _ = await asyncio.wait(
                self._running, timeout=found.sleep, return_when=asyncio.FIRST_COMPLETED
            )
            self._settle(done)
        elif not found.over:
            await self._loop._sleep(found.sleep)
        return found.over

    async def _work(self, kept: KeptClaim) -> tuple[BaseException | None, bool]:
        """Run the handler; its error, and whether that is a failure of the task."""
        error: BaseException | None = None
        fails = False
        try:
            await self._handler(AsyncClaim(kept, self._loop._calls))
        except BaseException as failure:
            error, fails = failure, _fails(failure)
        try:
            await self._loop._end(kept, error, fails=fails)
        except BaseException as trouble:
            error, fails = trouble, isinstance(trouble, Exception)
        return error, fails

    def _settle(self, done: Iterable[asyncio.Task[tuple[BaseException | None, bool]]]) -> None:
        for task in done:
            kept = self._running.pop(task)
            error, fails = task.result()
            self._done += kept.outcome == "done"
            if error is not None and not is_logged(kept, error, fails=fails):
                self._fail(error)
            note_end(self._loop._intake, kept)

    def _fail(self, error: BaseException) -> None:
        """Claim nothing more; the first error is raised at the end."""
        self._error = self._error or error
        self._loop._intake.hungry = False

    async def _cancel(self) -> None:
        """Cancel every handler; each releases its task, also one that had not begun."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for kept in self._running.values():
            if not kept.outcome:
                with suppress(DibsError):
                    await self._loop._end(kept, asyncio.CancelledError())


def _release(kept: KeptClaim | None) -> None:
    """Release a claim that no task waits for any more."""
    if kept is not None:
        with suppress(DibsError):
            leave(kept, asyncio.CancelledError(), fails=False)


class _Call(Generic[T]):
    """One call in the board's thread, and the future that a task waits for."""

    def __init__(
        self,
        call: Callable[[], T],
        give_back: Callable[[T], None] | None,
        again: Callable[[Callable[[], None]], None],
        *,
        always: bool,
    ) -> None:
        self._call: Callable[[], T] | None = call
        self._give_back = give_back
        self._again = again
        self._always = always
        self._guard = threading.Lock()
        self._left = False
        self._found: list[T] = []
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()

    async def wait(self) -> T:
        """The result; if the task that waits is cancelled, the result is given back."""
        try:
            return await self.future
        except asyncio.CancelledError:
            self.leave()
            raise

    def leave(self) -> None:
        """No task waits for it any more."""
        self.future.cancel()
        with self._guard:
            self._left = True
            found = self._found
        if found and self._give_back is not None:
            self._again(partial(self._give_back, found[0]))

    def run(self) -> None:
        """In the board's thread: make the call, and hand its result to the event loop."""
        call, self._call = self._call, None
        assert call is not None
        if self._left and not self._always:
            return
        error: BaseException | None = None
        try:
            found = [call()]
        except BaseException as failure:
            found, error = [], failure
        del call  # a loop that is left ends as soon as nothing else refers to it
        with self._guard:
            self._found = found
            left = self._left
        try:
            if not left:
                self._loop.call_soon_threadsafe(self._deliver, error)
        except RuntimeError:  # the event loop is closed
            left = True
        if left and found and self._give_back is not None:
            self._give_back(found[0])

    def _deliver(self, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
            self.future.exception()  # read, so that no one who has left makes a warning
        else:
            self.future.set_result(self._found[0])


class _Calls:
    """The thread of one board, which makes its calls in order; it ends while there are none.

    It is a daemon thread, so a disk that hangs does not keep the program from ending.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._runs = False

    async def do(
        self,
        call: Callable[[], T],
        *,
        give_back: Callable[[T], None] | None = None,
        always: bool = False,
    ) -> T:
        """Make a call and wait for its result.

        If the waiting task is cancelled, a call that has not begun is left out unless it is to be
        made `always`, and `give_back` receives the result of one that has.
        """
        return await self.begin(call, give_back=give_back, always=always).wait()

    def begin(
        self,
        call: Callable[[], T],
        *,
        give_back: Callable[[T], None] | None = None,
        always: bool = False,
    ) -> _Call[T]:
        """Make a call without waiting for it."""
        made = _Call(call, give_back, self.put, always=always)
        self.put(made.run)
        return made

    def put(self, call: Callable[[], Any]) -> None:
        """Make a call whose result no one needs; any thread may put one."""
        with self._guard:
            self._queue.put(call)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="dibs-aio", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                call = self._queue.get(timeout=_LINGER)
            except queue.Empty:
                with self._guard:
                    if self._queue.empty():
                        self._runs = False
                        return
                continue
            try:
                call()
            except Exception:
                log.exception("a call on the board failed")
            del call  # else it lives until the next one comes
