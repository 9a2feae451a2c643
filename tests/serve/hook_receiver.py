"""A receiver of hooks: a real HTTP server in the test."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SECRET = "a secret of some length"


class Received(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def event(self) -> Any:
        """The event in it."""
        return self.data["event"]


class HookReceiver:
    """What came, in order; `answer` returns the status of each answer."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.all: list[Received] = []
        self.changed = threading.Condition()
        self.answer: Callable[[Received], int] = lambda received: 204
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received = Received(self.path, dict(self.headers), body)
                with receiver.changed:
                    receiver.all.append(received)
                    receiver.changed.notify_all()
                status = receiver.answer(received)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a sender that was killed

        self._server = Server(("127.0.0.1", port), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        scheme, host = ("https", "localhost") if tls is not None else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def ids(self) -> list[str]:
        """The ids of the tasks, as they came."""
        return [one.event["id"] for one in self.all]


@contextmanager
def receiving(tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[HookReceiver]:
    """A receiver that ends with the block."""
    found = HookReceiver(tls, port)
    try:
        yield found
    finally:
        found.close()
