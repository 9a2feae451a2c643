"""A client for tests, with nothing but the standard library: what any other language would do."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.patience import PATIENCE


class Reply(NamedTuple):
    """One answer."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.data["code"])


class HttpClient:
    """Asks one server with one token, as one agent."""

    def __init__(
        self,
        url: str,
        token: str | None,
        agent: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = PATIENCE,
    ) -> None:
        self.url, self.token, self.agent, self.tls = url, token, agent, tls
        self.timeout = timeout

    def as_agent(self, agent: str | None) -> HttpClient:
        """The same token, used by another agent."""
        return HttpClient(self.url, self.token, agent, self.tls)

    def connect(self, timeout: float = PATIENCE) -> HTTPConnection:
        """A new connection."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=self.tls)
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """The headers of each request."""
        found = {"Content-Type": "application/json"}
        if self.token is not None:
            found["Authorization"] = f"Bearer {self.token}"
        if self.agent is not None:
            found["X-Agent"] = self.agent
        return found | (more or {})

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        *,
        raw: bytes | None = None,
    ) -> Reply:
        """One request on a connection of its own."""
        connection = self.connect(self.timeout)
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data or None, self.headers(headers))
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, found, text)

    def get(self, path: str) -> Any:
        """The data of a GET that succeeds."""
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.data

    def post(self, path: str, body: object = None, **more: Any) -> Any:
        """The data of a POST that succeeds."""
        reply = self.ask("POST", path, body if body is not None else {}, **more)
        assert reply.status in (200, 201), reply
        return reply.data

    @contextmanager
    def stream(self, path: str, headers: dict[str, str] | None = None) -> Iterator[EventStream]:
        """A stream of server-sent events."""
        connection = self.connect()
        try:
            connection.request("GET", path, None, self.headers(headers))
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield EventStream(answer)
        finally:
            connection.close()


class SentEvent(NamedTuple):
    """One server-sent event."""

    name: str
    data: Any
    id: str = ""


class EventStream:
    """Reads server-sent events."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    def next(self, *wanted: str) -> SentEvent:
        """The next event, or the next with one of these names."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            event = self._one()
            if not wanted or event.name in wanted:
                return event
        raise AssertionError(f"no event {wanted}")

    def ended(self) -> bool:
        """Whether the server ends the stream; its other events are passed over."""
        try:
            while self._answer.read1(65_536):
                pass
        except (OSError, HTTPException):
            return True
        return True

    def _one(self) -> SentEvent:
        found: dict[str, str] = {}
        while True:
            line = self._answer.readline().decode()
            if not line:
                raise AssertionError("the stream has ended")
            line = line.rstrip("\n")
            if line.startswith(":"):
                continue
            if not line:
                if found:
                    data = json.loads(found.get("data", "null"))
                    return SentEvent(found.get("event", ""), data, found.get("id", ""))
                continue
            key, _, value = line.partition(": ")
            found[key] = value


def until(test: Any, what: str = "") -> Any:
    """What a test returns, as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := test():
            return found
        time.sleep(0.02)
    raise AssertionError(f"it did not come: {what or test}")
