"""Streams of server-sent events: gathered for a moment, bounded, and told when they lag."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dibs.model.errors import DibsError
from dibs.serve.answers import headers_of
from dibs.serve.problems import Refusal

if TYPE_CHECKING:
    from dibs.serve.board_streams import DeltaFeed

GATHER = 0.01
"""Seconds for which events are gathered: a write for each costs a core at 1,000 a second."""
QUIET = 15.0
"""Seconds without an event after which a comment shows that the stream lives."""
PULSE = 1.0
"""Seconds without a report after which those who follow the board hear how its watch is."""
PENDING = 256 * 1024
"""So many bytes may wait for one reader; then it is told that it lags, and starts again."""
SLOW = 60.0
"""Seconds that one write may take; a reader that takes longer is dropped."""
_KIND = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
Matches = Callable[[Mapping[str, Any]], bool]


def encoded(name: str, data: object, ident: str = "") -> bytes:
    """One event as it is sent."""
    line = f"id: {ident}\n" if ident else ""
    return f"{line}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


class Stream:
    """One reader's stream."""

    def __init__(self, digest: str, matches: Matches) -> None:
        self.digest = digest
        """The hash of its reader's token."""
        self.matches = matches
        self._pending: list[bytes] = []
        self._size = 0
        self._wake = asyncio.Event()
        self.lagging = False
        self.closed = False

    def put(self, data: bytes) -> None:
        """Send an event, unless the reader lags."""
        if self.lagging or self.closed:
            return
        if self._size + len(data) > PENDING and self._pending:
            self.lag()
        else:
            self._pending.append(data)
            self._size += len(data)
            self._wake.set()

    def lag(self) -> None:
        """Begin again with a snapshot: what waits is not sent."""
        self.lagging = True
        self._pending, self._size = [], 0
        self._wake.set()

    def snapshot(self, data: bytes) -> None:
        """Begin, or begin again, with a picture of all that there is."""
        self.lagging = False
        self._pending, self._size = [data], len(data)
        self._wake.set()

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self._wake.set()

    async def take(self) -> bytes:
        """What is to be sent next; empty at the end."""
        try:
            async with asyncio.timeout(QUIET):
                await self._wake.wait()
        except TimeoutError:
            return b":\n\n"
        if not self.closed:
            await asyncio.sleep(GATHER)
        self._wake.clear()
        data, self._pending, self._size = b"".join(self._pending), [], 0
        return data


class Hub:
    """Passes each event on to the streams that want it."""

    def __init__(self) -> None:
        self.streams: set[Stream] = set()
        self.closed = False

    def publish(self, name: str, event: Mapping[str, Any], ident: str = "") -> None:
        """Send an event to every stream that it matches; it is encoded once."""
        data = b""
        for stream in self.streams:
            if stream.matches(event):
                data = data or encoded(name, event, ident)
                stream.put(data)

    def keep(self, valid: Container[str]) -> None:
        """End the streams whose tokens are revoked."""
        for stream in self.streams:
            if stream.digest not in valid:
                stream.close()

    def close(self) -> None:
        """End all streams, and every later one at once."""
        self.closed = True
        for stream in self.streams:
            stream.close()

    async def serve(
        self,
        request: web.BaseRequest,
        headers: Mapping[str, str],
        stream: Stream,
        start: Callable[[], Awaitable[None]],
    ) -> web.StreamResponse:
        """Send a stream until its reader leaves, it may not go on, or the server ends.

        `start` puts the snapshot into it, and adds it to this hub in the order of the events. It
        has been called once, and is called again for a reader that lags.
        """
        response = web.StreamResponse(headers={**headers, **_KIND})
        try:
            await response.prepare(request)
            while not self.closed and not stream.closed:
                data = await stream.take()
                if stream.lagging:
                    data = encoded("lagged", {"event": "lagged"})
                    await start()
                if data:
                    async with asyncio.timeout(SLOW):
                        await response.write(data)
            stream.close()
            if rest := await stream.take():
                async with asyncio.timeout(1):
                    await response.write(rest)
        except (ConnectionError, TimeoutError, Refusal, DibsError):
            if request.transport is not None:
                request.transport.abort()  # what is buffered would wait for a slow reader
        finally:
            self.streams.discard(stream)
        return response


def head_of_stream(request_id: str) -> web.StreamResponse:
    """The head that a stream would have: the answer to HEAD, which has no body and an end."""
    return web.StreamResponse(headers={**headers_of(request_id), **_KIND})


async def send_feed(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    feed: DeltaFeed,
) -> web.StreamResponse:
    """Send the reports of a watch until its reader leaves or it is ended."""
    response = web.StreamResponse(headers={**headers, **_KIND})
    try:
        await response.prepare(request)
        while not feed.ended:
            data = await feed.take(PULSE, GATHER) or feed.pulse()
            async with asyncio.timeout(SLOW):
                await response.write(data)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response
