"""The server as a process: where it listens, and how it starts and ends."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import ssl
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import StorageError
from dibs.model.safe_text import shown
from dibs.serve.browser import Browser, Browsing
from dibs.serve.connections import HEAD_SECONDS, ConnectionServer
from dibs.serve.http_server import BoardHttp
from dibs.serve.service import Service, Wording

if TYPE_CHECKING:
    from dibs.model.location import Location
    from dibs.serve.hook_sender import HookSenders

_GRACE = 1.0
"""Seconds that requests may take to end after SIGTERM."""
_LAST = 3.5
"""Seconds after SIGTERM in which the process has ended."""


class Address(NamedTuple):
    """Where to listen, and how."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """The address as clients give it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def _complain(text: str, error: BaseException | None = None) -> None:
    """Write to the log, which is standard error; texts of clients are made safe."""
    lines = traceback.format_exception(error) if error is not None else []
    with suppress(OSError):
        for line in (f"dibs: {text}", *"".join(lines).splitlines()):
            sys.stderr.write(f"{shown(line)}\n")  # one write: threads take turns by lines
            sys.stderr.flush()


def _raise_limit() -> None:
    """Allow as many open files as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(
    location: Location,
    tokens: str,
    address: Address,
    clients: int,
    wording: Wording,
    listening: Callable[[str], object],
    senders: HookSenders,
    browsing: Browsing | None = None,
) -> int:
    """Serve a board until SIGTERM; `listening` receives the address.

    There are pages for browsers if `browsing` is given.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.set_exception_handler(_loop_trouble)
    service = Service(location, tokens, wording, senders.place)
    browser = Browser(service, browsing, _complain) if browsing is not None else None
    board = BoardHttp(service, browser, _complain)
    await service.begin()
    _raise_limit()
    server = ConnectionServer(board.handle, clients, _complain)
    try:
        sockets = await loop.create_server(
            server,
            address.host,
            address.port,
            ssl=address.tls,
            backlog=1024,
            ssl_handshake_timeout=HEAD_SECONDS if address.tls else None,
        )
    except OSError as error:
        raise StorageError(f"{address.host}:{address.port}: {error.strerror or error}") from None
    looking = loop.create_task(board.look_after(server))
    bound = _bound(sockets, address.tls)
    inner = await loop.create_server(server, "127.0.0.1", 0) if browser and address.tls else None
    if browser is not None:
        browser.begin(_near(_bound(inner) if inner else bound).url, bound.port)
    gc.collect()
    gc.freeze()  # else a full collection looks at all modules: 20 ms in which no one is answered
    gc.set_threshold(10_000)
    listening(bound.url)
    senders.begin()
    await stop.wait()
    last = threading.Timer(_LAST, os._exit, (0,))
    last.daemon = True
    last.start()  # whatever hangs or takes long: what was acknowledged is on the board
    looking.cancel()
    senders.stop()
    sockets.close()
    if inner is not None:
        inner.close()
    board.close()
    server.pre_shutdown()
    with suppress(TimeoutError):
        async with asyncio.timeout(2 * _GRACE):
            await server.shutdown(_GRACE)
    service.end(_GRACE)
    await loop.run_in_executor(None, senders.end, _GRACE / 2)
    if browser is not None:
        browser.end()
    return 0


def _bound(sockets: asyncio.Server, tls: ssl.SSLContext | None = None) -> Address:
    """Where a server listens."""
    host, port = sockets.sockets[0].getsockname()[:2]
    return Address(host, port, tls)


def _near(address: Address) -> Address:
    """The same as this machine reaches it."""
    return address._replace(
        host={"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    )


def _loop_trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, ConnectionError | ssl.SSLError | OSError):
        _complain(str(context.get("message", "a fault of the server")), error)
