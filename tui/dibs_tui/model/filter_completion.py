"""What the term that is being typed can become: fields, and values that the board has."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from dibs.model.filters import META, NUMBERS, TEXTS
from dibs.model.metadata import value_of, values_of
from dibs.model.task import STATES
from dibs_tui.model.filter_terms import quoted, split
from dibs_tui.model.known_board import KnownBoard
from dibs_tui.text.safe import clean

LOOKED_AT = 2000
"""The most claims or reasons that are looked at for the values of a field: a key waits for it,
also on a board with 100,000 claims."""
_MOST = 50
"""The most values that are offered for a field."""
_LONG = 60
"""The most characters of a value that is offered; of a longer one its beginning is."""
_KEPT = 2.0
"""Seconds for which the values of a field are kept."""
_match_parts = re.compile(
    r"(!?)([a-z]+|meta\.[\w.-]+)(!=|!~|\^=|<=|>=|=|~|<|>)(.*)", re.ASCII | re.DOTALL
).fullmatch
_FIXED = {
    "state": STATES,
    "kind": ("task", "lock", "worker"),
    "priority": tuple(map(str, range(10))),
}
_PARTS = ("reason", "note", "metadata")
"""Fields of prose: a part of one is what people look for."""


class FilterCompletion:
    """Completes the last term of a filter line."""

    def __init__(self, model: KnownBoard) -> None:
        self._model = model
        self._values: dict[str, tuple[float, tuple[str, ...]]] = {}

    def lines(self, line: str) -> list[str]:
        """The line with its last term completed in each possible way, the most usual first."""
        terms = split(line)
        if not terms or terms[-1].end != len(line):
            return []
        words = self._words(terms[-1].text)
        return [line[: terms[-1].start] + word for word in words]

    def first(self, line: str) -> str | None:
        """The most usual completion that continues the line as it was typed."""
        return next((found for found in self.lines(line) if found.startswith(line)), None)

    def _words(self, term: str) -> Iterator[str]:
        parts = _match_parts(term)
        if parts is None:
            typed = term.removeprefix("!")
            negation = "!" if typed != term else ""
            for field in self._fields(typed):
                if field.startswith(typed):
                    yield negation + field
            return
        negation, field, operator, typed = parts.groups()
        for value in self._found(field):
            whole, part = value.casefold(), typed.casefold()
            fits = part in whole if "~" in operator else whole.startswith(part)
            if fits and value != typed:
                yield f"{negation}{field}{operator}{quoted(value)}"

    def _fields(self, typed: str) -> Iterator[str]:
        """The fields with their most usual operator; of the metadata's keys if one is typed."""
        for field in TEXTS:
            yield f"{field}~" if field in _PARTS else f"{field}="
        for field in NUMBERS:
            yield f"{field}>"
        if len(typed) > 1 and META.startswith(typed[: len(META)]):
            for key in self._found(META):
                yield f"{META}{key}="

    def _found(self, field: str) -> tuple[str, ...]:
        """The values of a field on the board; for `meta.` the keys of the metadata."""
        at, values = self._values.get(field, (0.0, ()))
        if not at or time.monotonic() - at > _KEPT:
            values = _FIXED.get(field) or tuple(_usual(self._raw(field)))
            self._values[field] = time.monotonic(), values
        return values

    def _raw(self, field: str) -> Iterable[str]:
        """The values of a field, one for each claim or failure that is looked at."""
        if field == "reason":
            return islice(self._model.reasons.values(), LOOKED_AT)
        holders = islice(self._model.holders.values(), LOOKED_AT)
        if field == META:
            return (key for holder in holders for key in values_of(holder.metadata))
        if field.startswith(META):
            key = field.removeprefix(META)
            return (value_of(holder.metadata, key) for holder in holders)
        if field == "owner":
            return (holder.owner for holder in holders)
        if field == "host":
            return (holder.host for holder in holders)
        return ()


def _usual(values: Iterable[str]) -> Iterator[str]:
    """Each value that can be typed once, the most frequent first."""
    counted = Counter(filter(None, values))
    known = sorted(counted, key=lambda value: (-counted[value], value))
    for value in islice((v for v in known if clean(v) == v and '"' not in v), _MOST):
        yield value[:_LONG]
