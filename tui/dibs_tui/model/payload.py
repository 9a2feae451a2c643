"""A payload ready for the screen: its kind, its highlighted lines, or a hex dump."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dibs_tui.model.highlight import json_rows, markdown_rows
from dibs_tui.model.rows import Row, row
from dibs_tui.text.safe import clean_lines

PART = 64 << 10
"""The most bytes that are shown of a payload."""
_MAX_INDENTED = 4 * PART
_PRINTABLE = bytes(byte if 32 <= byte < 127 else ord(".") for byte in range(256))


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """The beginning of a payload, with its kind and its lines."""

    kind: str
    """`empty`, `text`, `JSON`, `Markdown` or `binary`."""
    data: bytes
    size: int
    """The size of the complete payload in bytes."""
    summary: str = "empty"
    """The size and the kind: `1.2 kB, JSON`."""
    cut: str = ""
    """How much is not shown; empty if everything is."""
    lines: tuple[Row, ...] = ()
    """Empty for a binary payload: `dump` makes as many lines as there is room for."""


def read(data: bytes, size: int) -> Payload:
    """A payload from its first bytes and its size, with its kind detected."""
    if not data:
        return Payload("empty", data, size)
    cut = size > len(data)
    kind, lines = _detected(data, cut=cut)
    summary = f"{size_of(size)}, {kind}"
    part = f"only the first {size_of(len(data))} of {size_of(size)} are shown" if cut else ""
    return Payload(kind, data, size, summary, part, tuple(lines))


def dump(data: bytes, cells: int) -> Iterator[Row]:
    """A hex dump: offset, hex and printable text, with as many bytes per line as fit."""
    many = next((n for n in (16, 8, 4) if 9 + 4 * n <= cells), 2)
    for at in range(0, len(data), many):
        part = data[at : at + many]
        seen = part.translate(_PRINTABLE).decode("ascii")
        yield (f"{at:06x} ", "muted"), (f" {part.hex(' '):<{3 * many}} ", "text"), (seen, "key")


def size_of(size: int) -> str:
    """A size for people: `12 bytes`, `1.2 kB`."""
    from humanize import naturalsize

    return naturalsize(size) if size >= 1000 else f"{size} byte{'' if size == 1 else 's'}"


def _detected(data: bytes, *, cut: bool) -> tuple[str, Iterator[Row]]:
    text = _text_of(data, cut=cut)
    if text is None:
        return "binary", iter(())
    found = _json_in(text, cut=cut)
    if found:
        return "JSON", json_rows(_lines(found))
    if _is_markdown(text):
        return "Markdown", markdown_rows(_lines(text))
    return "text", map(row, _lines(text))


def _text_of(data: bytes, *, cut: bool) -> str | None:
    """The bytes as text, without a character that was cut in two; None if they are no text."""
    if b"\0" in data:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=not cut)
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    return clean_lines(text.removesuffix("\n"), PART).split("\n")


_begins_json = re.compile(r'\s*+(?:\{\s*+["}]|\[\s*+[\[\]{"\d-])').match
_heading = re.compile(r"^#{1,6} \S|^```", re.MULTILINE).search
_item = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}\.) \S", re.MULTILINE).findall


def _is_markdown(text: str) -> bool:
    """Whether the text has a heading, a fence or a list, and is no script."""
    return not text.startswith("#!") and bool(_heading(text) or len(_item(text)) > 1)


def _json_in(text: str, *, cut: bool) -> str:
    """The text if it is JSON, with a single line indented; else empty."""
    if not _begins_json(text):
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text if cut or _is_log(text) else ""
    return text if "\n" in text.strip() else _indented_text(text.strip(), value)


def _is_log(text: str) -> bool:
    """Whether each line is a JSON value, judged by the first two."""
    lines = text.split("\n", 2)[:2]
    try:
        return len(lines) == 2 and all(json.loads(line or "{}") is not None for line in lines)
    except (ValueError, RecursionError):
        return False


def _indented_text(text: str, value: object) -> str:
    """The value indented, or the text unchanged if indenting would change more than spaces."""
    try:
        for plain in (False, True):
            for marks in ((",", ":"), (", ", ": ")):
                if json.dumps(value, ensure_ascii=plain, separators=marks) == text:
                    return _indented(value, plain) or text
    except (ValueError, RecursionError):
        pass
    return text


def _indented(value: object, plain: bool) -> str:
    """The value indented; empty if deep nesting would make that too long."""
    parts, length = [], 0
    for part in json.JSONEncoder(indent=2, ensure_ascii=plain).iterencode(value):
        parts.append(part)
        length += len(part)
        if length > _MAX_INDENTED:
            return ""
    return "".join(parts)
