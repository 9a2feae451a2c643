"""What the command line prints: words for people, or one JSON object for everything else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.entries import Entry

JSON_VERSION = 1
_COLOURS = {"stale": "33", "failed": "31", "done": "2", "claimed": "36", "held": "36"}


class Voice:
    """Results go to stdout, words and refusals to stderr; with JSON, refusals too are results."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def result(self, text: str, fields: Mapping[str, object]) -> None:
        """One result: its text, or its object."""
        if self.json:
            print(json.dumps({"v": JSON_VERSION, **fields}, ensure_ascii=True))
        else:
            print(shown(text))

    def words(self, text: str) -> None:
        """Something for a person only."""
        if not self.json:
            sys.stdout.flush()
            complain(text)

    def state(self, state: str, width: int) -> str:
        """A state's word, coloured on a terminal that wants it."""
        text = f"{state:<{width}}"
        return (
            f"\x1b[{_COLOURS[state]}m{text}\x1b[0m" if self.colour and state in _COLOURS else text
        )


def complain(text: str) -> None:
    """One line on stderr; where that takes none, the exit code has to say it alone."""
    try:
        print(shown(f"dibs: {text}"), file=sys.stderr, flush=True)
    except OSError:
        from dibs.cli import mute

        mute(2)


def fields_of(entry: Entry) -> dict[str, object]:
    """An entry as the fields that scripts know; ages in seconds."""
    fields: dict[str, object] = entry._asdict()
    for key in ("age", "held"):
        value = fields[key]
        fields[key] = round(value, 3) if isinstance(value, float) else value
    if entry.ttl is not None and entry.age is not None:
        fields["remaining"] = round(max(0.0, entry.ttl - entry.age), 3)
    return fields


def shown(text: str) -> str:
    """Text from the directory, with nothing in it that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def padded(text: str, cells: int) -> str:
    """A text with blanks up to so many cells of a terminal; a longer one stays whole."""
    if not text.isascii():
        from unicodedata import combining, east_asian_width

        cells -= sum((east_asian_width(c) in "WF") - bool(combining(c)) for c in text)
    return text.ljust(cells)


def age(seconds: float | None) -> str:
    """A span of time, short: `8s`, `3m`, `2h`, `5d`."""
    if seconds is None:
        return ""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _escaped(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )
