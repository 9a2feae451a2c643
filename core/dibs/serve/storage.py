"""The threads that work on the board, so that storage that hangs stops neither the loop nor others.

One thread at a time runs the calls in their order. A call that does not end soon is left to its
thread, and another thread, with a board of its own, goes on with the calls behind it.

Many small calls go through here: measured, an executor costs twice as much for each. Calls reach a
thread, and results the loop, in batches: waking the other is the most expensive part, and while
both run Python, each slows the other down.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from dibs.serve.problems import Refusal

Found = TypeVar("Found")
Own = TypeVar("Own")
_KEPT_BACK = 0.01
"""Seconds after which results reach the loop even if calls still wait."""
_HANGS = 0.2
"""Seconds after which a call is left to its thread."""
_LOOK = 0.1
"""Seconds between two looks for calls that hang, or that have waited for too long."""
_THREADS = 8
_ANY = _THREADS - 2
"""So many threads may hang in calls about no given id; the others are left for all else."""
_UNUSED = 30.0
"""Seconds after which a thread that has nothing to do ends, and gives up its board."""
MOST = 20_000
"""How many calls may wait; a call above that is refused."""


class BoardCall:
    """A call that waits or runs."""

    __slots__ = ("about", "at", "call", "future", "late", "seconds")

    def __init__(
        self,
        call: Callable[[], Any],
        about: Callable[[], Hashable],
        future: asyncio.Future[Any] | None = None,
        late: Callable[[Any], object] | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.call = call
        self.about = about
        """What it is about; while such a call hangs, the next one about the same waits."""
        self.future = future
        """For its result; None if no one waits for that."""
        self.late = late
        """Receives a result for which its caller has not waited."""
        self.seconds = seconds
        """So long it may take; 0 for as long as others."""
        self.at = time.monotonic()


class StorageWorker(threading.Thread, Generic[Own]):
    """One thread with its own board."""

    def __init__(self, threads: StorageThreads[Own], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.wakes: SimpleQueue[bool] = SimpleQueue()
        """True for each time that it has to look for calls, False to end."""
        self.own: Own | None = None
        self.job: BoardCall | None = None
        self.hangs_about: Hashable = ""
        """What the call is about with which it was left alone."""
        self.since = 0.0
        """When its call began; or when it had nothing to do any more."""
        self.done: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        """What the loop is to call at the end of the batch."""
        self._threads = threads

    def run(self) -> None:
        """Work whenever it is woken; at the end give up what it has of its own."""
        while self.wakes.get():
            self._threads.work(self)
        own, self.own = self.own, None
        if own is not None:
            self._threads.closed(own)


class StorageThreads(Generic[Own]):
    """Runs calls one after another, in the order in which they came, while none of them hangs."""

    def __init__(
        self,
        name: str,
        opened: Callable[[], Own],
        together: Callable[[Own], AbstractContextManager[object]],
        closed: Callable[[Own], object] = lambda own: None,
    ) -> None:
        """`opened` makes what each thread has of its own, in that thread; `closed` ends it there.

        `together` gives the block in which each batch of calls runs; it ends before their results
        are sent.
        """
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._opened = opened
        self._together = together
        self.closed = closed
        self.seconds = float("inf")
        """After so many seconds a call is answered, whether it has ended or not."""
        self._here = threading.local()
        self._jobs: deque[BoardCall | None] = deque()
        self._aside: deque[BoardCall] = deque()
        """Calls about what another call hangs in."""
        self._posted: set[Hashable] = set()
        """What posted calls are about that wait and are to wait only once."""
        self._waking = False
        """Whether the loop wakes the thread as soon as it has read what clients have sent."""
        self._hung: set[StorageWorker[Own]] = set()
        """The threads that were left alone with their calls; only the loop changes them."""
        self._hangs: Counter[Hashable] = Counter()
        """What their calls are about."""
        self._spare: list[StorageWorker[Own]] = []
        self._numbers = 0
        self._active = self._new()
        self._timer = self._loop.call_later(_LOOK, self._look)

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._jobs) + len(self._aside)

    @property
    def own(self) -> Own:
        """What the calling thread has of its own."""
        worker: StorageWorker[Own] = self._here.worker
        if worker.own is None:
            worker.own = self._opened()
        return worker.own

    async def run(
        self,
        call: Callable[[], Found],
        about: Callable[[], Hashable] = str,
        late: Callable[[Found], object] | None = None,
        seconds: float = 0.0,
    ) -> Found:
        """What a call returns, or raises.

        `about` gives what it is about, such as an id; empty if it is about nothing given. `late`
        receives, in the loop, what the call returns after its time was up, which are `seconds` if
        it may take longer than others.
        """
        if self.waiting >= MOST:
            raise Refusal("busy", "too many requests wait for the board", retry_after_ms=1000)
        future: asyncio.Future[Found] = self._loop.create_future()
        self._jobs.append(BoardCall(call, about, future, late, seconds))
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)
        return await future

    def post(self, call: Callable[[], object], once: Hashable = None) -> None:
        """Run a call whose result no one waits for; any thread may ask for it.

        With `once`, it is left out while a call that was posted with an equal `once` waits.
        """
        if once is None:
            self._jobs.append(BoardCall(call, str))
        elif once not in self._posted:
            self._posted.add(once)
            self._jobs.append(BoardCall(partial(self._once, once, call), lambda: once))
        self._active.wakes.put(True)

    def to_loop(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call this in the loop, in order with the results of this thread; only calls may ask."""
        self._here.worker.done.append((call, arguments))

    def stop(self, seconds: float) -> bool:
        """End after the calls that wait; False if the storage has not answered in time."""
        self._timer.cancel()
        self._jobs.append(None)
        self._active.wakes.put(True)
        for worker in (*self._spare, *self._hung):
            worker.wakes.put(False)
        working, until = (self._active, *self._hung), time.monotonic() + seconds
        for worker in working:
            worker.join(max(0.0, until - time.monotonic()))
        return not any(worker.is_alive() for worker in working)

    # In the threads

    def work(self, worker: StorageWorker[Own]) -> None:
        """Run the calls that wait, for as long as this is the thread that does so."""
        self._here.worker = worker
        while self._jobs and self._active is worker:
            if worker.own is None:
                ended = self._do_batch(worker)
            else:
                with self._together(worker.own):
                    ended = self._do_batch(worker)
            self._deliver(worker)
            if ended:
                worker.wakes.put(False)
                return
        worker.since = time.monotonic()
        if self._active is not worker:
            self._call_in_loop(self._came_back, worker)

    def _do_batch(self, worker: StorageWorker[Own]) -> bool:
        """Run the calls that wait now; whether this is the end."""
        until = time.monotonic() + _KEPT_BACK
        for _ in range(len(self._jobs)):
            try:
                job = self._jobs.popleft()
            except IndexError:  # another thread goes on
                break
            if job is None:
                return True
            if job.future is not None and job.future.done():
                continue  # its time was up before it began
            if self._hung and self._is_blocked(job.about()):
                self._aside.append(job)
                continue
            worker.since, worker.job = time.monotonic(), job
            self._do(worker, job)
            worker.job = None
            if self._active is not worker or time.monotonic() >= until:
                break
        return False

    def _is_blocked(self, about: Hashable) -> bool:
        return self._hangs[about] >= (1 if about else _ANY)

    def _do(self, worker: StorageWorker[Own], job: BoardCall) -> None:
        found, problem = None, None
        try:
            found = job.call()
        except BaseException as error:
            problem = error
        if job.future is not None or problem is not None:
            worker.done.append((self._ended, (job, found, problem)))

    def _once(self, once: Hashable, call: Callable[[], object]) -> None:
        self._posted.discard(once)
        call()

    def _end_batch(self, left: StorageWorker[Own]) -> None:
        """Send the results of a thread that hangs, but for the call in which it does."""
        own = left.own
        if own is not None:
            with self._together(own):
                pass
        self._deliver(left)

    def _deliver(self, worker: StorageWorker[Own]) -> None:
        done = []
        with suppress(IndexError):
            while True:
                done.append(worker.done.popleft())
        if done:
            self._call_in_loop(_call_each, done)

    def _call_in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *arguments)

    # In the loop

    def _wake(self) -> None:
        self._waking = False
        self._active.wakes.put(True)

    def _new(self) -> StorageWorker[Own]:
        self._numbers += 1
        worker = StorageWorker(self, f"dibs-{self._name}-{self._numbers}")
        worker.start()
        return worker

    def _ended(self, job: BoardCall, found: Any, problem: BaseException | None) -> None:
        future = job.future
        if future is None:
            message = "a call on the board failed for which no one waits"
            self._loop.call_exception_handler({"message": message, "exception": problem})
        elif not future.done():
            if problem is None:
                future.set_result(found)
            else:
                future.set_exception(problem)
        elif problem is None and job.late is not None:
            job.late(found)

    def _look(self) -> None:
        """See to it that no call waits for one that hangs, and that each is answered in time."""
        self._timer = self._loop.call_later(_LOOK, self._look)
        now, active = time.monotonic(), self._active
        job = active.job
        if job is not None and now - active.since >= _HANGS and (self._jobs or active.done):
            self._hand_over(active, job.about())
        for worker in (*self._hung, active):
            job = worker.job
            if job is not None and now - worker.since >= (job.seconds or self.seconds):
                _refuse(job, "uncertain", "so it is unknown whether it was done: try again")
        for queue in (self._aside, self._jobs):
            with suppress(IndexError):
                first = queue[0]
                if first is not None and now - first.at >= self.seconds:
                    for waits in tuple(queue):
                        if waits is not None and self._is_late(waits, now):
                            _refuse(waits, "busy", "so it was not done: try again")
        while self._spare and now - self._spare[0].since >= _UNUSED:
            self._spare.pop(0).wakes.put(False)

    def _is_late(self, job: BoardCall | None, now: float) -> bool:
        return job is not None and now - job.at >= (job.seconds or self.seconds)

    def _hand_over(self, worker: StorageWorker[Own], about: Hashable) -> None:
        """Leave a thread alone with its call; another one does what comes next."""
        if len(self._hung) >= _THREADS - 1:
            return
        self._hung.add(worker)
        self._hangs[about] += 1
        worker.hangs_about = about
        self._active = self._spare.pop() if self._spare else self._new()
        self._jobs.appendleft(BoardCall(partial(self._end_batch, worker), lambda: "end of a batch"))
        self._active.wakes.put(True)
        worker.wakes.put(True)  # its call may have ended just now

    def _came_back(self, worker: StorageWorker[Own]) -> None:
        """The call of a thread that was left alone has ended."""
        if worker not in self._hung:
            return
        self._hung.discard(worker)
        self._hangs[worker.hangs_about] -= 1
        self._hangs += Counter()  # drops what nothing hangs about
        self._spare.append(worker)
        aside = []
        with suppress(IndexError):
            while True:
                aside.append(self._aside.popleft())
        if aside:
            self._jobs.extendleft(reversed(aside))
            self._active.wakes.put(True)


def _call_each(done: list[tuple[Callable[..., object], tuple[Any, ...]]]) -> None:
    for call, arguments in done:
        call(*arguments)


def _refuse(job: BoardCall, code: str, what: str) -> None:
    """Answer a call whose time is up."""
    if job.future is not None and not job.future.done():
        text = f"the storage of the board has not answered in time, {what}"
        job.future.set_exception(Refusal(code, text, retry_after_ms=1000))
