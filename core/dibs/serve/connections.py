"""Connections: how many there may be, how long they may be silent, and what the parser refuses."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from dibs.serve.answers import problem_response
from dibs.serve.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BODY_BYTES = 1 << 20
_READ_AHEAD = 1 << 14
"""Bytes of a body that are read before anyone asks for them."""
HEAD_SECONDS = 10.0
"""How long a new connection may take until its first request has a complete head."""
_IDLE = 75.0
"""Seconds after its last request after which a connection is closed."""


class BoardConnection(RequestHandler):
    """One connection of a client."""

    __slots__ = ("_answered", "_since", "body", "endless", "half_closed")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        manager = cast("ConnectionServer", self._manager)
        if manager.is_full:
            # The base class must not see it: the task that it starts would run after the abort.
            cast("asyncio.Transport", transport).abort()
            return
        self._since = time.monotonic()
        self._answered = 0
        self.body: Any = None
        """The body of the request that is answered now."""
        self.half_closed = False
        """Whether the client sends no more. It may still read, or it has gone."""
        self.endless = False
        """Whether it has an answer without an end, as a stream."""
        super().connection_made(transport)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the way back open for the answers to complete requests, as after `nc -N`."""
        bodies = [self.body, *(body for _, body in self._messages)]
        bodies = bodies if self._request_count > self._answered else []
        tls = self.transport is None or self.transport.get_extra_info("ssl_object") is not None
        complete = all(body is None or body.is_eof() for body in bodies)
        self.half_closed = bool(bodies) and complete and not (tls or self.endless)
        return self.half_closed

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        found = await super().finish_response(request, resp, start_time)
        self._answered += 1
        if self.half_closed and not self._messages:
            self.close()
        return found

    def end_if_silent(self, now: float) -> None:
        """Close it if its first request has no complete head in time."""
        if self._request_count == 0 and now - self._since > HEAD_SECONDS:
            self.force_close()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Report what goes wrong beside an answer in one line, and nothing that clients cause."""
        error = kw.get("exc_info")
        if not isinstance(error, ConnectionError | web.RequestPayloadError):
            kind = type(error).__name__
            cast("ConnectionServer", self._manager).complain(f"a connection was closed: {kind}")

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What the parser refuses, in the form of every other refusal."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun, so it cannot become a refusal")
        if status == 500:
            problem = Refusal("internal", "this is a fault of the server")
        else:
            text = " ".join((message or "it is not HTTP/1.1").split())[:200]
            problem = Refusal("bad_request", f"the request cannot be read: {text}")
        response = problem_response(problem, "")
        response.force_close()
        return response


class ConnectionServer(web.Server):
    """Makes the connections, at most so many at a time."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        most: int,
        complain: Callable[[str], object],
    ) -> None:
        self._most = most
        self.complain = complain
        super().__init__(
            handler,
            request_factory=self._request,
            keepalive_timeout=_IDLE,
            read_bufsize=_READ_AHEAD,
            lingering_time=1.0,
            auto_decompress=False,  # a small body could cost seconds, and that before its token
            access_log=None,
        )

    @property
    def is_full(self) -> bool:
        """Whether there are as many connections as allowed."""
        return len(self.connections) >= self._most

    def end_silent(self) -> None:
        """Close the connections that hold a place without ever having asked for anything."""
        now = time.monotonic()
        for one in self.connections:
            cast("BoardConnection", one).end_if_silent(now)

    def _request(self, message: Any, payload: Any, *rest: Any) -> web.BaseRequest:
        protocol, writer, task = rest
        protocol.body = payload
        return web.BaseRequest(
            message, payload, protocol, writer, task, self._loop, client_max_size=BODY_BYTES
        )

    def __call__(self) -> RequestHandler:
        return BoardConnection(self, loop=self._loop, **self._kwargs)


def is_half_closed(request: web.BaseRequest) -> bool:
    """Whether the client of a request sends no more; whether it reads its answer is unknown."""
    return bool(getattr(request.protocol, "half_closed", False))


def end_with_client(request: web.BaseRequest) -> None:
    """Close the connection as soon as its client sends no more: its answer has no end."""
    cast("BoardConnection", request.protocol).endless = True
