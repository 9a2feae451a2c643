"""Syntax highlighting of clean JSON and Markdown lines, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dibs_tui.model.rows import Row, row

_json_parts = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*+"?)(?P<colon>\s*+:)?'
    r"|(?P<strong>-?\d[\w.+-]*+|\b(?:true|false|null)\b)"
    r"|(?P<muted>[][{},:]++)"
).finditer
_markdown_parts = re.compile(
    r"(?P<key>`[^`]++`|\[[^][]*+\]\([^()]*+\))|(?P<strong>\*\*[^*]++\*\*|__[^_]++__)"
).finditer
_begins = re.compile(
    r"(?P<muted>\s*+>+)|(?P<key>\s*+(?:[-*+]|\d{1,3}[.)])(?: \[[ xX]\])?)(?= )"
).match


def json_rows(lines: Iterable[str]) -> Iterator[Row]:
    """JSON lines with keys, numbers and words emphasised and punctuation muted."""
    for line in lines:
        pieces: list[tuple[str, str]] = []
        at = 0
        for match in _json_parts(line):
            pieces.append((line[at : match.start()], "text"))
            if match["colon"]:
                pieces += [(match["text"], "key"), (match["colon"], "muted")]
            else:
                pieces.append((match[0], match.lastgroup or "text"))
            at = match.end()
        yield _kept(pieces, line[at:])


def markdown_rows(lines: Iterable[str]) -> Iterator[Row]:
    """Markdown source lines with headings, code, items, links and bold text emphasised."""
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            yield row(line, "muted")
        elif fenced:
            yield row(line, "key")
        elif line.startswith("#") and line.lstrip("#").startswith(" "):
            yield row(line, "heading")
        else:
            yield _markdown(line)


def _markdown(line: str) -> Row:
    begin = _begins(line)
    at = begin.end() if begin else 0
    pieces = [(line[:at], begin.lastgroup or "text")] if begin else []
    for match in _markdown_parts(line, at):
        pieces.append((line[at : match.start()], "text"))
        pieces.append((match[0], match.lastgroup or "text"))
        at = match.end()
    return _kept(pieces, line[at:])


def _kept(pieces: list[tuple[str, str]], rest: str) -> Row:
    return tuple(piece for piece in (*pieces, (rest, "text")) if piece[0])
