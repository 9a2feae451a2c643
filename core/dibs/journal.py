"""What happened, append-only: one file per boot and mount, each line one event.

The journal is commentary. Nothing is decided by it, and a step whose line could not be written
is done all the same. A file that has grown long is set aside under a number, and the oldest of
those go; the first line of the file that follows says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dibs.clock import Clock
    from dibs.disk import Port
    from dibs.host import Host

FOLDER = ".dibs/journal"
INTENT, NOT_DONE, REFUSED, ROTATED = "intent", "not-done", "refused", "rotated"
NOTHING_MOVED = (INTENT, NOT_DONE, REFUSED, ROTATED)
"""The verbs whose lines tell of no change of a name."""
LONG = 32 << 20
"""Bytes after which a file is set aside."""
KEPT = 3
"""So many files that were set aside stay, for each boot and mount."""
_END = ".jsonl"
_LOOK = 64 << 10
"""Bytes that one process writes between two looks at how long the file has grown."""
_PIECE = 256 << 10
"""Read at once: a longer piece would hold up every other thread while it is taken apart."""
_RECENT = 4 << 20
_BEHIND = 120
"""Seconds by which a file's time may lag behind what was written into it, as clients remember."""
_APART = 5.0
_READS = 3
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
        self._room = _LOOK
        self.by = host.signature
        self.unwritten = 0
        """Events of this process that could not be written."""

    def write(
        self, verb: str, ident: str, src: str, dst: str, by: str = "", reason: str = ""
    ) -> None:
        """Note what was just done; never fails."""
        line = self._spelled(verb, ident, src, dst, by, reason)
        try:
            if not self._whole:
                self._file = self._file or self._name()
                line = self._mended() + line
            elif self._room <= 0:
                self._measure()
            self._port.append(self._file, line)
            self._whole = True
            self._room -= len(line)
        except OSError:
            self._whole = False
            self.unwritten += 1

    def files(self) -> list[str]:
        """Every journal file there is; of one boot and mount the oldest first."""
        try:
            names = [f"{FOLDER}/{name}" for name in self._port.names(FOLDER)]
        except OSError:
            return []
        return sorted(names, key=_place)

    def read(self, ident: str | None = None) -> list[Event]:
        """All events, or those of one id, in the order of their times."""
        told: list[list[Event]] = []
        files: list[str] = []
        for _ in range(_READS):
            if files == (files := self.files()):
                break  # else one was set aside meanwhile, perhaps before it was read
            told = [self._read_whole(file, ident) for file in files]
        return _in_order(told)

    def _read_whole(self, file: str, ident: str | None) -> list[Event]:
        wanted = json.dumps(ident).encode() if ident is not None else b""
        lines = (line for _, line in self._lines(file, wanted=wanted) if wanted in line)
        return [e for e in map(parse, lines) if e is not None and ident in (None, e.id)]

    def recent(self, since: float) -> list[Event]:
        """The events since a time, from the ends of the files: at most a few megabytes each."""
        told = []
        for file in self.files():
            try:
                stat = self._port.stat(file)
            except OSError:
                continue
            if stat.mtime / 1e9 < since - _BEHIND:
                continue
            found = (parse(line) for _, line in self._lines(file, max(0, stat.size - _RECENT)))
            told.append([e for e in found if e is not None and e.at >= since])
        return _in_order(told)

    def highest_fence(self, ident: str) -> int:
        """The highest fence that the journal ever saw granted for an id."""
        from dibs.names import read_any

        names = (name for event in self.read(ident) for name in (event.src, event.dst))
        return max((t.fence for t in map(read_any, names) if t and t.id == ident), default=0)

    def follow(self, seen: dict[str, int]) -> list[Event]:
        """The events written since; `seen` holds how far each file was read and is moved on."""
        files = self._set_aside_since(seen)
        told = self._read_on(files, seen)
        seen.update((file, end) for file, (end, _) in told.items())
        return _in_order(found for _, found in told.values())

    def _read_on(
        self, files: list[str], seen: dict[str, int]
    ) -> dict[str, tuple[int, list[Event]]]:
        """How far each file was read now, and its events."""
        told = {}
        for file in files:
            end, found = seen.get(file, 0), []
            for reached, line in self._lines(file, end):
                end, event = reached, parse(line)
                found += [event] if event is not None else []
            told[file] = end, found
        if any(end != seen.get(file, 0) for file, (end, _) in told.items()):
            # Set aside meanwhile: what was read may be the middle of the file that came after it.
            for file in set(self.files()).difference(files):
                told.pop(_current(file), None)
        return told

    def _set_aside_since(self, seen: dict[str, int]) -> list[str]:
        """The files; one that was set aside goes on from where it was read under its old name."""
        files = self.files()
        for file in files:
            current = _current(file)
            if file not in seen and file != current and current in seen:
                seen[file] = seen.pop(current)
        return files

    def ends(self) -> dict[str, int]:
        """How long every file is now: where `follow` begins who wants only what comes."""
        found = {}
        for file in self.files():
            with suppress(OSError):
                found[file] = self._port.stat(file).size
        return found

    def torn(self) -> list[str]:
        """The files whose last line is not whole: somebody died, or is writing now."""
        torn = []
        for file in self.files():
            with suppress(OSError):
                size = self._port.stat(file).size
                if size and self._port.read(file, 1, size - 1)[0] not in (b"", b"\n"):
                    torn.append(file)
        return torn

    # Writing

    def _spelled(
        self, verb: str, ident: str, src: str, dst: str, by: str = "", reason: str = ""
    ) -> bytes:
        at = round(self._clock.about(), 3)
        return _line(Event(at, verb, ident, src, dst, by or self.by, reason[:_REASON]))

    def _mended(self) -> bytes:
        """What ends the line that somebody left torn, so that the next one is not lost with it."""
        try:
            size = self._measure()
            last = self._port.read(self._file, 1, size - 1)[0] if size else b"\n"
        except OSError:
            return b""
        return b"" if last == b"\n" else b"\n"

    def _measure(self) -> int:
        """How long the file is; one that is too long is set aside first, and the next begun."""
        try:
            size = self._port.stat(self._file).size
        except FileNotFoundError:
            size = 0
        if size >= LONG and self._set_aside():
            size = 0
        self._room = min(_LOOK, LONG - size) if size < LONG else _LOOK  # else tried again then
        return size

    def _set_aside(self) -> bool:
        """Give the file a number, let the oldest go, and say both; whether this call did it."""
        older = [file for file in self.files() if file != self._file == _current(file)]
        number = _place(older[-1])[1] + 1 if older else 1
        aside = f"{self._file.removesuffix(_END)}.{number}{_END}"
        try:
            if self._port.stat(self._file).size < LONG:  # somebody else was faster
                return True
            self._port.rename(self._file, aside, keep=True)
        except OSError:
            return False
        gone = [file for file in older[: max(0, len(older) + 1 - KEPT)] if self._dropped(file)]
        what = f"{LONG >> 20} MiB were set aside" + (f"; {', '.join(gone)} removed" if gone else "")
        self._port.append(self._file, self._spelled(ROTATED, "", aside, "", "", what))
        return True

    def _dropped(self, file: str) -> bool:
        try:
            self._port.unlink(file)
        except OSError:
            return False
        return True

    def _name(self) -> str:
        dev = self._port.stat("").dev
        return f"{FOLDER}/{self._host.tag or self._hostname()}-{dev:x}{_END}"

    def _hostname(self) -> str:
        """What stands for a boot id that is not shown: appends of two hosts could tear lines."""
        return "".join(c if c.isascii() and c.isalnum() else "-" for c in self._host.name)[:60]

    # Reading

    def _lines(
        self, file: str, start: int = 0, *, wanted: bytes = b""
    ) -> Iterator[tuple[int, bytes]]:
        """Each whole line from there on with where it ends, piece by piece; empty if too long.

        Pieces in which nothing is `wanted` are passed over.
        """
        at, rest, foul = start, b"", False
        while piece := self._bytes(file, at + len(rest)):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if newline and wanted not in whole:
                at, newline, foul = at + len(whole) + 1, b"", False
            for line in whole.split(b"\n") if newline else ():
                at += len(line) + 1
                yield at, b"" if foul or len(line) > _LINE else line
                foul = False
            if len(rest) > _LINE:  # it is passed over as it comes, however long it grows
                at, rest, foul = at + len(rest), b"", True
                yield at, b""

    def _bytes(self, file: str, offset: int) -> bytes:
        try:
            return self._port.read(file, _PIECE, offset)[0]
        except OSError:
            return b""


def _place(file: str) -> tuple[str, int]:
    """Where a file stands in the order of its kind: the one that is written to is the last."""
    current = _current(file)
    return current, 1 << 62 if file == current else int(file.split(".")[-2])


def _current(file: str) -> str:
    """The file that a file which was set aside was before."""
    name, _, number = file.removesuffix(_END).rpartition(".")
    aside = file.endswith(_END) and _is_number(number) and not name.endswith("/")
    return f"{name}{_END}" if aside else file


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16 and text[0] != "0"


def _in_order(told: Iterable[list[Event]]) -> list[Event]:
    """The events of several files by their times, those of one in the order of its lines.

    Each process reckons the time by itself: where the clock is coarse, seconds apart.
    """
    placed: list[tuple[float, Event]] = []
    for events in told:
        at = 0.0
        for event in events:
            at = event.at if at - event.at > _APART else max(at, event.at)
            placed.append((at, event))
    return [event for _, event in sorted(placed, key=lambda entry: entry[0])]


def unanswered(events: Iterable[Event]) -> list[Event]:
    """The events without those intents whose outcome is told after them."""
    listed = list(events)
    answered: set[int] = set()
    intents: dict[tuple[str, str], int] = {}
    for number, event in enumerate(listed):
        key = event.src, event.by
        if event.verb == INTENT:
            intents[key] = number
        elif event.verb != REFUSED and key in intents:
            answered.add(intents.pop(key))
    return [event for number, event in enumerate(listed) if number not in answered]


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
