"""A proxy before a server that knows requests from answers, and loses either."""

from __future__ import annotations

import socket
import socketserver
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from threading import Thread

from tests.patience import PATIENCE

_STREAMS = (b"GET /v1/events", b"GET /v1/watch")


class Loss(StrEnum):
    """What is lost of one exchange."""

    REQUEST = "request"
    """The connection is cut before the server has the request."""
    ANSWER = "answer"
    """The server has done it; the connection is cut before its answer."""
    HALF = "half of the answer"
    """The same in the middle of the answer."""
    RESTART = "server"
    """The server has done it; it is killed before its answer, and another one begins."""


class Proxy:
    """Listens on a port of the loopback until it is closed."""

    def __init__(self) -> None:
        self.target = ("127.0.0.1", 0)
        self.restart: Callable[[], object] = lambda: None
        """Ends the server and starts another."""
        self.requests = 0
        self.lost = 0
        self._plan: tuple[int, Loss] | None = None
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    proxy._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)

    def lose(self, number: int, what: Loss) -> None:
        """Lose the request of that number, counted from now; the first is 0."""
        self.requests = self.lost = 0
        self._plan = number, what

    def spare(self) -> None:
        """Lose nothing any more, and count from now."""
        self.requests, self._plan = 0, None

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(PATIENCE)
        with socket.create_connection(self.target, PATIENCE) as server:
            while request := _message(client):
                if request.startswith(_STREAMS):
                    server.sendall(request)
                    _pipe(server, client)
                    return
                number, self.requests = self.requests, self.requests + 1
                loss = self._plan[1] if self._plan and self._plan[0] == number else None
                if loss is Loss.REQUEST:
                    self.lost += 1
                    return
                server.sendall(request)
                answer = _message(server)
                if not answer:
                    return
                if loss is not None:
                    self.lost += 1
                    if loss is Loss.HALF:
                        client.sendall(answer[: len(answer) // 2])
                    if loss is Loss.RESTART:
                        self.restart()
                    return
                client.sendall(answer)


def _message(sock: socket.socket) -> bytes:
    """A request or an answer with a length; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(1 << 16)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += sock.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def _pipe(source: socket.socket, to: socket.socket) -> None:
    while data := source.recv(1 << 16):
        to.sendall(data)
