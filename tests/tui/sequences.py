"""The kinds of control sequences in what a program writes to a terminal."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

_SEQUENCE = re.compile(
    r"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<string>[PX^_])[^\x1b]*\x1b\\"
    r"|\x1b(?P<escape>[ -/]*[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)


class Stream(NamedTuple):
    """A parsed stream."""

    text: str
    """Everything that is not a control sequence."""
    kinds: frozenset[str]
    """Every kind of control sequence, with its constant parts."""
    copied: tuple[str, ...]
    """The texts that were put on the clipboard."""


def parse(raw: bytes) -> Stream:
    """Parse what a program wrote; bytes that are not UTF-8 are an error."""
    text = raw.decode()
    kinds: set[str] = set()
    copied = []
    for match in _SEQUENCE.finditer(text):
        kinds.update(_kinds(match))
        selector, _, data = (match["osc"] or "").partition(";c;")
        if selector == "52":
            copied.append(base64.b64decode(data, validate=True).decode())
    return Stream(_SEQUENCE.sub("", text), frozenset(kinds), tuple(copied))


def _kinds(match: re.Match[str]) -> Iterator[str]:
    if match["csi"] is not None:
        final, parameters = match["csi"][-1], match["csi"][:-1]
        if final == "m":
            yield from (f"CSI {part} m" for part in _attributes(parameters))
        else:
            shape = re.sub(r"\d+", "n", parameters) if final in "HABCD" else parameters
            yield f"CSI {shape} {final}"
    elif match["osc"] is not None:
        yield f"OSC {match['osc'].partition(';')[0]}"
    else:
        yield match.lastgroup + " " + repr(match[match.lastgroup]) if match.lastgroup else ""


def _attributes(parameters: str) -> Iterator[str]:
    """Each attribute separately; of a colour only its kind."""
    colours = re.compile(r"([345]8);(?:2;\d+;\d+;\d+|5;\d+)")
    yield from (f"{ground};colour" for ground in set(colours.findall(parameters)))
    yield from filter(None, colours.sub("", parameters).split(";"))
