"""What the work on a claim says: its notes, its result, and what it prints."""

from __future__ import annotations

import re
from typing import NamedTuple

from dibs.model.errors import BadName, short
from dibs.model.names import check_text

NOTE_CHARS = 200
RESULT_BYTES = 65_536
LOG_MIN, LOG_MAX = 4096, 1 << 30
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_match_size = re.compile(r"([0-9]{1,12})([kmg]?)(?:i?b)?").fullmatch


class Note(NamedTuple):
    """What a holder said last about its work."""

    text: str
    at: int
    """When it said so, in nanoseconds of the board's clock."""


class KeptOutput(NamedTuple):
    """A claim whose output was kept.

    >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
    >>> [kept.attempt for kept in board.outputs("build")]
    [1]
    """

    claim: str
    """The exact name of the claim, without a state word."""
    attempt: int
    """The fence of the claim, which is the number of the attempt."""
    at: int
    """When the output was last written, in nanoseconds of the board's clock."""


class Output(NamedTuple):
    """A part of what the work on one claim printed.

    >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
    >>> board.output(claim.name).parts
    ((0, b'compiling\\n'),)
    """

    parts: tuple[tuple[int, bytes], ...]
    """The bytes that were kept, each part with its offset; what is between two was not kept."""
    end: int
    """The offset after the last byte."""

    def gaps(self, since: int = 0) -> tuple[tuple[int, bytes], ...]:
        """Each part, with the number of missing bytes before it."""
        found = []
        for at, data in self.parts:
            found.append((at - since, data))
            since = at + len(data)
        return tuple(found)


def check_note(text: str) -> str:
    """The note as one line, if it is short enough; else `BadName`."""
    check_text("a note", text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadName("the note contains an unpaired surrogate: type it again") from None
    line = one_line(text)
    if len(line) > NOTE_CHARS:
        raise BadName(f"a note must have at most {NOTE_CHARS} characters, got {len(line)}")
    return line


def one_line(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


def check_result(data: bytes) -> bytes:
    """The result, if it is short enough; else `BadName`, before anything is committed."""
    if not isinstance(data, bytes):
        raise BadName(f"a result must be bytes, got {type(data).__name__}: {short(data)}")
    if len(data) > RESULT_BYTES:
        raise BadName(
            f"a result must have at most {RESULT_BYTES:,} bytes, got {len(data):,}: put it into "
            "a file and give the file's path"
        )
    return data


def check_log_bytes(limit: int) -> int:
    """A limit for kept output, if it is valid; 0 keeps none."""
    if type(limit) is not int or (limit and not LOG_MIN <= limit <= LOG_MAX):
        raise BadName(f"a log must keep {LOG_MIN} to {LOG_MAX} bytes, or 0, got {short(limit)}")
    return limit


def size(text: str) -> int:
    """A number of bytes, with or without a unit: 65536, 64k, 1M."""
    m = _match_size(text.lower())
    if m is None:
        raise BadName(f"{short(text)} is not a number of bytes: write it as 65536, 64k or 1M")
    return check_log_bytes(int(m[1]) * _UNITS[m[2]])
