"""Reads Escape followed by another key: most terminals send the same bytes for alt and that key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual._xterm_parser import XTermParser
from textual.events import Key

if TYPE_CHECKING:
    from textual.message import Message

_SYMBOLS = frozenset(f"\x1b{key}" for key in "0123456789-=")
"""Alt with these keys; Textual would read other characters, such as `£` for 3."""


class EscapeParser(XTermParser):
    """Reads such bytes as two keys, unless a command is bound to that key with alt."""

    kept: ClassVar[frozenset[str]] = frozenset()
    """The keys with alt that are bound to commands."""
    arrived: ClassVar[Callable[[list[float]], object] | None] = None
    """Is given the times of the keys of one read before any of them is handled."""

    def feed(self, data: str) -> Iterable[Message]:
        """Parse what one read brought."""
        found = list(super().feed(data))
        keys = [message.time for message in found if isinstance(message, Key)]
        arrived = type(self).arrived
        if keys and arrived is not None:
            arrived(keys)
        return found

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        if sequence in _SYMBOLS:
            sequence, alt = sequence[1:], True
        keys = list(super()._sequence_to_key_events(sequence, alt))
        if alt and not any(key.key in self.kept for key in keys):
            yield Key("escape", "\x1b")
            keys = list(super()._sequence_to_key_events(sequence))
        yield from keys
