"""Requests that wait: in line, and woken one by one, so that a release starts no stampede.

Everything here runs in the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs.model.errors import Asked, DibsError, Held, Paused
from dibs.model.task import AVAILABLE, FREE
from dibs.serve.call_rights import owner_of
from dibs.serve.lock_names import id_of
from dibs.serve.problems import Refusal
from dibs.serve.route_table import Route, RouteCall

if TYPE_CHECKING:
    from dibs.model.delta import Delta
    from dibs.protocols import Presence
    from dibs.serve.service import Service

ACQUIRE = "/v1/acquire"
ANY_TASK = ("/v1/claims", "")
"""The line of those who take any task."""
_SHOWN_AFTER = 3.0
"""Seconds of waiting after which others see a worker, as for `dibs claim --wait`."""
_AGAIN = 1.0
"""Seconds after which the first in a line tries again, whatever was reported."""
LINE = 10_000
"""How many requests may wait."""


class LineWaiter:
    """One request that waits."""

    def __init__(self, since: float, owner: str, host: str | None) -> None:
        self.wake = asyncio.Event()
        self.since = since
        self.owner = owner
        self.host = host
        self.presence: Presence | None = None
        """Shows others that this worker waits; only the storage thread uses it."""


class Line:
    """Those who wait for one lock, one task or any task, in the order in which they came."""

    def __init__(self) -> None:
        self.waiters: deque[LineWaiter] = deque()

    def wake(self) -> None:
        """Let the first one try."""
        if self.waiters:
            self.waiters[0].wake.set()


class WaitingRequests:
    """The lines of all requests that wait."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lines: dict[tuple[str, str], Line] = {}
        self._loop = asyncio.get_running_loop()
        self._next = 0.0
        self._closed = False
        self.count = 0

    @staticmethod
    def concerns(call: RouteCall) -> bool:
        """Whether a request may wait at all."""
        return bool(call.given.get("wait_seconds") or call.given.get("wait"))

    async def until(
        self,
        route: Route,
        call: RouteCall,
        attempt: Callable[[], Awaitable[Any]],
        gone: Callable[[], bool],
    ) -> Any:
        """Try until it succeeds, the time is up, the client is gone or the server ends."""
        is_lock = "name" in call.path
        seconds = call.given["wait_seconds" if is_lock else "wait"]
        target = call.path["name"] if is_lock else call.given.get("id") or ""
        kind = "lock" if is_lock else route.path
        line = self._lines.get((kind, target))
        if line is None:  # who comes later does not overtake
            found, error = await _tried(attempt)
            if not _is_refused(found, error):
                return _result(found, error)
        owner = owner_of(call) if (kind, target) == ANY_TASK else ""
        waiter = LineWaiter(self._loop.time(), owner, call.given.get("host"))
        return await self._in_line((kind, target), waiter, seconds, attempt, gone)

    async def _in_line(
        self,
        key: tuple[str, str],
        waiter: LineWaiter,
        seconds: float,
        attempt: Callable[[], Awaitable[Any]],
        gone: Callable[[], bool],
    ) -> Any:
        if self.count >= LINE:
            raise Refusal("busy", f"{LINE:,} requests wait already", retry_after_ms=1000)
        line = self._lines.setdefault(key, Line())
        line.waiters.append(waiter)
        if line.waiters[0] is waiter:
            waiter.wake.set()
        self.count += 1
        end = self._loop.time() + seconds
        try:
            while True:
                left = end - self._loop.time()
                if left > 0 and not self._closed:
                    try:
                        async with asyncio.timeout(left):
                            await waiter.wake.wait()
                    except TimeoutError:
                        pass
                waiter.wake.clear()
                if self._closed:
                    raise Refusal("shutting_down", "the server ends", retry_after_ms=1000)
                if gone():
                    raise ConnectionResetError("the client has gone")
                found, error = await _tried(attempt)
                if not _is_refused(found, error) or self._loop.time() >= end:
                    return _result(found, error)
        finally:
            self.count -= 1
            line.waiters.remove(waiter)
            if key == ANY_TASK:
                self._service.verbs.post(partial(_hide, waiter))
            if not line.waiters:
                self._lines.pop(key, None)
            else:
                line.wake()

    def lock_freed(self, name: str) -> None:
        """A lock may be free: the first in its line tries."""
        for kind, ident in (("lock", name), (ACQUIRE, id_of(name))):
            line = self._lines.get((kind, ident))
            if line is not None:
                line.wake()

    def try_each(self) -> None:
        """Anything may be free: the first in each line tries."""
        for line in self._lines.values():
            line.wake()

    def seen(self, delta: Delta) -> None:
        """What the watch of the board reports."""
        if not self._lines:
            return
        found = {task.id for task in delta.added if task.state in (AVAILABLE, FREE)}
        if delta.pauses is not None:
            self.try_each()
        elif found:
            for (_, target), line in self._lines.items():
                if not target or target in found:
                    line.wake()

    def tick(self) -> None:
        """Let the first of each line try from time to time."""
        now = self._loop.time()
        if now >= self._next:
            self._next = now + _AGAIN
            self.try_each()
            self._show(now)

    def _show(self, now: float) -> None:
        """Show those who wait for any task among the waiters of the board."""
        line = self._lines.get(ANY_TASK)
        for waiter in line.waiters if line is not None else ():
            if now - waiter.since >= _SHOWN_AFTER:
                shown = partial(_keep_shown, self._service, waiter)
                self._service.verbs.post(shown, once=waiter)

    def close(self) -> None:
        """End every wait."""
        self._closed = True
        for line in self._lines.values():
            for waiter in line.waiters:
                waiter.wake.set()


async def _tried(attempt: Callable[[], Awaitable[Any]]) -> tuple[Any, Exception | None]:
    try:
        return await attempt(), None
    except (Held, Paused) as error:
        return None, error
    except Refusal as problem:
        if problem.code != "delayed":
            raise
        return None, problem


def _is_refused(found: Any, error: Exception | None) -> bool:
    """Whether it can succeed later."""
    if error is not None:
        return not isinstance(error, Asked)
    return isinstance(found, dict) and found.get("status") in ("held", "empty")


def _result(found: Any, error: Exception | None) -> Any:
    if error is not None:
        raise error
    return found


def _keep_shown(service: Service, waiter: LineWaiter) -> None:
    with suppress(DibsError):
        if waiter.presence is None:
            waiter.presence = service.board_for(waiter.host).presence(waiter.owner)
        waiter.presence.keep("idle")


def _hide(waiter: LineWaiter) -> None:
    if waiter.presence is not None:
        waiter.presence.end()
