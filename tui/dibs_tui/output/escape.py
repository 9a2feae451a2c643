"""Escape right before another key: most terminals send the same bytes for alt and that key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual._xterm_parser import XTermParser
from textual.events import Key

_SYMBOLS = frozenset(f"\x1b{key}" for key in "0123456789-=")
"""Alt and these keys are read as other characters, such as `£` for 3, unless it is done here."""


class EscapeParser(XTermParser):
    """Reads them as two keys, unless a command has that key with alt."""

    kept: ClassVar[frozenset[str]] = frozenset()
    """Keys with alt that commands have."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        if sequence in _SYMBOLS:
            sequence, alt = sequence[1:], True
        keys = list(super()._sequence_to_key_events(sequence, alt))
        if alt and not any(key.key in self.kept for key in keys):
            yield Key("escape", "\x1b")
            keys = list(super()._sequence_to_key_events(sequence))
        yield from keys
