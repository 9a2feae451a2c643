"""A TCP proxy before a PostgreSQL server that knows requests from answers, and loses either.

A request is what a client sends until the server is ready for the next one. A lost request never
reaches the server; a lost answer means that the server did it, and the client does not know.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from threading import Thread
from typing import Any

from tests.patience import PATIENCE

_ENCRYPTION = {80877103, 80877104}
"""The codes of the first packets to which a server answers with one byte."""


class Loss(StrEnum):
    """What is lost of one exchange."""

    REQUEST = "request"
    """The connection is cut before the server has the request."""
    ANSWER = "answer"
    """The server has done it; the connection is cut before its answer."""
    HALF = "half of the answer"
    """The same in the middle of the answer."""
    LATE = "in time"
    """The connection is cut, and the server gets the request only after the client did more."""
    SILENCE = "silence"
    """The server has done it; no byte of its answer ever comes, and the connection stays open."""


class Proxy:
    """Listens on a port of the loopback, in a thread, until it is closed."""

    def __init__(self, target: str | tuple[str, int]) -> None:
        self.target = target
        """A socket's path, or a host and a port; it may be changed for later connections."""
        self.port = 0
        self.requests = 0
        """How many requests came to an end since `count` was called."""
        self.lost = 0
        """How many were lost."""
        self.connections = 0
        self._plan: tuple[int, Loss] | None = None
        self._text: tuple[bytes, Loss] | None = None
        self._late: list[_Link] = []
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._open.set()
        self._do(self._listen())
        return self

    def __exit__(self, *error: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def url(self, database: str, *, user: str = "dibs") -> str:
        """The address of a database behind it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def count(self) -> None:
        """Count requests from here on."""
        self.requests = 0

    def lose(self, number: int, what: Loss) -> None:
        """Lose the request of that number, counted from now; the first is 0."""
        self.requests = self.lost = 0
        self._plan = number, what

    def lose_text(self, text: bytes, what: Loss) -> None:
        """Lose the next request with this text, over whatever connection it comes."""
        self.lost, self._text = 0, (text, what)

    def spare(self) -> None:
        """Lose nothing any more."""
        self._plan = None

    def deliver(self) -> None:
        """Give the server the requests that are late, and wait until it has done them."""
        self._do(self._deliver())

    def cut(self) -> None:
        """Cut all connections, as a firewall that forgets them and resets."""
        self._do(self._cut())

    def stall(self) -> None:
        """Pass nothing on in either direction, and accept no connection: half-open."""
        self._call(self._open.clear)

    def flow(self) -> None:
        """Pass everything on again, also what came meanwhile."""
        self._call(self._open.set)

    def hush(self) -> None:
        """Pass nothing more on over the connections of now; new ones work: half-open."""
        self._do(self._hush())

    def refuse(self) -> None:
        """Refuse new connections and cut the others, as a server that is gone."""
        self._do(self._deafen())

    def listen(self) -> None:
        """Accept connections again, on the same port."""
        self._do(self._listen())

    def _call(self, act: Callable[[], object]) -> None:
        async def called() -> None:
            act()

        self._do(called())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _deafen(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _hush(self) -> None:
        for link in self._links:
            link.hushed = True

    async def _cut(self) -> None:
        for link in list(self._links):
            link.cut()

    async def _deliver(self) -> None:
        while self._late:
            await self._late.pop().deliver()

    async def _close(self) -> None:
        self._open.set()
        await self._deafen()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await self._open.wait()
        try:
            if isinstance(self.target, str):
                there = await asyncio.open_unix_connection(self.target)
            else:
                there = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, (reader, writer), there)
        self._links.add(link)
        try:
            await link.run()
        finally:
            if not link.is_late:
                self._links.discard(link)
                link.cut()

    def due(self) -> Loss | None:
        """What is to be lost of the request that is under way."""
        return self._plan[1] if self._plan and self._plan[0] == self.requests else None

    def wanted(self, message: bytes) -> Loss | None:
        """What is to be lost of the request that this message begins, because of its text."""
        if self._text is None or self._text[0] not in message:
            return None
        what, self._text = self._text[1], None
        return what

    def done(self) -> None:
        """One more request is over."""
        self.requests += 1

    def note_lost(self) -> None:
        """The planned loss has happened; it happens once."""
        self.lost += 1
        self.requests += 1
        self._plan = None

    def keep(self, link: _Link) -> None:
        """A link that has a late request for the server."""
        self._late.append(link)

    async def opened(self) -> None:
        """Wait while it is stalled."""
        await self._open.wait()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._asked = False
        """Whether the client waits for the server to be ready."""
        self._late = b""
        self.hushed = False
        """Whether nothing more is passed on."""
        self._due: Loss | None = None
        """What is to be lost of the request that is under way here, because of its text."""

    async def run(self) -> None:
        """Pass everything on, until one side ends or the plan says so."""
        with suppress(asyncio.IncompleteReadError, OSError):
            await self._greet()
            ways = [asyncio.ensure_future(self._forth()), asyncio.ensure_future(self._back())]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    @property
    def is_late(self) -> bool:
        """Whether it keeps a request for the server, after the client was cut."""
        return bool(self._late)

    def cut(self) -> None:
        """Reset both sides at once."""
        _reset(self._client)
        _reset(self._server)

    async def deliver(self) -> None:
        """Let the server do the late request; its answer goes nowhere."""
        reader, writer = self._server
        with suppress(asyncio.IncompleteReadError, OSError):  # its process may have been ended
            writer.write(self._late)
            await writer.drain()
            while (await _message(reader))[0] != b"Z":
                pass
        self._late = b""
        self.cut()

    async def _greet(self) -> None:
        """The packets before the first message have no kind."""
        while True:
            head = await self._client[0].readexactly(8)
            length, code = struct.unpack("!II", head)
            rest = await self._client[0].readexactly(length - 8)
            await self._proxy.opened()
            self._server[1].write(head + rest)
            await self._server[1].drain()
            if code not in _ENCRYPTION:
                return
            answer = await self._server[0].readexactly(1)
            assert answer == b"N", "the server of the drills has no certificate"
            self._client[1].write(answer)

    async def _forth(self) -> None:
        """From the client: `Q` and `S` end a request."""
        reader, writer = self._client[0], self._server[1]
        while True:
            kind, message = await _message(reader)
            await self._proxy.opened()
            if self.hushed:
                continue
            if kind not in b"pX":  # passwords and farewells are no requests
                self._asked = True
            self._due = self._proxy.wanted(message) or self._due
            due = (self._due or self._proxy.due()) if self._asked else None
            if due is Loss.REQUEST:
                self._proxy.note_lost()
                return
            if due is Loss.LATE:
                while kind not in b"QS":
                    kind, more = await _message(reader)
                    message += more
                self._late = message
                self._proxy.note_lost()
                self._proxy.keep(self)
                _reset(self._client)
                return
            writer.write(message)
            await writer.drain()

    async def _back(self) -> None:
        """From the server: `Z` says that it is ready, what it was asked is done by then."""
        reader, writer = self._server[0], self._client[1]
        held = b""
        while True:
            kind, message = await _message(reader)
            await self._proxy.opened()
            if self.hushed:
                continue
            lost = (self._due or self._proxy.due()) if self._asked else None
            if lost is not None and kind != b"Z":
                held += message
                continue
            if kind == b"Z" and self._asked:
                self._asked = False
                if lost is not None:
                    self._proxy.note_lost()
                    if lost is Loss.HALF:
                        writer.write(held[: len(held) // 2])
                        await writer.drain()
                    if lost is Loss.SILENCE:  # until the client gives up, or all is cut
                        await asyncio.Event().wait()
                    return
                self._proxy.done()
            writer.write(message)
            await writer.drain()


def _reset(side: Stream) -> None:
    """Close one side without a farewell."""
    plug: socket.socket | None = side[1].get_extra_info("socket")
    if plug is not None and plug.fileno() >= 0 and plug.family != socket.AF_UNIX:
        with suppress(OSError):
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    side[1].transport.abort()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
