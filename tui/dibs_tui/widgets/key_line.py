"""The keys of a dialog or of a full view, in one line; each can be clicked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dibs_tui.model.rows import Row
from dibs_tui.text.safe import width


class Key(NamedTuple):
    """One key as it is offered."""

    key: str
    """As it is written: `Esc`."""
    words: str
    action: str = ""
    """What a click runs; empty for nothing."""
    right: bool = False
    """Whether it stands at the right end."""


def key_parts(keys: Iterable[Key], cells: int) -> Iterator[tuple[str, Row]]:
    """The keys that fit into this many cells, each with its action, for a `Ribbon`."""
    keys = list(keys)
    last = [key for key in keys if key.right]
    room = cells - 1 - sum(_size(key) for key in last)
    yield "", ((" ", "band muted"),)
    for key in keys:
        if key.right or _size(key) > room:
            continue
        room -= _size(key)
        yield key.action, _part(key)
    yield "", ((" " * max(0, room), "band muted"),)
    for key in last:
        yield key.action, _part(key)


def _size(key: Key) -> int:
    return width(key.key) + width(key.words) + 3


def _part(key: Key) -> Row:
    return (key.key, "band bold accent"), (f" {key.words}  ", "band muted")
