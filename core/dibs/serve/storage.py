"""One thread that works on the board, so that storage that hangs never stops the loop.

Many small calls go through it: measured, an executor costs twice as much for each. Calls reach the
thread, and results the loop, in batches: waking the other is the most expensive part, and while
both run Python, each slows the other down.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from dibs.serve.problems import Refusal

Found = TypeVar("Found")
_KEPT_BACK = 0.01
"""Seconds after which results reach the loop even if calls still wait."""
MOST = 20_000
"""How many calls may wait; a call above that is refused."""
_Job = tuple[Callable[[], Any], Callable[[Any, BaseException | None], object] | None]


class StorageThread:
    """Runs calls one after another, in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[_Job | None] = deque()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        """An entry for each time that the thread has to look for calls."""
        self._waking = False
        """Whether the loop wakes the thread as soon as it has read what clients have sent."""
        self._done: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        """The block in which each batch of calls runs; it ends before their results are sent."""
        self._thread = threading.Thread(target=self._work, name=f"dibs-{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._jobs)

    async def run(self, call: Callable[[], Found]) -> Found:
        """What a call returns, or raises."""
        if len(self._jobs) >= MOST:
            raise Refusal("busy", "too many requests wait for the board", retry_after_ms=1000)
        future: asyncio.Future[Found] = self._loop.create_future()

        def ended(found: Any, error: BaseException | None) -> None:
            if future.done():  # its caller was cancelled
                return
            if error is None:
                future.set_result(found)
            else:
                future.set_exception(error)

        self._jobs.append((call, ended))
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)
        return await future

    def post(self, call: Callable[[], object]) -> None:
        """Run a call whose result no one waits for; any thread may ask for it."""
        self._jobs.append((call, None))
        self._wakes.put(None)

    def to_loop(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call this in the loop, in order with the results; only calls in this thread may ask."""
        self._done.append((call, arguments))

    def stop(self, seconds: float) -> bool:
        """End after the calls that wait; False if the storage has not answered in time."""
        self._jobs.append(None)
        self._wakes.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _wake(self) -> None:
        self._waking = False
        self._wakes.put(None)

    def _work(self) -> None:
        ended = False
        while not ended:
            self._wakes.get()
            while self._jobs and not ended:
                with self.around():
                    ended = self._do_batch()
                self._deliver()

    def _do_batch(self) -> bool:
        """Run the calls that wait now; whether this is the end."""
        until = time.monotonic() + _KEPT_BACK
        for _ in range(len(self._jobs)):
            job = self._jobs.popleft()
            if job is None:
                return True
            self._do(*job)
            if time.monotonic() >= until:
                break
        return False

    def _do(
        self, call: Callable[[], Any], ended: Callable[[Any, BaseException | None], object] | None
    ) -> None:
        found, problem = None, None
        try:
            found = call()
        except BaseException as error:
            problem = error
        if ended is not None:
            self._done.append((ended, (found, problem)))
        elif problem is not None:
            self._done.append((_report, (self._loop, problem)))

    def _deliver(self) -> None:
        done, self._done = self._done, []
        if done:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_call_each, done)


def _call_each(done: list[tuple[Callable[..., object], tuple[Any, ...]]]) -> None:
    for call, arguments in done:
        call(*arguments)


def _report(loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
    message = "a call on the board failed for which no one waits"
    loop.call_exception_handler({"message": message, "exception": error})
