"""Numbers that can be read across a room: three lines high, in columns."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.renderables.digits import DIGITS, DIGITS3X3_BOLD
from textual.strip import Strip

HEIGHT = 3
_UNITS = ((1_000_000, "M"), (1000, "k"))


class Big(NamedTuple):
    """One number, and the word below it."""

    text: str
    word: str
    style: Style


def big(text: str) -> tuple[str, ...]:
    """A text of digits and signs in three lines; what has no large shape stands at the bottom."""
    glyphs = [_glyph(char) for char in text]
    return tuple("".join(glyph[y] for glyph in glyphs) for y in range(HEIGHT))


def _glyph(char: str) -> tuple[str, ...]:
    if char not in DIGITS:
        return " ", " ", char
    at = DIGITS.index(char) * HEIGHT
    return tuple(line.ljust(HEIGHT) for line in DIGITS3X3_BOLD[at : at + HEIGHT])


def number(count: int, width: int) -> str:
    """A count that fits into so many cells: in full, or in thousands or millions."""
    if len(big(f"{count:,}")[0]) <= width:
        return f"{count:,}"
    for least, unit in _UNITS:
        if count >= least:
            part = count / least
            return f"{part:.0f}{unit}" if part >= 100 else f"{part:.1f}{unit}"
    return str(count)


def columns(numbers: Iterable[Big], width: int) -> list[Strip]:
    """Numbers side by side, each with its word below it; each takes so many cells."""
    found = []
    for text, word, style in numbers:
        lines = (*big(text), word)
        found.append([Segment(f" {line}"[:width].ljust(width), style) for line in lines])
    rows = zip_longest(*found, fillvalue=Segment(" " * width))
    return [Strip(list(row)) for row in rows]
