"""The journal files of one boot and mount as one text, forwards or backwards in pieces.

Memory is bounded by the pieces that are read at once, not by the length of the files, and no more
than `MOST` bytes of one file are ever read, so that a foul one of any length ends nothing.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from dibs.journal import LONG, Event, aside, current, number, parse

if TYPE_CHECKING:
    from dibs.disk import Port, Stat

    Read = Callable[[str, int, int], tuple[bytes, Stat]]

PIECE = 256 << 10
"""Read at once: a longer piece would hold up every other thread while it is taken apart."""
MOST = 4 * LONG
"""So much of a file is read, the newest part: one that is set aside in time is far shorter."""
FOUL = 4 << 20
"""So many bytes without the end of a line end what is read backwards: they are no journal."""
APART = 5.0
"""Seconds that two lines of one file may lie apart by their times, in either order."""
_LINE = 65_536
_NO_JOURNAL = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
"""Answers that mean that nothing was written there: it is gone, or no regular file."""


class Chain:
    """The files of one boot and mount, also while the last of them is set aside."""

    def __init__(self, port: Port, files: list[str]) -> None:
        self.files = files
        self.unread = False
        """A file could not be read: what it holds is unknown."""
        self.taken = 0
        """Bytes that were read of them."""
        self._port = port
        self._current = current(files[-1])
        self.cut = files[0] != self._current and number(files[0]) > 1
        """Older lines than these were written and are not read."""
        highest = max((number(file) for file in files if file != self._current), default=0)
        self._next = aside(self._current, highest + 1)
        self._moved: dict[str, str] = {}

    def set_aside(self) -> bool:
        """Whether the file that was written to has another name since these were listed."""
        try:
            self._port.stat(self._next)
        except OSError:
            return False
        return True

    def newest(self) -> Stat | None:
        """What is known of the file that was written last."""
        for file in reversed(self.files):
            with suppress(OSError):
                return self._port.stat(file)
        return None

    def read(self, file: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        """As a disk reads, under the name that the file has now."""
        path = self._moved.get(file, file)
        try:
            found = self._port.read(path, limit, offset)
            self.taken += len(found[0])
        except FileNotFoundError:
            if path != self._current or not self.set_aside():
                raise
        except OSError as error:
            self.unread = self.unread or error.errno not in _NO_JOURNAL
            raise
        else:
            if path != self._current or not self.set_aside():
                return found
        self._moved[file] = self._next
        return self._port.read(self._next, limit, offset)

    def events(self, ident: str | None, piece: int, upto: dict[str, int] | None) -> Iterator[Event]:
        """Its events, or those of one id, as they were written."""
        wanted = quoted(ident) if ident is not None else b""
        for file in self.files:
            end = self._end(file, upto)
            for _, lines in forwards(self.read, file, max(0, end - MOST), piece, end):
                if wanted in lines:
                    for event in parsed(lines, (wanted,)):
                        if ident in (None, event.id):
                            yield event

    def back(
        self, wanted: Sequence[bytes], upto: dict[str, int] | None
    ) -> Iterator[tuple[float, Event | None]]:
        """Its events that may be wanted, the newest first, each with its time.

        Also the time alone of what holds none, so that who merges can stop.
        """
        at = inf
        for lines in self.blocks(upto):
            if not wanted or any(text in lines for text in wanted):
                for event in reversed(parsed(lines, wanted)):
                    at = event.at if event.at - at > APART else min(at, event.at)
                    yield at, event
            elif (first := parse(lines[: lines.find(b"\n")])) is not None:
                at = first.at if first.at - at > APART else min(at, first.at)
                yield at, None

    def blocks(self, upto: dict[str, int] | None, most: int = 1 << 62) -> Iterator[bytes]:
        """Its lines in blocks, the newest first; no more than so many bytes of all its files."""
        for file in reversed(self.files):
            end = self._end(file, upto)
            start = max(0, end - min(MOST, most))
            most -= end - start
            whole = yield from _backwards(self.read, file, start, end)
            if not whole or start > 0:
                self.cut = True
                if not whole or most <= 0:
                    return

    def _end(self, file: str, upto: dict[str, int] | None) -> int:
        if upto is not None:
            return upto.get(file, 0)
        try:
            return self.read(file, 0)[1].size
        except OSError:
            return 0


def forwards(
    read: Read,
    file: str,
    start: int,
    piece: int,
    upto: float = inf,
) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines with where each ends; a line that is too long is passed over.

    The line that a start other than 0 lies in the middle of is the caller's own affair.
    """
    at, rest, foul = start, b"", False
    while at + len(rest) < upto:
        got = _bytes(read, file, int(min(piece, upto - at - len(rest))), at + len(rest))
        if not got:
            return
        lines, newline, rest = (rest + got).rpartition(b"\n")
        if newline:
            at += len(lines) + 1
            if foul:
                lines, foul = lines.partition(b"\n")[2], False
            yield at, lines + b"\n"
        if len(rest) > _LINE:  # it is passed over as it comes, however long it grows
            at, rest, foul = at + len(rest), b"", True
            yield at, b""


def _backwards(read: Read, file: str, start: int, end: int) -> Generator[bytes, None, bool]:
    """Blocks of whole lines from the end on; what has no line break, or is too long, is none.

    False where it ended early, because there was no line for long.
    """
    rest, foul = b"", True  # what follows the last line break is torn
    broken = end
    while end > start:
        size = min(PIECE, end - start)
        end -= size
        got = _bytes(read, file, size, end)
        if b"\n" in got:
            broken = end
        elif broken - end >= FOUL:
            return False
        if foul:
            got = got[: got.rfind(b"\n") + 1]
            foul = not got
        if end:
            head, newline, lines = (got + rest).partition(b"\n")
            rest = head + newline
            if len(rest) > _LINE:
                rest, foul = b"", True
        else:
            lines = got + rest
        if lines:
            yield lines
    return True


def _bytes(read: Read, file: str, size: int, offset: int) -> bytes:
    try:
        return read(file, size, offset)[0]
    except OSError:
        return b""


def parsed(lines: bytes, wanted: Sequence[bytes] = ()) -> list[Event]:
    """The events in lines, or in those that hold something that is wanted."""
    found = []
    for line in lines.split(b"\n"):
        if line and len(line) <= _LINE and (not wanted or any(text in line for text in wanted)):
            event = parse(line)
            if event is not None:
                found.append(event)
    return found


def quoted(text: str) -> bytes:
    """The text as it stands in a line."""
    return json.dumps(text).encode()
