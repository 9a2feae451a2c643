"""Makes text from a board safe for a terminal, and measures and cuts it to width."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal

from dibs.model.safe_text import shown

MARKS = 2
"""The most combining marks on one character; more of them would cover other rows."""
_CIRCLE, _MORE = "\u25cc", "\u2026"
_DISPUTED = re.compile(
    "["
    "\u034f\u115f-\u11ff\u17b4\u17b5\u180b-\u180f\u2800\u3164\ud7b0-\ud7ff\uffa0"  # unseen
    "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # selectors of variants
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff"  # halves of flags, colours of skin
    "\u2630-\u2637\u268a-\u268f\u4dc0-\u4dff\U0001d300-\U0001d37f"  # wide since Unicode 16 only
    "]"
)
"""Printable characters that terminals do not show, or show in different widths."""

_CODES = (
    (0x20, 0x7F), (0xA1, 0xAD), (0xAE, 0x300), (0x370, 0x483), (0x2500, 0x25FD), (0x2801, 0x2900)
)  # fmt: skip
is_narrow = frozenset(chr(c) for codes in _CODES for c in range(*codes)).union("…≥").issuperset
"""Whether a text has only common characters that take one cell each."""


def clean(text: str, limit: int = 4096) -> str:
    """One line without anything that terminals interpret, hide or measure differently."""
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    visible = _visible(text[:limit])
    if len(text) <= limit and len(visible) <= limit:
        return visible
    return visible[: limit - 1] + _MORE


def clean_lines(text: str, limit: int = 4096) -> str:
    """The same for many lines, with tabs expanded; a line that was cut says by how much."""
    return "\n".join(_line(line.removesuffix("\r"), limit) for line in text.split("\n"))


def width(text: str) -> int:
    """The cells that a clean text takes."""
    if text.isascii() or is_narrow(text):
        return len(text)
    return _measure()(text)


@lru_cache(4096)
def fit(
    text: str,
    cells: int,
    *,
    align: Literal["left", "right"] = "left",
    cut: Literal["end", "middle"] = "end",
) -> str:
    """A clean text in exactly this many cells, padded or cut with `…`."""
    if cells <= 0:
        return ""
    missing = cells - width(text)
    if missing < 0:
        tail = (cells - 1) // 2 if cut == "middle" else 0
        if text.isascii():
            return text[: cells - 1 - tail] + _MORE + text[len(text) - tail :]
        characters = _characters(text)
        end, over = _beginning(reversed(characters), tail)
        head, missing = _beginning(characters, cells - 1 - tail)
        text = "".join(head) + _MORE + "".join(reversed(end))
        missing += over
    return " " * missing + text if align == "right" else text + " " * missing


@cache
def _measure() -> Callable[[str], int]:
    from rich.cells import cell_len  # imported late, as a board of ASCII names does not need it

    return cell_len


def _line(line: str, limit: int) -> str:
    if line.isascii() and line.isprintable() and len(line) <= limit:
        return line
    visible = _visible(line[:limit].expandtabs())
    if len(line) <= limit:
        return visible
    return f"{visible}{_MORE} {len(line) - limit:,} more characters"


def _visible(text: str) -> str:
    escaped = _DISPUTED.sub(_escaped, shown(text))
    return escaped if escaped.isascii() else "".join(_tamed(escaped))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("ascii", "backslashreplace").decode()


def _tamed(text: str) -> Iterator[str]:
    """The characters with at most `MARKS` combining marks each."""
    from unicodedata import category

    marks = -1
    for char in text:
        if char.isascii() or category(char)[0] != "M":
            marks = 0
            yield char
            continue
        if marks < 0:
            marks = 0
            yield _CIRCLE
        marks += 1
        if marks <= MARKS:
            yield char


def _characters(text: str) -> list[tuple[str, int]]:
    """The characters of a clean text with their combining marks, and the cells of each."""
    found: list[tuple[str, int]] = []
    for char in text:
        size = _size(char)
        if found and not size:
            found[-1] = found[-1][0] + char, found[-1][1]
        else:
            found.append((char, size))
    return found


_size = lru_cache(width)


def _beginning(characters: Iterable[tuple[str, int]], cells: int) -> tuple[list[str], int]:
    """The characters that fit into this many cells, and the cells that are left."""
    found = []
    for char, size in characters:
        if size > cells:
            break
        cells -= size
        found.append(char)
    return found, cells
