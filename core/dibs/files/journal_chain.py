"""Read the journal files of one boot and mount as one text, forwards or backwards in pieces.

Memory is bounded by the size of the pieces, not of the files. At most `MOST` bytes of one file are
read, so an invalid file of any length stops nothing.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from dibs.files.journal_files import LONG, aside, current, number
from dibs.model.events import Event, parse

if TYPE_CHECKING:
    from dibs.files.port import Port, Stat

    Read = Callable[[str, int, int], tuple[bytes, Stat]]

PIECE = 256 << 10
"""Bytes that are read at once: parsing a longer piece would delay every other thread."""
MOST = 4 * LONG
"""Bytes of a file that are read, its newest part; a file that is rotated in time is shorter."""
NO_LINES = 4 << 20
"""Bytes without a newline after which reading backwards stops: the file is no journal."""
APART = 5.0
"""Seconds by which the times of two lines of one file may differ, in either order."""
_LINE = 65_536
_NO_JOURNAL = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
"""Errors after which nothing can be in the file: it is gone, or not a regular file."""


class Chain:
    """The files of one boot and mount, even while the newest of them is being rotated."""

    def __init__(self, port: Port, files: list[str]) -> None:
        self.files = files
        self.unread = False
        """Whether a file could not be read, so its content is unknown."""
        self.taken = 0
        """Bytes read so far."""
        self._port = port
        self._current = current(files[-1])
        self.cut = files[0] != self._current and number(files[0]) > 1
        """Whether there were older lines that are not read."""
        highest = max((number(file) for file in files if file != self._current), default=0)
        self._next = aside(self._current, highest + 1)
        self._moved: dict[str, str] = {}

    def rotated(self) -> bool:
        """Whether the current file was rotated after these files were listed."""
        try:
            self._port.stat(self._next)
        except OSError:
            return False
        return True

    def newest(self) -> Stat | None:
        """The `lstat` of the newest file."""
        for file in reversed(self.files):
            with suppress(OSError):
                return self._port.stat(file)
        return None

    def read(self, file: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        """Like a read from the disk, under the name that the file has now."""
        path = self._moved.get(file, file)
        try:
            found = self._port.read(path, limit, offset)
            self.taken += len(found[0])
        except FileNotFoundError:
            if path != self._current or not self.rotated():
                raise
        except OSError as error:
            self.unread = self.unread or error.errno not in _NO_JOURNAL
            raise
        else:
            if path != self._current or not self.rotated():
                return found
        self._moved[file] = self._next
        return self._port.read(self._next, limit, offset)

    def events(
        self, ident: str | None, piece: int, upto: Mapping[str, int] | None
    ) -> Iterator[Event]:
        """All events, or those of one id, in the order of their lines."""
        wanted = quoted(ident) if ident is not None else b""
        for file in self.files:
            end = self._end(file, upto)
            for _, lines in forwards(self.read, file, max(0, end - MOST), piece, end):
                if wanted in lines:
                    for event in parsed(lines, (wanted,)):
                        if ident in (None, event.id):
                            yield event

    def back(
        self, wanted: Sequence[bytes], upto: Mapping[str, int] | None
    ) -> Iterator[tuple[float, Event | None]]:
        """The events that may be wanted, newest first, each with its time.

        For a piece without such events only the time is returned, so that a merge can stop.
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

    def blocks(self, upto: Mapping[str, int] | None, most: int = 1 << 62) -> Iterator[bytes]:
        """Blocks of lines, newest first; at most so many bytes of all files."""
        for file in reversed(self.files):
            end = self._end(file, upto)
            start = max(0, end - min(MOST, most))
            most -= end - start
            complete = yield from _backwards(self.read, file, start, end)
            if not complete or start > 0:
                self.cut = True
                if not complete or most <= 0:
                    return

    def _end(self, file: str, upto: Mapping[str, int] | None) -> int:
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
    """Blocks of complete lines, each with the offset of its end; overlong lines are skipped.

    A caller that starts in the middle of a line has to handle that itself.
    """
    at, rest, skipping = start, b"", False
    while at + len(rest) < upto:
        got = _bytes(read, file, int(min(piece, upto - at - len(rest))), at + len(rest))
        if not got:
            return
        lines, newline, rest = (rest + got).rpartition(b"\n")
        if newline:
            at += len(lines) + 1
            if skipping:
                lines, skipping = lines.partition(b"\n")[2], False
            yield at, lines + b"\n"
        if len(rest) > _LINE:  # skip it as it is read, whatever its length
            at, rest, skipping = at + len(rest), b"", True
            yield at, b""


def _backwards(read: Read, file: str, start: int, end: int) -> Generator[bytes, None, bool]:
    """Blocks of complete lines from the end backwards; overlong and torn lines are skipped.

    Returns False if it stopped early because there was no newline for too long.
    """
    rest, skipping = b"", True  # what follows the last newline is torn
    broken = end
    while end > start:
        size = min(PIECE, end - start)
        end -= size
        got = _bytes(read, file, size, end)
        if b"\n" in got:
            broken = end
        elif broken - end >= NO_LINES:
            return False
        if skipping:
            got = got[: got.rfind(b"\n") + 1]
            skipping = not got
        if end:
            head, newline, lines = (got + rest).partition(b"\n")
            rest = head + newline
            if len(rest) > _LINE:
                rest, skipping = b"", True
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
    """The events in these lines; with `wanted`, only of lines that contain one of these texts."""
    found = []
    for line in lines.split(b"\n"):
        if line and len(line) <= _LINE and (not wanted or any(text in line for text in wanted)):
            event = parse(line)
            if event is not None:
                found.append(event)
    return found


def quoted(text: str) -> bytes:
    """The text as it is written in a line."""
    return json.dumps(text).encode()
