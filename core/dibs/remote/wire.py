"""One connection to a server: as much of HTTP/1.1 as dibs needs, with every length bounded.

`http.client` would take twice as long to import as everything else that a cold claim does.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from select import POLLIN, poll
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.remote.addresses import ServerAddress

MOST = 1 << 28
"""The longest answer."""
_HEAD = 1 << 16
_READ = 1 << 16
CONNECT = 10.0
"""Seconds that a new connection may take."""
_ENDED = "the server closed the connection"


class NoServer(Exception):
    """There is no connection to the server now, or it was cut."""


class NoAnswer(Exception):
    """What came is no answer of HTTP/1.1."""


class Answer(NamedTuple):
    """One answer; its body may be anything."""

    status: int
    body: bytes


class HttpConnection:
    """A connection that is kept from one request to the next."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._data = b""
        """What was received and not used yet."""
        self._until = 0.0
        try:
            plain = socket.create_connection((address.host, address.port), CONNECT)
        except OSError as error:
            raise NoServer(_why(error)) from None
        self._socket = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls:
                self._socket = _secured(plain, address)
        except BaseException:
            plain.close()
            raise

    def close(self) -> None:
        """Close it; a stream from it ends."""
        with suppress(OSError):
            self._socket.close()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self.close()

    @property
    def usable(self) -> bool:
        """Whether nothing has come since the last answer; the end of the connection would."""
        if self._data or self._socket.fileno() < 0:
            return False
        look = poll()
        look.register(self._socket.fileno(), POLLIN)
        return not look.poll(0)

    def ask(self, method: str, path: str, head: str, body: bytes, seconds: float) -> Answer:
        """Send a request, and return its answer, which must be complete in that time."""
        try:
            status, length = self._begin(method, path, head, body, seconds)
            if length is None:
                return Answer(status, b"".join(self._chunks(MOST)))
            return Answer(status, self._exactly(length))
        except OSError as error:
            raise NoServer(_why(error)) from None

    def stream(self, path: str, head: str, seconds: float) -> int | Answer:
        """Begin to follow a stream: its status, which is 200, or the answer that refuses it."""
        try:
            status, length = self._begin("GET", path, head, b"", seconds)
            if length is not None:
                return Answer(status, self._exactly(length))
            return status if status == 200 else Answer(status, b"".join(self._chunks(_HEAD)))
        except OSError as error:
            raise NoServer(_why(error)) from None

    def more(self, seconds: float) -> bytes:
        """What comes next of the stream; empty if nothing came in that time."""
        self._until = time.monotonic() + max(seconds, 0.001)
        try:
            line = self._peek_line()
            length = _length(line, 16)
            if not length:
                raise NoServer("the server ended the stream")
            self._need(len(line) + 2 + length + 2)
        except TimeoutError:
            return b""
        except OSError as error:
            raise NoServer(_why(error)) from None
        start = len(line) + 2
        found, self._data = self._data[start : start + length], self._data[start + length + 2 :]
        return found

    def _begin(
        self, method: str, path: str, head: str, body: bytes, seconds: float
    ) -> tuple[int, int | None]:
        """Send the request; the status of its answer, and the length of its body if it has one."""
        self._until = time.monotonic() + seconds
        sent = f"{method} {self._address.path}{path} HTTP/1.1\r\nHost: {self._host}\r\n{head}"
        if method == "POST":
            sent += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._socket.settimeout(max(0.01, seconds))
        self._socket.sendall(sent.encode() + b"\r\n" + body)
        return self._read_head()

    @property
    def _host(self) -> str:
        return f"{self._address.authority}:{self._address.port}"

    def _read_head(self) -> tuple[int, int | None]:
        while (end := self._data.find(b"\r\n\r\n")) < 0:
            if len(self._data) > _HEAD:
                raise NoAnswer("its head is too long")
            self._receive()
        lines, self._data = self._data[:end].decode("latin-1").split("\r\n"), self._data[end + 4 :]
        version, _, rest = lines[0].partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdecimal():
            raise NoAnswer("it does not begin with HTTP/1.1")
        status = int(rest[:3])
        if status == 100:
            return self._read_head()
        heads = {key.strip().lower(): value.strip() for key, _, value in map(_parted, lines[1:])}
        if heads.get("transfer-encoding", "").lower() == "chunked":
            return status, None
        if status in (204, 304):
            return status, 0
        length = _length(heads.get("content-length", ""), 10)
        if length > MOST:
            raise NoAnswer("it is too long")
        return status, length

    def _chunks(self, most: int) -> Iterator[bytes]:
        while True:
            line = self._peek_line()
            length = _length(line, 16)
            self._exactly(len(line) + 2)
            most -= length
            if most < 0:
                raise NoAnswer("it is too long")
            yield self._exactly(length)
            if self._exactly(2) != b"\r\n":
                raise NoAnswer("its parts are not valid")
            if not length:
                return

    def _peek_line(self) -> str:
        while (end := self._data.find(b"\r\n")) < 0:
            if len(self._data) > _HEAD:
                raise NoAnswer("a line is too long")
            self._receive()
        return self._data[:end].decode("latin-1")

    def _exactly(self, count: int) -> bytes:
        self._need(count)
        found, self._data = self._data[:count], self._data[count:]
        return found

    def _need(self, count: int) -> None:
        if count > MOST:
            raise NoAnswer("it is too long")
        parts, have = [self._data], len(self._data)
        try:
            while have < count:
                parts.append(self._some())
                have += len(parts[-1])
        finally:
            self._data = b"".join(parts)

    def _receive(self) -> None:
        self._data += self._some()

    def _some(self) -> bytes:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server did not answer in time")
        self._socket.settimeout(left)
        data = self._socket.recv(_READ)
        if not data:
            raise ConnectionResetError(_ENDED)
        return data


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _length(text: str, base: int) -> int:
    text = text.strip()
    try:
        if not 0 < len(text) <= 12 or not text.isalnum():
            raise ValueError
        return int(text, base)
    except ValueError:
        raise NoAnswer("it does not say how long it is") from None


def _secured(plain: socket.socket, address: ServerAddress) -> socket.socket:
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise StorageError(
            f"{address.url}: its certificate is not trusted: {error.verify_message}: give the file "
            "of the authority that signed it in SSL_CERT_FILE"
        ) from None
    except ssl.SSLError as error:
        why = (error.reason or "no TLS").replace("_", " ").lower()
        raise StorageError(
            f"{address.url}: no TLS with this server ({why}): check whether it has http"
        ) from None
    except OSError as error:
        raise NoServer(_why(error)) from None


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    return error.strerror or str(error) or _ENDED
