"""The pages without a browser: the login, and the terminal that the dashboard draws on."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable

import aiohttp
import pyte

from tests.patience import PATIENCE
from tests.serve.server_process import ServerProcess
from tests.tui.terminal import Screen

A_FINGER = 0.1
"""Seconds before each key: far over the 15 ms below which keys count as pasted."""


class Answering(Screen):
    """A screen that answers what a terminal is asked, such as for its cursor."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self.answers: list[str] = []

    def write_process_input(self, data: str) -> None:
        """Keep an answer."""
        self.answers.append(data)


class Drawn:
    """What a person sees of a terminal."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = Answering(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    def feed(self, data: bytes) -> None:
        """Draw."""
        # pyte draws the last byte of this sequence, which resets the keyboard protocol.
        self._stream.feed(data.replace(b"\x1b[<u", b""))

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(line.rstrip() for line in self.screen.display)


class WebTerminal:
    """The terminal of a page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, columns: int, rows: int) -> None:
        self.socket = socket
        self.drawn = Drawn(columns, rows)
        self.pongs: list[str] = []
        self.why = ""
        """Why it was closed."""
        self._changed = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while True:
            message = await self.socket.receive()
            if message.type == aiohttp.WSMsgType.BINARY:
                self.drawn.feed(message.data)
                for answer in self.drawn.screen.answers:
                    await self.send(["stdin", answer])
                self.drawn.screen.answers.clear()
            elif message.type == aiohttp.WSMsgType.TEXT:
                self.pongs.append(message.data)
            else:
                self.why = str(message.extra or "")
                self._changed.set()
                return
            self._changed.set()

    async def send(self, message: object) -> None:
        """Send what the page would send."""
        if not self.socket.closed:
            await self.socket.send_str(json.dumps(message))

    async def press(self, *keys: str) -> None:
        """Type, as fast as a person."""
        for key in keys:
            await asyncio.sleep(A_FINGER)
            await self.send(["stdin", key])

    async def insist(self, key: str, *words: str) -> None:
        """Press a key until it shows these: one that follows a change too closely does nothing."""
        for _ in range(round(PATIENCE)):
            await self.press(key)
            for _ in range(20):
                if all(word in self.drawn.text for word in words):
                    return
                await asyncio.sleep(0.05)
        raise AssertionError(f"{key} does not lead to {words}, {self.why!r}:\n{self.drawn.text}")

    async def until(self, test: Callable[[], bool]) -> None:
        """Wait until something is true of what is drawn."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not test():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"it did not come, {self.why!r}:\n{self.drawn.text}") from None

    async def shows(self, *words: str) -> None:
        """Wait until it shows all of these."""
        await self.until(lambda: all(word in self.drawn.text for word in words))

    async def ended(self) -> str:
        """Wait until it is closed; returns why."""
        await asyncio.wait_for(self._reading, PATIENCE)
        await self.socket.close()
        return self.why


class Visitor:
    """A browser: it keeps cookies, and sends the origin of the pages."""

    def __init__(self, session: aiohttp.ClientSession, server: ServerProcess) -> None:
        self.session = session
        self.url = server.url
        self.headers = {"Origin": server.url}

    async def log_in(self, token: str) -> aiohttp.ClientResponse:
        """Send the form of the login."""
        return await self.post("/login", data={"token": token})

    async def post(self, path: str, data: dict[str, str] | None = None) -> aiohttp.ClientResponse:
        """Send a form."""
        answer = await self.session.post(
            f"{self.url}{path}", data=data or {}, headers=self.headers, allow_redirects=False
        )
        await answer.read()
        return answer

    async def get(self, path: str = "/") -> aiohttp.ClientResponse:
        """A page."""
        answer = await self.session.get(f"{self.url}{path}")
        await answer.read()
        return answer

    async def terminal(self, columns: int = 120, rows: int = 40) -> WebTerminal:
        """Open the dashboard."""
        socket = await self.session.ws_connect(
            f"{self.url}/terminal?width={columns}&height={rows}",
            headers=self.headers,
            max_msg_size=0,
        )
        return WebTerminal(socket, columns, rows)


def visit(
    server: ServerProcess,
    steps: Callable[[Visitor], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> None:
    """Take these steps in a new browser."""

    async def main() -> None:
        jar = aiohttp.CookieJar(unsafe=True)  # also of a host that has only a number
        connector = aiohttp.TCPConnector(ssl=tls if tls is not None else True)
        async with aiohttp.ClientSession(cookie_jar=jar, connector=connector) as session:
            await steps(Visitor(session, server))

    asyncio.run(main())
