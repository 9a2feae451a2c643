"""Edit a JSON text in place: what is not edited keeps every byte.

An element is inserted as the first of its container, with its own white space before it. So it can
be cut out again exactly, whatever was written around it since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_SPACE = " \t\r\n"
_decode = json.JSONDecoder().raw_decode


class JsonMember(NamedTuple):
    """One element of an array, or one member of an object."""

    key: str
    """Empty in an array."""
    value: Any
    slot: int
    """Where it begins, with the white space before it."""
    start: int
    """Where its value begins."""
    end: int
    """Where its value ends."""


def members(text: str, at: int) -> list[JsonMember]:
    """The members of the object or array that begins at `at`; the text must be valid JSON."""
    return list(_members(text, at))


def _members(text: str, at: int) -> Iterator[JsonMember]:
    close, slot = {"{": "}", "[": "]"}[text[at]], at + 1
    while True:
        start = _skip(text, slot)
        if text[start] == close:
            return
        key = ""
        if close == "}":
            key, start = _decode(text, start)
            start = _skip(text, _skip(text, start) + 1)
        value, end = _decode(text, start)
        yield JsonMember(key, value, slot, start, end)
        after = _skip(text, end)
        if text[after] == close:
            return
        slot = after + 1


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def begin(text: str) -> int:
    """Where the value of a text begins."""
    return _skip(text, 0)


def insert(text: str, at: int, piece: str) -> str:
    """The text with a piece as the first member of the container that begins at `at`."""
    comma = "," if members(text, at) else ""
    return f"{text[: at + 1]}{piece}{comma}{text[at + 1 :]}"


def cut(text: str, at: int, chosen: Callable[[JsonMember], bool]) -> str:
    """The text without the chosen members of the container that begins at `at`."""
    while True:
        found = members(text, at)
        n = next((n for n, member in enumerate(found) if chosen(member)), None)
        if n is None:
            return text
        member = found[n]
        if n + 1 < len(found):
            text = text[: member.slot] + text[found[n + 1].slot :]
        else:
            text = text[: member.slot - bool(n)] + text[member.end :]
