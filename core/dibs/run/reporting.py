"""What `dibs run` writes to stderr, between the lines of the command."""

from __future__ import annotations

import fcntl
import json
import os
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.host import boottime

if TYPE_CHECKING:
    from dibs.protocols import Claim
    from dibs.run.output_log import OutputLog

VERSION = 1
STDOUT = 1
_PART, _LARGE_PART, _PIPE = 1 << 16, 1 << 18, 1 << 20
"""Bytes that are passed on at once: usually, and of output that is kept, through a larger pipe."""
_TAIL = 4096
_REASON_BYTES = 500
_STDERR = 2
TIMED_OUT = 124
"""The exit code of `dibs run` when a limit ended its command, as that of `timeout`."""
_ALWAYS = ("lost", "uncertain", "asked", "paused", "resumed", "unreachable", "reachable")
"""Events that are shown to everyone, also in the logs of a service."""


class OutputStream:
    """Writes the bytes of commands to one of our streams unchanged."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._at_line_start = True
        self._pumps: list[Pump] = []

    def follow(self, pump: Pump) -> None:
        """Register a pump, which writes here."""
        self._pumps = [*filter(Pump.is_alive, self._pumps), pump]

    def forget(self, pump: Pump) -> None:
        """Unregister a pump, so that its output is not waited for."""
        self._pumps = [each for each in self._pumps if each is not pump]

    @property
    def behind(self) -> bool:
        """Whether output of a command has not been passed on yet."""
        return any(pump.behind for pump in self._pumps)

    def pass_on(self, data: bytes) -> None:
        """Write bytes of the command."""
        with self._lock:
            self._at_line_start = data.endswith(b"\n")
            _write(self._fd, data)


class Stderr(OutputStream):
    """Writes the commands' bytes to stderr, and our own text on separate lines."""

    def __init__(self) -> None:
        super().__init__(_STDERR)

    def line(self, text: str) -> None:
        """Write a line of our own, after a line break if the command is within a line."""
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock, suppress(OSError):
            _write(_STDERR, data if self._at_line_start else b"\n" + data)
            self._at_line_start = True


class EventWriter:
    """Reports what happens to claims: numbered JSON for programs, or lines for people."""

    def __init__(
        self, stderr: Stderr, *, as_json: bool, board: str, runnable: Callable[[str], str]
    ) -> None:
        self.stderr = stderr
        self._runnable = runnable
        self.person = not as_json and os.isatty(_STDERR)
        self._json = as_json
        self._number = 0
        self._board = board

    def report(self, event: str, claim: Claim | None = None, **facts: object) -> None:
        """Report one event; without JSON and a terminal only the unusual ones are shown."""
        if event == "paused":  # the other reasons are those of the command
            facts["reason"] = self._runnable(str(facts["reason"]))
        if self._json:
            self._number += 1
            line: dict[str, object] = {
                "v": VERSION,
                "n": self._number,
                "event": event,
                "board": self._board,
            }
            if claim is not None:
                line |= {"id": claim.id, "kind": claim.task.kind, "claim": claim.name}
                line |= {"fence": claim.fence, "ttl": claim.ttl}
            self.stderr.line(json.dumps(line | facts))
        elif event == "breaker":
            self.complain(
                f"{facts['failures']} failures in a row: waiting {facts['wait']} s, then one task "
                "is tried; `--breaker 0` turns this off"
            )
        elif (
            event in _ALWAYS
            or facts.get("exit") == TIMED_OUT
            or (self.person and event != "renewed")
        ):
            from dibs.model.safe_text import shown

            name = claim.name if claim is not None else ""
            why = str(facts.get("reason", "")).removeprefix(f"{name}: ")
            reason = f": {why}" if "reason" in facts else ""
            self.stderr.line(shown(f"dibs: {event} {name}".rstrip() + reason))

    def complain(self, text: str) -> None:
        """Report an error that is not about one claim."""
        from dibs.model.safe_text import shown

        self.stderr.line(shown(f"dibs: {self._runnable(text)}"))


class Pump(threading.Thread):
    """Passes a stream of the command through and keeps its end."""

    def __init__(self, pipe: int, stream: OutputStream, log: OutputLog | None = None) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._stream = stream
        self._log = log
        self._part = _PART
        if log is not None:
            self._part = _LARGE_PART
            with suppress(OSError, AttributeError):  # a user may have only so many large pipes
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        self.last = 0
        """When something was printed last, on the boot-time clock; 0 if nothing was."""
        self._tail = b""
        self._moving = threading.Lock()
        try:
            self.start()
        except RuntimeError:
            os.close(pipe)
            raise
        stream.follow(self)

    def run(self) -> None:
        """Pass on until every writer has closed the pipe, or our own reader has left."""
        with suppress(OSError):
            while self._move():
                pass
        os.close(self._pipe)

    def _move(self) -> bool:
        ready(self._pipe, select.POLLIN)
        with self._moving:
            if data := os.read(self._pipe, self._part):
                self._tail = (self._tail + data)[-_TAIL:] if len(data) < _TAIL else data[-_TAIL:]
                self.last = boottime()
                if self._log is not None:
                    self._log.offer(data)
                self._stream.pass_on(data)
        return bool(data)

    @property
    def behind(self) -> bool:
        """Whether something was written that is not passed on yet."""
        # The order matters: what is neither in the pipe nor being moved has been passed on.
        return self.is_alive() and (ready(self._pipe, select.POLLIN, 0) or self._moving.locked())

    @property
    def last_line(self) -> str:
        lines = [line for line in self._tail.splitlines() if line.strip()]
        return lines[-1][:_REASON_BYTES].decode("utf-8", "replace").strip() if lines else ""


def ready(fd: int, event: int, seconds: float | None = None) -> bool:
    """Wait until a descriptor is ready; `poll`, because `select` fails from 1,024 on."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(None if seconds is None else 1000 * seconds))


def ready_among(fds: Sequence[int], seconds: float) -> list[int]:
    """Wait until any of these descriptors can be read; returns those that can."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(1000 * seconds)]


def _write(fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # another process made the shared descriptor non-blocking
            ready(fd, select.POLLOUT)
