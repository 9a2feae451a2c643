"""The two ways to keep a claim in a block, `dibs` and `dibs.aio`, behind one interface.

An asyncio board runs in an event loop of its own thread, so that one test serves both.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import dibs
import dibs.aio
from tests.patience import PATIENCE

Handler = Callable[[Any], object]


class Stop(NamedTuple):
    """What stops a loop or a pool, from any thread."""

    event: Any
    set: Callable[[], object]


class Sync:
    """A board of `dibs`."""

    def __init__(self, where: str) -> None:
        self.plain = dibs.open(where)

    def working(self, *given: Any, **terms: Any) -> Any:
        return self.plain.working(*given, **terms)

    def lock(self, *given: Any, **terms: Any) -> Any:
        return self.plain.lock(*given, **terms)

    def block(self, verb: str, *given: Any, **terms: Any) -> Any:
        """A block that can be entered several times."""
        return getattr(self.plain, verb)(*given, **terms)

    def loop(self, **terms: Any) -> Iterator[Any]:
        return iter(self.plain.work(**terms))

    def pool(self, handler: Handler, **terms: Any) -> int:
        return self.plain.work(handler, **terms)

    def stop(self) -> Stop:
        event = threading.Event()
        return Stop(event, event.set)

    def close(self) -> None:
        """Nothing is left to close."""


class Turned:
    """A claim of `dibs.aio` whose coroutines run to their end."""

    def __init__(self, claim: Any, run: Callable[[Any], Any]) -> None:
        self._claim = claim
        self._run = run

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._claim, name)
        if isinstance(found, dibs.aio.AsyncLost):
            return Turned(found, self._run)
        if inspect.iscoroutinefunction(found):
            return lambda *given, **terms: self._run(found(*given, **terms))
        return found

    def __enter__(self) -> Turned:
        self._run(self._claim.__aenter__())
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._run(self._claim.__aexit__(kind, error, trace))


class Block:
    """A block of `dibs.aio` that threads enter."""

    def __init__(self, block: Any, run: Callable[[Any], Any]) -> None:
        self._block = block
        self._run = run

    def __enter__(self) -> Turned:
        return Turned(self._run(self._block.__aenter__()), self._run)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._run(self._block.__aexit__(kind, error, trace))


class Async:
    """A board of `dibs.aio`, driven from a thread without an event loop."""

    def __init__(self, where: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.plain = dibs.open(where)
        self.board = self._run(dibs.aio.open(where))

    def _run(self, waits: Any) -> Any:
        async def waited() -> Any:
            return await waits

        return asyncio.run_coroutine_threadsafe(waited(), self._loop).result(PATIENCE)

    def block(self, verb: str, *given: Any, **terms: Any) -> Any:
        async def make() -> Any:
            return getattr(self.board, verb)(*given, **terms)

        return Block(self._run(make()), self._run)

    @contextmanager
    def _entered(self, verb: str, given: Any, terms: Any) -> Iterator[Any]:
        with self.block(verb, *given, **terms) as claim:
            yield claim

    def working(self, *given: Any, **terms: Any) -> Any:
        return self._entered("working", given, terms)

    def lock(self, *given: Any, **terms: Any) -> Any:
        return self._entered("lock", given, terms)

    def loop(self, **terms: Any) -> Iterator[Any]:
        async def make() -> Any:
            return self.board.work(**terms)

        loop = self._run(make())
        try:
            while True:
                try:
                    claim = self._run(anext(loop))
                except StopAsyncIteration:
                    return
                yield Turned(claim, self._run)
        finally:
            self._run(loop.aclose())

    def pool(self, handler: Handler, **terms: Any) -> int:
        async def handle(claim: Any) -> None:
            await asyncio.to_thread(handler, Turned(claim, self._run))

        async def make() -> int:
            done: int = await self.board.work(handle, **terms)
            return done

        found: int = self._run(make())
        return found

    def stop(self) -> Stop:
        event = asyncio.Event()
        return Stop(event, lambda: self._loop.call_soon_threadsafe(event.set))

    def close(self) -> None:
        """Stop the event loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


Way = Sync | Async
WAYS: dict[str, type[Way]] = {"sync": Sync, "aio": Async}
