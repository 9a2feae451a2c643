"""Lines of styled text, independent of colours and of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dibs_tui.text.safe import width

Row = tuple[tuple[str, str], ...]
"""Pieces of clean text, each with the name of its style: `text`, `muted`, `strong`, `key`,
`heading`, or a state."""
EMPTY: Row = ()
_MAX_BLANK = 3
"""A word is broken where a break at a space would leave more than 1/3 of the line empty."""


def row(text: str, look: str = "text") -> Row:
    """A line in one style."""
    return ((text, look),)


def plain(line: Row) -> str:
    """The text without styles."""
    return line[0][0] if len(line) == 1 else "".join(text for text, _ in line)


def wrapped(line: Row, cells: int, indent: int = 0) -> list[Row]:
    """A line split into lines that fit, at spaces where possible."""
    text = plain(line)
    if len(text) * 2 <= cells or width(text) <= cells:
        return [line]
    breaks = list(_breaks(text, max(2, cells), min(indent, cells // 2)))
    margin: Row = row(" " * min(indent, cells // 2)) if indent else EMPTY
    first, *rest = _split(line, breaks)
    return [first, *((*margin, *part) for part in rest)]


def all_wrapped(lines: Iterable[Row], cells: int, indent: int = 0) -> list[Row]:
    """Many lines, each wrapped."""
    return [part for line in lines for part in wrapped(line, cells, indent)]


def beside(left: Sequence[Row], right: Sequence[Row], cells: int) -> list[Row]:
    """Two columns side by side, the left one this many cells wide."""
    found = []
    for n in range(max(len(left), len(right))):
        one = left[n] if n < len(left) else EMPTY
        two = right[n] if n < len(right) else EMPTY
        gap = cells - width(plain(one)) if one else cells
        found.append((*one, (" " * max(0, gap), "text"), *two) if two else one)
    return found


def _breaks(text: str, cells: int, indent: int) -> Iterator[int]:
    """The offsets at which the further lines begin."""
    start, room = 0, cells
    while True:
        end = _reach(text, start, room)
        if end >= len(text):
            return
        space = text.rfind(" ", start, end + 1)
        if space - start > room - room // _MAX_BLANK:
            end = space + 1
        yield end
        start, room = end, cells - indent


def _reach(text: str, start: int, room: int) -> int:
    """The offset up to which the text fits into this many cells; at least one character."""
    if width(text[start : start + room]) <= room and text[start : start + room].isascii():
        return start + room
    at = start
    while at < len(text):
        room -= width(text[at])
        if room < 0 and at > start:
            break
        at += 1
    return at


def _split(line: Row, breaks: list[int]) -> list[Row]:
    """The line split at these offsets."""
    parts: list[list[tuple[str, str]]] = [[]]
    at, ends = 0, iter([*breaks, -1])
    end = next(ends)
    for text, look in line:
        start = 0
        while 0 <= end < at + len(text):
            parts[-1].append((text[start : end - at], look))
            parts.append([])
            start, end = end - at, next(ends)
        parts[-1].append((text[start:], look))
        at += len(text)
    return [tuple(piece for piece in part if piece[0]) for part in parts]
