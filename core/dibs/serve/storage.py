"""One thread that works on the board, so that storage that hangs never stops the loop.

Many small calls go through it: measured, an executor costs twice as much for each. What it has done
reaches the loop in batches, because waking the loop is the dearest part.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from dibs.serve.problems import Refusal

Found = TypeVar("Found")
BATCH = 32
"""The most results that reach the loop together."""
MOST = 20_000
"""How many calls may wait; a call above that is refused."""
_Job = tuple[Callable[[], Any], Callable[[Any, BaseException | None], object] | None]


class StorageThread:
    """Runs calls one after another, in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._done: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._thread = threading.Thread(target=self._work, name=f"dibs-{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return self._jobs.qsize()

    async def run(self, call: Callable[[], Found]) -> Found:
        """What a call returns, or raises."""
        if self._jobs.qsize() >= MOST:
            raise Refusal("busy", "too many requests wait for the board", retry_after_ms=1000)
        future: asyncio.Future[Found] = self._loop.create_future()

        def ended(found: Any, error: BaseException | None) -> None:
            if future.done():  # its caller was cancelled
                return
            if error is None:
                future.set_result(found)
            else:
                future.set_exception(error)

        self._jobs.put((call, ended))
        return await future

    def post(self, call: Callable[[], object]) -> None:
        """Run a call whose result no one waits for; any thread may ask for it."""
        self._jobs.put((call, None))

    def to_loop(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call this in the loop, in order with the results; only calls in this thread may ask."""
        self._done.append((call, arguments))

    def stop(self, seconds: float) -> bool:
        """End after the calls that wait; False if the storage has not answered in time."""
        self._jobs.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while True:
            for n in range(BATCH):  # those that come meanwhile are of the same batch
                if n and self._jobs.empty():
                    break
                job = self._jobs.get()
                if job is None:
                    self._deliver()
                    return
                self._do(*job)
            self._deliver()

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
