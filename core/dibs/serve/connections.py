"""Connections: how many there may be, and what the parser's own refusals look like."""

from __future__ import annotations

import asyncio
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
_IDLE = 75.0
"""Seconds after which a silent connection is closed: also one that has sent half a head."""


class BoardConnection(RequestHandler):
    """One connection of a client."""

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        manager = cast("ConnectionServer", self._manager)
        if len(manager.connections) >= manager.most:
            cast("asyncio.Transport", transport).abort()
        super().connection_made(transport)

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
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most: int
    ) -> None:
        self.most = most
        super().__init__(
            handler,
            request_factory=self._request,
            keepalive_timeout=_IDLE,
            read_bufsize=_READ_AHEAD,
            lingering_time=1.0,
            access_log=None,
        )

    def _request(self, message: Any, payload: Any, *rest: Any) -> web.BaseRequest:
        protocol, writer, task = rest
        return web.BaseRequest(
            message, payload, protocol, writer, task, self._loop, client_max_size=BODY_BYTES
        )

    def __call__(self) -> RequestHandler:
        return BoardConnection(self, loop=self._loop, **self._kwargs)
