"""The two pipes to the client: requests come in as lines, and replies go out as lines."""

from __future__ import annotations

import errno
import json
import os
import select
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Self

import anyio
import mcp_types as wire
from anyio.abc import ObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from dibs.mcp.answers import safe

_CHUNK = 4096
"""What a pipe that is ready takes without blocking."""
_READ = 1 << 16


def take_over() -> tuple[int, int]:
    """Standard input and output for the client alone: what else writes goes to stderr."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, sink


def hung_up(fd: int, milliseconds: int | None = None) -> bool:
    """Whether the other end of a pipe is closed, or is closed within this time."""
    poll = select.poll()
    poll.register(fd, 0)  # only a hang-up or an error wakes it
    return bool(poll.poll(milliseconds))


class Replies:
    """The stream of replies, each written as one line; after an error there are no more."""

    def __init__(self, fd: int, written: Callable[[wire.JSONRPCMessage], object]) -> None:
        """`written` is called with each reply that was written in full."""
        self.error: OSError | None = None
        """Why a reply could not be written."""
        self.failed = anyio.Event()
        """Set when the client reads no more."""
        self._fd = fd
        self._written = written
        self._turn = anyio.Lock()
        self._scope = anyio.CancelScope()

    async def send(self, item: SessionMessage) -> None:
        """Write one reply; a cancelled call does not leave half a line."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        async with self._turn:
            if self.failed.is_set():
                raise anyio.BrokenResourceError
            with anyio.CancelScope(shield=True) as self._scope:
                try:
                    await _write(self._fd, line.encode() + b"\n")
                except OSError as error:
                    self.fail(error)
                else:
                    self._written(item.message)
        if self.failed.is_set():
            raise anyio.BrokenResourceError

    def fail(self, error: OSError | None = None) -> None:
        """Write no more, also nothing of a reply that waits for its reader."""
        if not self.failed.is_set():
            self.error = error
            self.failed.set()
            self._scope.cancel()

    def left(self) -> None:
        """The reader has closed its end."""
        self.fail(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

    async def aclose(self) -> None:
        """Nothing is left to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


async def pass_on(
    fd: int, requests: ObjectSendStream[SessionMessage | Exception], replies: Replies
) -> None:
    """Pass on each line that is a message; what is none is answered with an error."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with requests:
            async for line in _lines(fd):
                try:
                    text = line.decode("utf-8", "replace")
                    message = wire.jsonrpc_message_adapter.validate_json(text, by_name=False)
                except ValidationError as error:
                    await replies.send(SessionMessage(_refused(line, error)))
                else:
                    if isinstance(message, wire.JSONRPCNotification) and _has_id(line):
                        await replies.send(SessionMessage(_BAD_ID))
                    else:
                        await requests.send(SessionMessage(message))


def _has_id(line: bytes) -> bool:
    """Whether a line that was read as a notification has an id, which then is no text or integer.

    Its client waits for an answer.
    """
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(line)
    return isinstance(found, dict) and "id" in found


_BAD_ID = wire.JSONRPCError(
    jsonrpc="2.0",
    id=None,
    error=wire.ErrorData(
        code=wire.INVALID_REQUEST, message="the id of a request must be a text or an integer"
    ),
)


def _refused(line: bytes, error: ValidationError) -> wire.JSONRPCError:
    """The error for a line that is no message, with the id of its call if that can be read."""
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(line)
    ident = found.get("id") if isinstance(found, dict) and "method" in found else None
    first = error.errors(include_url=False, include_input=False)[0]
    is_json = first["type"] != "json_invalid"
    data = wire.ErrorData(
        code=wire.INVALID_REQUEST if is_json else wire.PARSE_ERROR,
        message="this line is no JSON-RPC message" if is_json else safe(first["msg"]),
    )
    known = safe(ident) if type(ident) in (int, str) else None
    return wire.JSONRPCError(jsonrpc="2.0", id=known, error=data)


async def _lines(fd: int) -> AsyncIterator[bytes]:
    rest = bytearray()
    while data := await _read(fd):
        rest += data
        if b"\n" in data:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if line.strip():
                    yield bytes(line)
    if rest.strip():
        yield bytes(rest)


async def _read(fd: int) -> bytes:
    """What has come; empty at the end, also at that of a terminal."""
    while True:
        with suppress(PermissionError):  # no regular file can be waited for: it is always ready
            await anyio.wait_readable(fd)
        try:
            return os.read(fd, _READ)
        except BlockingIOError:
            continue
        except OSError:
            return b""


async def _write(fd: int, line: bytes) -> None:
    while line:
        with suppress(PermissionError):
            await anyio.wait_writable(fd)
        with suppress(BlockingIOError):
            line = line[os.write(fd, line[:_CHUNK]) :]
