"""Write and read the journal: append-only files, one per boot and mount, one event a line.

No decision depends on the journal, and a step counts even if its line could not be written. A long
file is rotated: it gets a number, and the oldest numbered files are removed. The first line of the
new file says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING

from dibs.files.journal_files import END, FOLDER, LONG, aside, current, number
from dibs.model.lazy import LazyModule

if TYPE_CHECKING:
    from dibs.files.clock import Clock
    from dibs.files.journal_reader import JournalReader
    from dibs.files.port import Port
    from dibs.host import Host
    from dibs.model import events
    from dibs.model.events import Cursor, Event
    from dibs.model.rates import Rates
else:
    events = LazyModule("dibs.model.events")

KEPT = 3
"""How many rotated files are kept, for each boot and mount."""
_LOOK = 64 << 10
"""How many bytes a process writes before it checks the size of the file again."""
_REASON = 4096
_AT_ONCE = 20
"""How many lines one write has at most; a very long write might not be atomic."""


class Journal:
    """Writes the events of this process, and reads those of all."""

    def __init__(self, port: Port, host: Host, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._host = host
        self._file = ""
        self._intact = False
        """Whether the file is known to end with a complete line."""
        self._room = _LOOK
        self._together = False
        self._lines: list[bytes] = []
        self.by = host.signature
        self.unwritten = 0
        """The number of this process's events that could not be written."""

    def write(
        self,
        verb: str,
        ident: str,
        src: str,
        dst: str,
        by: str = "",
        reason: str = "",
        note: str = "",
        since: float = 0.0,
        bulk: str = "",
        session: str = "",
    ) -> None:
        """Append one event; never fails. `since` is how long the task waits already."""
        at, by = round(self._clock.about(), 3), by or self.by
        line = line_of(at, verb, ident, src, dst, by, reason, note, bulk, session)
        if since:
            line = line[:-2] + f', "since": {round(since, 3)}}}\n'.encode("ascii")
        self._lines.append(line)
        if not self._together or len(self._lines) >= _AT_ONCE:
            self.flush()

    @contextmanager
    def together(self) -> Iterator[None]:
        self._together = True
        try:
            yield
        finally:
            self._together = False
            self.flush()

    def flush(self) -> None:
        """Append the lines that wait for those of other events; never fails."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        line = b"".join(lines)
        try:
            if not self._intact:
                self._file = self._file or self._name()
                line = self._mended() + line
            elif self._room <= 0:
                self._measure()
            self._port.append(self._file, line)
            self._intact = True
            self._room -= len(line)
        except OSError:
            self._intact = False
            self.unwritten += len(lines)

    def note(self, verb: str, text: str, by: str = "", *, bulk: str = "") -> None:
        self.write(verb, "", "", "", by, text, bulk=bulk)

    # Reading, which workers never do

    @property
    def _reader(self) -> JournalReader:
        self.flush()
        return self._any_reader

    @cached_property
    def _any_reader(self) -> JournalReader:
        from dibs.files.journal_reader import JournalReader

        return JournalReader(self._port, self._clock)

    def files(self) -> list[str]:
        """Every journal file; those of one boot and mount from the oldest to the newest."""
        return self._reader.files()

    def read(self, ident: str | None = None) -> list[Event]:
        """All events, or those of one id, in the order of their times."""
        return self._reader.read(ident)

    def end(self) -> Cursor:
        return events.Cursor(self._reader.ends())

    def since(
        self, cursor: Cursor | None = None, most: int | None = None
    ) -> tuple[list[Event], Cursor]:
        seen = dict(cursor.position) if cursor is not None else {}
        return self._reader.follow(seen, most), events.Cursor(seen)

    def missed(self, cursor: Cursor) -> bool:
        return self._reader.missed(cursor.position)

    def of(self, ident: str, most: int | None = None) -> list[Event]:
        if most is None:
            return events.unanswered(self.read(ident))
        return events.last(self.newest_first(ident), most)

    def oldest_first(
        self, ident: str | None = None, until: Cursor | None = None
    ) -> Iterator[Event]:
        return self._reader.oldest_first(ident, _position(until))

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        until: Cursor | None = None,
    ) -> Iterator[Event]:
        return self._reader.newest_first(ident, verbs, _position(until))

    def recent(
        self, since: float, most: int | None = None, until: Cursor | None = None
    ) -> list[Event]:
        """The events since a time; with `most`, only the last of them."""
        return self._reader.recent(since, most, _position(until))

    def lines_back(self, verbs: Collection[str], since: float, most: int) -> Iterator[bytes]:
        """The lines of these verbs, newest first, back to a time; reads at most so many bytes."""
        return self._reader.lines_back(verbs, since, most)

    def rates(self, since: float, until: Cursor | None = None, *, owners: bool = False) -> Rates:
        return self._reader.rates(since, _position(until), owners=owners)

    def totals(self) -> dict[str, int]:
        from dibs.files.totals import totals

        return totals(self._port, self.files())

    def highest_fences(self, idents: Collection[str]) -> dict[str, int]:
        """The highest fence of each of these ids that the journal contains."""
        from dibs.model.names import read_any

        found = dict.fromkeys(idents, 0)
        for event in self.oldest_first(next(iter(found)) if len(found) == 1 else None):
            if event.id in found:
                for task in map(read_any, (event.src, event.dst)):
                    if task is not None and task.id == event.id:
                        found[event.id] = max(found[event.id], task.fence)
        return found

    def torn(self) -> list[str]:
        """The files whose last line is incomplete: its writer died, or is writing now."""
        return self._reader.torn()

    def overlong(self) -> list[tuple[str, int]]:
        """The files so long that only their newest part is read, with their sizes."""
        return self._reader.overlong()

    def omitted(self) -> list[str]:
        found = self.overlong()
        if len(found) < 2:
            return [
                f"{file} has {size >> 20:,} MiB: only its newest part is shown"
                for file, size in found
            ]
        from dibs.model.safe_text import some

        named = some([file for file, _ in found])
        size = sum(size for _, size in found)
        return [f"{named} have {size >> 20:,} MiB: only their newest parts are shown"]

    # Writing

    def _mended(self) -> bytes:
        """A newline if the file ends with a torn line, which would swallow the next one."""
        try:
            size = self._measure()
            last = self._port.read(self._file, 1, size - 1)[0] if size else b"\n"
        except OSError:
            return b""
        return b"" if last == b"\n" else b"\n"

    def _measure(self) -> int:
        """The size of the file, after rotating it if it is too long."""
        try:
            size = self._port.stat(self._file).size
        except FileNotFoundError:
            size = 0
        if size >= LONG and self._set_aside():
            size = 0
        self._room = min(_LOOK, LONG - size) if size < LONG else _LOOK  # else try again later
        return size

    def _set_aside(self) -> bool:
        """Rotate the file, remove the oldest ones, and journal both; False if that failed."""
        older = [file for file in self.files() if file != self._file == current(file)]
        name = aside(self._file, number(older[-1]) + 1 if older else 1)
        try:
            if self._port.stat(self._file).size < LONG:  # another process was faster
                return True
            self._port.rename(self._file, name, keep=True)
        except OSError:
            return False
        gone = [file for file in older[: max(0, len(older) + 1 - KEPT)] if self._dropped(file)]
        what = f"{LONG >> 20} MiB were set aside" + (f"; {', '.join(gone)} removed" if gone else "")
        line = line_of(round(self._clock.about(), 3), events.ROTATED, "", name, "", self.by, what)
        self._port.append(self._file, line)
        return True

    def _dropped(self, file: str) -> bool:
        try:
            self._port.unlink(file)
        except OSError:
            return False
        return True

    def _name(self) -> str:
        dev = self._port.stat("").dev
        return f"{FOLDER}/{self._host.tag or self._hostname()}-{dev:x}{END}"

    def _hostname(self) -> str:
        """Stands in for a missing boot id; appends of two hosts to one file could tear lines."""
        return "".join(c if c.isascii() and c.isalnum() else "-" for c in self._host.name)[:60]


def _position(until: Cursor | None) -> Mapping[str, int] | None:
    return until.position if until is not None else None


def line_of(
    at: float,
    verb: str,
    ident: str,
    src: str,
    dst: str,
    by: str,
    reason: str,
    note: str = "",
    bulk: str = "",
    session: str = "",
) -> bytes:
    """An event as a line; formatted by hand for speed, because every claim writes two of them."""
    said = f', "note": {_quoted(note)}' if note else ""
    said += f', "bulk": {_quoted(bulk)}' if bulk else ""
    said += f', "session": {_quoted(session)}' if session else ""
    return (
        f'{{"at": {at}, "verb": {_quoted(verb)}, "id": {_quoted(ident)}, '
        f'"src": {_quoted(src)}, "dst": {_quoted(dst)}, '
        f'"by": {_quoted(by)}, "reason": {_quoted(reason[:_REASON])}{said}}}\n'
    ).encode("ascii")
