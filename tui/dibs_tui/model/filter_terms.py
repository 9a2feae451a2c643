"""The terms of a filter line, their places in it, and what is wrong with them.

Double quotes keep a value with spaces together: `reason~"connection refused"`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from dibs.model.errors import BadName
from dibs.model.filters import NUMBERS, parse, uses

_words = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+').finditer
_OPERATORS = "=!<>~^"


class Term(NamedTuple):
    """One term with its place in the line."""

    start: int
    end: int
    text: str
    """Without the quotes."""
    open: bool
    """Whether a quote is not closed yet."""


def split(line: str) -> list[Term]:
    """The terms of a line."""
    return [
        Term(word.start(), word.end(), word[0].replace('"', ""), bool(word[0].count('"') % 2))
        for word in _words(line)
    ]


def quoted(value: str) -> str:
    """A value as it is written in a line."""
    return f'"{value}"' if re.search(r"\s", value) else value


def about_reason(line: str) -> bool:
    """Whether a term is about the reasons of failures."""
    return uses((term.text for term in split(line)), "reason")


def unfinished(line: str) -> bool:
    """Whether the last term still lacks its value, or the end of a quote."""
    terms = split(line)
    if not terms or terms[-1].end < len(line):
        return False
    last = terms[-1]
    return last.open or last.text.lstrip("!").rstrip(_OPERATORS) in NUMBERS


def invalid(line: str, known: Collection[str] = ()) -> Iterator[Term]:
    """The terms that are wrong, without the last one while it is typed.

    `known` are words that stand for claims, and so are no terms.
    """
    terms = split(line)
    for term in terms[:-1] if unfinished(line) else terms:
        if term.text in known:
            continue
        try:
            parse((term.text,))
        except BadName:
            yield term
