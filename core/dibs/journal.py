"""What happened, append-only: one file per boot and mount, each line one event.

The journal is commentary. Nothing is decided by it, and a step whose line could not be written
is done all the same. A file that has grown long is set aside under a number, and the oldest of
those go; the first line of the file that follows says so.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import islice
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dibs.clock import Clock
    from dibs.disk import Port
    from dibs.host import Host
    from dibs.journal_reader import JournalReader
    from dibs.rates import Rates

FOLDER = ".dibs/journal"
INTENT, NOT_DONE, REFUSED, ROTATED = "intent", "not-done", "refused", "rotated"
NOTHING_MOVED = (INTENT, NOT_DONE, REFUSED, ROTATED)
"""The verbs whose lines tell of no change of a name."""
LEDGER = "ledger"
"""The verb of the line after an act on many: how many of each outcome, and what was not done."""
BY_OPERATOR = "by an operator: "
"""How the reason of a reap begins that an operator asked for; a janitor's never does."""
LONG = 32 << 20
"""Bytes after which a file is set aside."""
KEPT = 3
"""So many files that were set aside stay, for each boot and mount."""
_END = ".jsonl"
_LOOK = 64 << 10
"""Bytes that one process writes between two looks at how long the file has grown."""
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

    # Reading, which no worker's verb does

    @cached_property
    def _reader(self) -> JournalReader:
        from dibs.journal_reader import JournalReader

        return JournalReader(self._port, self._clock)

    def files(self) -> list[str]:
        """Every journal file there is; of one boot and mount the oldest first."""
        return self._reader.files()

    def read(self, ident: str | None = None) -> list[Event]:
        """All events, or those of one id, in the order of their times."""
        return self._reader.read(ident)

    def oldest_first(
        self, ident: str | None = None, upto: dict[str, int] | None = None
    ) -> Iterator[Event]:
        """The same as a stream; with what `ends` answered, only what was written until then."""
        return self._reader.oldest_first(ident, upto)

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        upto: dict[str, int] | None = None,
    ) -> Iterator[Event]:
        """The events backwards as a stream, all or those of one id or of these verbs."""
        return self._reader.newest_first(ident, verbs, upto)

    def recent(
        self, since: float, most: int | None = None, upto: dict[str, int] | None = None
    ) -> list[Event]:
        """The events since a time, or the last of them."""
        return self._reader.recent(since, most, upto)

    def rates(self, since: float, upto: dict[str, int] | None = None) -> Rates:
        """How much happened since a time, by kind and second."""
        return self._reader.rates(since, upto)

    def highest_fences(self, idents: Collection[str]) -> dict[str, int]:
        """The highest fence that the journal ever saw granted for each of these ids."""
        from dibs.names import read_any

        found = dict.fromkeys(idents, 0)
        for event in self.oldest_first(next(iter(found)) if len(found) == 1 else None):
            if event.id in found:
                for task in map(read_any, (event.src, event.dst)):
                    if task is not None and task.id == event.id:
                        found[event.id] = max(found[event.id], task.fence)
        return found

    def follow(self, seen: dict[str, int]) -> list[Event]:
        """The events written since; `seen` holds how far each file was read and is moved on."""
        return self._reader.follow(seen)

    def ends(self) -> dict[str, int]:
        """How long every file is now: where `follow` begins who wants only what comes."""
        return self._reader.ends()

    def torn(self) -> list[str]:
        """The files whose last line is not whole: somebody died, or is writing now."""
        return self._reader.torn()

    def overlong(self) -> list[tuple[str, int]]:
        """The files of which only the newest part is read, with their sizes."""
        return self._reader.overlong()

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
        older = [file for file in self.files() if file != self._file == current(file)]
        name = aside(self._file, number(older[-1]) + 1 if older else 1)
        try:
            if self._port.stat(self._file).size < LONG:  # somebody else was faster
                return True
            self._port.rename(self._file, name, keep=True)
        except OSError:
            return False
        gone = [file for file in older[: max(0, len(older) + 1 - KEPT)] if self._dropped(file)]
        what = f"{LONG >> 20} MiB were set aside" + (f"; {', '.join(gone)} removed" if gone else "")
        self._port.append(self._file, self._spelled(ROTATED, "", name, "", "", what))
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


def place(file: str) -> tuple[str, int]:
    """Where a file stands in the order of its kind: the one that is written to is the last."""
    return current(file), number(file)


def number(file: str) -> int:
    """The number under which a file was set aside; a huge one for the file that is written to."""
    return 1 << 62 if file == current(file) else int(file.split(".")[-2])


def current(file: str) -> str:
    """The file that a file which was set aside was before."""
    name, _, digits = file.removesuffix(_END).rpartition(".")
    numbered = file.endswith(_END) and _is_number(digits) and not name.endswith("/")
    return f"{name}{_END}" if numbered else file


def aside(file: str, number: int) -> str:
    """The name of a file that is set aside under a number."""
    return f"{file.removesuffix(_END)}.{number}{_END}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16 and text[0] != "0"


def unanswered(events: Iterable[Event]) -> list[Event]:
    """The events without those intents whose outcome is told after them."""
    return list(outcomes(events, None))


HELD_BACK = 20_000
"""So many events may follow an intent, in a stream, before it is told as one without an outcome."""


def outcomes(events: Iterable[Event], most: int | None = HELD_BACK) -> Iterator[Event]:
    """The same as a stream, which waits for the outcome of an intent for so many events."""
    held: deque[Event | None] = deque()
    intents: dict[tuple[str, str], int] = {}
    first = 0
    for event in events:
        key = event.src, event.by
        if event.verb == INTENT:
            intents.pop(key, None)
            intents[key] = first + len(held)
        elif event.verb != REFUSED and key in intents:
            held[intents.pop(key) - first] = None
        held.append(event)
        open_from = next(iter(intents.values()), first + len(held))
        while held and (first < open_from or (most is not None and len(held) > most)):
            told = held.popleft()
            if first == open_from and told is not None:
                del intents[told.src, told.by]
                open_from = next(iter(intents.values()), first + len(held) + 1)
            first += 1
            if told is not None:
                yield told
    yield from (event for event in held if event is not None)


def last(backwards: Iterator[Event], most: int) -> list[Event]:
    """The last of those events that come backwards, in their order, without answered intents."""
    found: list[Event] = []
    shown: list[Event] = []
    while more := list(islice(backwards, most - len(shown))):
        found += more
        shown = unanswered(reversed(found))
    return shown


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
