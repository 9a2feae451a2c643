"""What happened, append-only: one file per host, boot and mount, each line one event.

The journal is commentary. Nothing is decided by it, and a step whose line could not be written
is done all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dibs.clock import Clock
    from dibs.disk import Port
    from dibs.host import Host

FOLDER = ".dibs/journal"
_READ = 64 << 20
_RECENT = 4 << 20
_LINE = 65_536
_REASON = 4096


class Event(NamedTuple):
    """One line of the journal."""

    at: float
    """Seconds on the file system's clock, roughly."""
    verb: str
    id: str
    src: str
    """The exact name before, empty where there was none."""
    dst: str
    """The exact name after, empty where there is none."""
    by: str
    """`user@host`, or the owner of the claim."""
    reason: str = ""


class Journal:
    """Writes this process's events, and reads everybody's."""

    def __init__(self, port: Port, host: Host, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._host = host
        self._file = ""
        self._whole = False
        self.by = f"{host.user}@{host.name}"
        self.unwritten = 0
        """Events of this process that could not be written."""

    def write(
        self, verb: str, ident: str, src: str, dst: str, by: str = "", reason: str = ""
    ) -> None:
        """Note what was just done; never fails."""
        reason = reason[:_REASON]
        event = Event(round(self._clock.about(), 3), verb, ident, src, dst, by or self.by, reason)
        line = _line(event)
        try:
            if not self._whole:
                self._file = self._file or self._name()
                line = self._mended() + line
            self._port.append(self._file, line)
            self._whole = True
        except OSError:
            self._whole = False
            self.unwritten += 1

    def files(self) -> list[str]:
        """Every journal file there is, oldest name first."""
        try:
            return [f"{FOLDER}/{name}" for name in sorted(self._port.names(FOLDER))]
        except OSError:
            return []

    def read(self, ident: str | None = None) -> list[Event]:
        """All events, or those of one id, in the order of their times."""
        events = [event for file in self.files() for event in self._events(file, ident)]
        return sorted(events, key=lambda event: event.at)

    def recent(self, since: float) -> list[Event]:
        """The events since a time, from the ends of the files: at most a few megabytes each."""
        events: list[Event] = []
        for file in self.files():
            try:
                start = max(0, self._port.stat(file).size - _RECENT)
            except OSError:
                continue
            lines = self._bytes(file, start).split(b"\n")[1 if start else 0 : -1]
            events += [e for e in map(parse, lines) if e is not None and e.at >= since]
        return sorted(events, key=lambda event: event.at)

    def highest_fence(self, ident: str) -> int:
        """The highest fence that the journal ever saw granted for an id."""
        from dibs.names import read_any

        names = (name for event in self.read(ident) for name in (event.src, event.dst))
        return max((t.fence for t in map(read_any, names) if t and t.id == ident), default=0)

    def follow(self, seen: dict[str, int]) -> list[Event]:
        """The events written since; `seen` holds how far each file was read and is moved on."""
        events: list[Event] = []
        for file in self.files():
            data = self._bytes(file, seen.get(file, 0))
            whole = data.rfind(b"\n") + 1
            seen[file] = seen.get(file, 0) + whole
            events += filter(None, map(parse, data[:whole].split(b"\n")[:-1]))
        return sorted(events, key=lambda event: event.at)

    def ends(self) -> dict[str, int]:
        """How long every file is now: where `follow` begins who wants only what comes."""
        found = {}
        for file in self.files():
            with suppress(OSError):
                found[file] = self._port.stat(file).size
        return found

    def torn(self) -> list[str]:
        """The files whose last line is not whole: somebody died, or is writing now."""
        tails = ((file, self._bytes(file)) for file in self.files())
        return [file for file, data in tails if data and not data.endswith(b"\n")]

    def _mended(self) -> bytes:
        """What ends the line that somebody left torn, so that the next one is not lost with it."""
        try:
            size = self._port.stat(self._file).size
            last = self._port.read(self._file, 1, size - 1)[0] if size else b"\n"
        except OSError:
            return b""
        return b"" if last == b"\n" else b"\n"

    def _name(self) -> str:
        from dibs.clock import tag

        dev = self._port.stat("").dev
        return f"{FOLDER}/{tag(self._host)}-{dev:x}.jsonl"

    def _bytes(self, file: str, offset: int = 0) -> bytes:
        try:
            return self._port.read(file, _READ, offset)[0]
        except OSError:
            return b""

    def _events(self, file: str, ident: str | None) -> Iterator[Event]:
        wanted = json.dumps(ident).encode() if ident is not None else b""
        for line in self._bytes(file).split(b"\n")[:-1]:
            if len(line) <= _LINE and wanted in line:
                event = parse(line)
                if event is not None and ident in (None, event.id):
                    yield event


def _line(event: Event) -> bytes:
    """The event as its line; spelled out, because every claim pays for two of them."""
    at, verb, ident, src, dst, by, reason = event
    return (
        f'{{"at": {at}, "verb": {_quoted(verb)}, "id": {_quoted(ident)}, "src": {_quoted(src)}, '
        f'"dst": {_quoted(dst)}, "by": {_quoted(by)}, "reason": {_quoted(reason)}}}\n'
    ).encode("ascii")


def parse(line: bytes) -> Event | None:
    """The event in a line; None where the line is torn or somebody else's."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    at = fields.get("at")
    texts = [fields.get(key, "") for key in Event._fields[1:]]
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < 2**36:
        at = 0
    return Event(float(at), *texts) if all(isinstance(t, str) for t in texts) else None
