"""What `dibs run` says on stderr, between what the command writes there."""

from __future__ import annotations

import json
import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.claims import Claim

VERSION = 1
_TAIL = 4096
_REASON_BYTES = 500
_STDERR = 2


class Stderr:
    """Our stderr: the command's bytes as they are, and our own lines each on a line of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole = True
        self._pumps: list[Pump] = []

    def follow(self, pump: Pump) -> None:
        """Know of one more that writes here."""
        self._pumps = [*filter(Pump.is_alive, self._pumps), pump]

    def forget(self, pump: Pump) -> None:
        """Do not wait for what a command may still write."""
        self._pumps = [each for each in self._pumps if each is not pump]

    @property
    def behind(self) -> bool:
        """Whether a command wrote something that has not been passed on yet."""
        return any(pump.behind for pump in self._pumps)

    def pass_on(self, data: bytes) -> None:
        """Write what the command wrote."""
        with self._lock:
            self._whole = data.endswith(b"\n")
            _write(data)

    def line(self, text: str) -> None:
        """Write a line of our own, wherever the command has stopped in its own."""
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock, suppress(OSError):
            _write(data if self._whole else b"\n" + data)
            self._whole = True


class Events:
    """What happens to claims: numbered JSON for programs, or lines for people."""

    def __init__(self, stderr: Stderr, *, as_json: bool) -> None:
        self.stderr = stderr
        self.person = not as_json and os.isatty(_STDERR)
        self._json = as_json
        self._number = 0

    def tell(self, event: str, claim: Claim | None = None, **facts: object) -> None:
        """Tell of one event; a person hears of beats and waiting only on a terminal."""
        if self._json:
            self._number += 1
            line: dict[str, object] = {"v": VERSION, "n": self._number, "event": event}
            if claim is not None:
                line |= {"id": claim.id, "kind": claim.task.kind, "claim": claim.name}
                line |= {"fence": claim.fence, "ttl": claim.ttl}
            self.stderr.line(json.dumps(line | facts))
        elif event in ("lost", "uncertain") or (self.person and event != "renewed"):
            from dibs.cli.say import shown

            name = claim.name if claim is not None else ""
            reason = f": {facts['reason']}" if "reason" in facts else ""
            self.stderr.line(shown(f"dibs: {event} {name}".rstrip() + reason))

    def complain(self, text: str) -> None:
        """Say what went wrong with no claim in particular."""
        from dibs.cli.say import shown

        self.stderr.line(shown(f"dibs: {text}"))


class Pump(threading.Thread):
    """Passes the command's stderr through, and remembers how it ended."""

    def __init__(self, pipe: int, stderr: Stderr) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._stderr = stderr
        self._tail = b""
        self._moving = threading.Lock()
        try:
            self.start()
        except RuntimeError:
            os.close(pipe)
            raise
        stderr.follow(self)

    def run(self) -> None:
        """Until every writer has closed it; when our reader is gone, so is the command's."""
        with suppress(OSError):
            while self._move():
                pass
        os.close(self._pipe)

    def _move(self) -> bool:
        ready(self._pipe, select.POLLIN)
        with self._moving:
            if data := os.read(self._pipe, 65_536):
                self._tail = (self._tail + data)[-_TAIL:]
                self._stderr.pass_on(data)
        return bool(data)

    @property
    def behind(self) -> bool:
        """Whether something has been written that is not passed on yet."""
        # In this order: what is in neither place has been passed on.
        return self.is_alive() and (ready(self._pipe, select.POLLIN, 0) or self._moving.locked())

    @property
    def last_line(self) -> str:
        lines = [line for line in self._tail.splitlines() if line.strip()]
        return lines[-1][:_REASON_BYTES].decode("utf-8", "replace").strip() if lines else ""


def ready(fd: int, event: int, seconds: float | None = None) -> bool:
    """Wait until a descriptor can be read or written; select knows only those below 1,024."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(None if seconds is None else 1000 * seconds))


def _write(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(_STDERR, data) :]
        except BlockingIOError:  # whoever shares it with us does not want it to block
            ready(_STDERR, select.POLLOUT)
