"""One request of a hook: signed, to an address that is allowed, with an end in time and length.

The socket is connected to exactly the address that was checked, so what a name server answers
later makes no difference.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, cast

from dibs.model.errors import BadName, short, storage_error

if TYPE_CHECKING:
    from dibs.model.hooks import HookUrl

    Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SECONDS = 10.0
"""How long one try may take in all."""
ANSWER_BYTES = 1 << 16
"""So much of an answer is read at most."""
SECRET_CHARS = 16
_SECRET_BYTES = 4096
_PUBLIC = (ipaddress.IPv4Network("0.0.0.0/0"), ipaddress.IPv6Network("2000::/3"))
"""Where public addresses are. All else of IPv6 is special, as are addresses that stand for IPv4."""
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
            *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
        ),
    )
)
"""What is not public there, as IANA's registries of special addresses have it. They are written
out, because what a Python calls global depends on its version."""


class NotDelivered(Exception):
    """A try that failed; the text says why, in one line."""


def networks_of(given: Sequence[str]) -> tuple[Network, ...]:
    """The networks that hooks may reach though they are not public."""
    found = []
    for text in given:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError:
            raise BadName(
                f"{short(text)} is no network: write it as 10.0.0.0/8, 127.0.0.1 or fd00::/8"
            ) from None
    return tuple(found)


def variable_of(hook: str) -> str:
    """The variable of the environment that has the secret of a hook; `_FILE` names a file."""
    return f"DIBS_HOOK_{hook.upper().replace('-', '_')}"


def secret_of(hook: str, environment: Mapping[str, str]) -> bytes:
    """The secret of a hook, from the environment or from a file that only its user can read."""
    variable = variable_of(hook)
    text, path = environment.get(variable), environment.get(f"{variable}_FILE")
    if text is not None and path is not None:
        raise BadName(f"hook {hook}: ${variable} and ${variable}_FILE are both set: unset one")
    if text is None and path is None:
        raise BadName(f"hook {hook}: set ${variable} to its secret, or ${variable}_FILE to a file")
    secret = os.fsencode(text) if text is not None else _secret_in(path or "", variable)
    secret = secret.strip()
    if len(secret) < SECRET_CHARS:
        raise BadName(f"hook {hook}: its secret must have at least {SECRET_CHARS} characters")
    return secret


def _secret_in(path: str, variable: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as file:
            if os.fstat(fd).st_mode & 0o077:
                raise BadName(f"${variable}_FILE: {path} can be read by others: `chmod 600` it")
            return file.read(_SECRET_BYTES) or b""
    except OSError as error:
        raise storage_error(error) from error


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The value of `X-Dibs-Signature`: the time of the try, and what proves time and body."""
    digest = hmac.new(secret, b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def deliver(
    address: HookUrl, ident: str, body: bytes, secret: bytes, networks: Sequence[Network]
) -> None:
    """Send a delivery once; `NotDelivered` unless it was answered with 2xx in time."""
    until = time.monotonic() + SECONDS
    try:
        with _connected(address, networks, until) as sock:
            sock.settimeout(_left(until))
            sock.sendall(_request(address, ident, body, secret))
            status = _status(sock, until)
    except ssl.SSLCertVerificationError as error:
        raise NotDelivered(f"its certificate is not trusted: {error.verify_message}") from None
    except TimeoutError:
        raise NotDelivered(f"no answer within {SECONDS:g} s") from None
    except ssl.SSLError as error:
        raise NotDelivered(f"TLS failed: {error.reason or error}") from None
    except OSError as error:
        raise NotDelivered(error.strerror or str(error)) from None
    except (HTTPException, ValueError) as error:
        raise NotDelivered(f"its answer is not HTTP: {type(error).__name__}") from None
    if 300 <= status < 400:
        raise NotDelivered(f"HTTP {status}: redirects are not followed: correct the url")
    if not 200 <= status < 300:
        raise NotDelivered(f"HTTP {status}")


def _request(address: HookUrl, ident: str, body: bytes, secret: bytes) -> bytes:
    import dibs

    lines = (
        f"POST {address.target} HTTP/1.1",
        f"Host: {address.origin.partition('://')[2]}",
        f"User-Agent: dibs/{dibs.__version__}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Dibs-Delivery: {ident}",
        f"X-Dibs-Signature: {signature(secret, int(time.time()), body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii") + body


def _status(sock: socket.socket, until: float) -> int:
    """The status of the answer; the rest of it is read as far as it is short and here in time."""
    response = HTTPResponse(cast("socket.socket", _HookReply(sock, until)), method="POST")
    try:
        response.begin()
        with suppress(OSError, HTTPException, ValueError):
            response.read(ANSWER_BYTES)  # so that the receiver sees no reset
        return response.status
    finally:
        response.close()


class _HookReply(io.RawIOBase):
    """What arrives on a socket, until a time, and up to a length."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until
        self._room = ANSWER_BYTES

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._room <= 0:
            raise HTTPException("the answer is too long")
        self._sock.settimeout(_left(self._until))
        count = self._sock.recv_into(memoryview(buffer)[: self._room])
        self._room -= count
        return count


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _connected(address: HookUrl, networks: Sequence[Network], until: float) -> socket.socket:
    """A connection to an allowed address of that name, with TLS if the url says so."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no name"
        raise NotDelivered(f"{address.host}: {why}") from None
    refused, problem = "", OSError(f"{address.host} has no address")
    for family, kind, protocol, _, where in found:
        why = why_refused(address, str(where[0]), networks)
        if why:
            refused = why
            continue
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(until))
            sock.connect(where)
            return _secured(sock, address, until) if address.scheme == "https" else sock
        except OSError as error:
            sock.close()
            problem = error
            if isinstance(error, TimeoutError | ssl.SSLError):
                raise
        except BaseException:
            sock.close()
            raise
    if refused:
        raise NotDelivered(refused)
    raise problem


def _secured(sock: socket.socket, address: HookUrl, until: float) -> socket.socket:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    sock.settimeout(_left(until))
    return context.wrap_socket(sock, server_hostname=address.host)


def refused_address(address: HookUrl, networks: Sequence[Network]) -> str:
    """Why no try will be sent to a hook, as far as is known now; empty if one may be sent."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""  # the name may be known later; a try says so
    refused = [why_refused(address, str(where[0]), networks) for *_, where in found]
    return refused[0] if refused and all(refused) else ""


def why_refused(address: HookUrl, text: str, networks: Sequence[Network]) -> str:
    """Why a hook may not be sent to that address; empty if it may."""
    found: Ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if address.scheme == "http" and not found.is_loopback:
        return f"{address.host} is {found}: without TLS only this machine can be reached"
    if any(found in network for network in networks):
        return ""
    special = any(found in network for network in _SPECIAL)
    if not special and any(found in network for network in _PUBLIC):
        return ""
    which = f"{address.host} is {found}" if address.host != str(found) else f"{found} is an address"
    return f"{which} that is not public: allow it with `dibs serve --hook-network {found}`"
