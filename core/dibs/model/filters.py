"""The filters of the command line and the dashboard.

A term is `field=value`, `field!=value`, `field^=beginning`, `field~part`, `field!~part`, or
`field` with `<`, `<=`, `>`, `>=` and a number or a time such as `90s`, `5m`, `2h`, `1d`; `!`
before a term negates it; a plain word is a part of the id. `meta.KEY` is the text of one key of
the metadata. All terms must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from dibs.model.errors import BadName
from dibs.model.metadata import value_of
from dibs.model.names import fold_owner

if TYPE_CHECKING:
    from dibs.model.entries import Entry
    from dibs.model.task import Task

TEXTS = ("id", "kind", "state", "claim", "owner", "host", "metadata", "note", "reason")
META = "meta."
"""What a field begins with that is one key of the metadata."""
NUMBERS = ("fence", "attempts", "priority", "age", "held", "ttl", "starts", "progress")
_RECORDED = ("claimed", "held", "stale")
"""The states in which a row has the owner's full text; afterwards it is as the name spells it."""
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_match_term = re.compile(
    r"(!?)([a-z]+|meta\.[A-Za-z][\w.-]{0,39})(!=|!~|\^=|<=|>=|=|~|<|>)(.*)", re.DOTALL | re.ASCII
).fullmatch
_match_time = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|s|m|h|d|)").fullmatch

Test = Callable[[Any], bool]
"""A test of a row; one that is only about fields of the name also takes a task."""


IN_NAME = ("id", "kind", "fence", "attempts", "priority")
"""Fields that a task has by its name alone, as its row has them."""
BY_HOLDER = ("owner", "host", "metadata", "note", "reason", "held", "ttl", "progress")
"""Fields that are empty in the row of a task that no one ever held."""


class FilterTerms:
    """One test for all terms; it can be asked about a part of the terms, to save making rows."""

    def __init__(self, terms: Iterable[str]) -> None:
        tests = [(_field(term), _term(term)) for term in terms if term]
        self._tests = [test for _, test in tests]
        self._in_name = [test for field, test in tests if field in IN_NAME]
        self._by_holder = [t for f, t in tests if f in BY_HOLDER or f.startswith(META)]

    def __call__(self, entry: Entry) -> bool:
        return all(test(entry) for test in self._tests)

    def may_match(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks whose names do not rule out that all terms hold."""
        match self._in_name:
            case []:
                return list(tasks)
            case [test]:
                return [task for task in tasks if test(task)]
            case tests:
                return [task for task in tasks if all(test(task) for test in tests)]

    @property
    def in_name(self) -> bool:
        """Whether all terms are about names, so that `may_match` finds exactly what matches."""
        return len(self._in_name) == len(self._tests)

    @property
    def may_match_unheld(self) -> bool:
        """Whether a task can match that no one ever held, and that has no reason."""
        from dibs.model.entries import Entry

        nothing = Entry("", "", "", "")
        return all(test(nothing) for test in self._by_holder)


def parse(terms: Iterable[str]) -> FilterTerms:
    """One test for all terms; raises `BadName` for an invalid term."""
    return FilterTerms(terms)


def _field(term: str) -> str:
    """The field of a term; a plain word is about the id."""
    m = _match_term(term)
    return m[2] if m is not None else "id"


def is_term(word: str) -> bool:
    """Whether a word is a term with a field, and not an id or a part of one."""
    m = _match_term(word)
    return m is not None and (m[2] in TEXTS + NUMBERS or m[2].startswith(META))


def states(terms: Iterable[str], known: Iterable[str]) -> set[str]:
    """The known states that can match the terms; the others need not be read."""
    from dibs.model.entries import Entry

    test = parse(term for term in terms if (m := _match_term(term)) and m[2] == "state")
    return {state for state in known if test(Entry("", "", state, ""))}


def uses(terms: Iterable[str], field: str) -> bool:
    """Whether one of the terms is about a field."""
    return any((m := _match_term(term)) and m[2] == field for term in terms)


def seconds(text: str) -> float:
    """A number with an optional unit of time, in seconds."""
    m = _match_time(text)
    if m is None:
        raise BadName(f"{_short(text)} is not a time: write it as 90s, 5m, 2h or 1d")
    return float(m[1]) * _UNITS[m[2]]


def _term(term: str) -> Test:
    m = _match_term(term)
    if m is None:
        negated, word = term.startswith("!"), term.lstrip("!")
        if re.search(r"[=<>~]", word):
            raise BadName(
                "not a filter: write field=value, age>5m or a part of the id, "
                f"instead of {_short(term)}"
            )
        if negated:
            return lambda entry: word not in entry.id
        return lambda entry: word in entry.id
    negated, field, operator, value = bool(m[1]), m[2], m[3], m[4]
    if field in TEXTS or field.startswith(META):
        return _negated_if(negated ^ operator.startswith("!"), _text(term, field, operator, value))
    if field in NUMBERS:
        return _negated_if(negated ^ (operator == "!="), _number(term, field, operator, value))
    raise BadName(f"there is no field {_short(field)}: use one of {_known_fields(field)}")


_LONGEST_SHOWN = 24


def _short(text: str) -> str:
    """A word of the user in a message, where the reason must stay in sight."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def _known_fields(like: str) -> str:
    """All fields, those that are spelled like this one in front: a narrow line is cut."""
    from difflib import get_close_matches  # only a wrong term needs it

    known = (*TEXTS, *NUMBERS, "meta.KEY")
    near = get_close_matches(like, known)
    return ", ".join([*near, *(name for name in known if name not in near)])


def _negated_if(negated: bool, test: Test) -> Test:
    return (lambda entry: not test(entry)) if negated else test


def _text(term: str, field: str, operator: str, value: str) -> Test:
    read = _reader(field)
    if operator in ("=", "!="):
        if field == "owner" and value:
            return _owned(value)
        return lambda entry: read(entry) == value
    if operator == "^=":
        return lambda entry: read(entry).startswith(value)
    if operator in ("~", "!~"):
        part = value.casefold()
        return lambda entry: bool(text := read(entry)) and part in text.casefold()
    why = f"{field} is text: compare it with =, !=, ^=, ~ or !~"
    raise BadName(f"{why}, instead of {_short(term)}")


def _owned(owner: str) -> Test:
    """Whether it is or was this owner's; a server keeps the owners of a token as TOKEN/OWNER."""
    below = f"/{owner}"
    try:
        folded = fold_owner(owner)
    except BadName:
        folded = owner

    def test(entry: Entry) -> bool:
        found = entry.owner
        if found == owner or found.endswith(below):
            return True
        return entry.state not in _RECORDED and found == folded

    return test


def _reader(field: str) -> Callable[[Entry], str]:
    """What reads the text of a field."""
    if field.startswith(META):
        key = field.removeprefix(META)
        return lambda entry: value_of(entry.metadata, key)
    return attrgetter(field)


def _number(term: str, field: str, operator: str, value: str) -> Test:
    if operator in ("^=", "~", "!~"):
        why = f"{field} is a number: compare it with =, !=, <, <=, > or >="
        raise BadName(f"{why}, instead of {_short(term)}")
    wanted = seconds(value)

    def test(entry: Entry) -> bool:
        found = getattr(entry, field)
        if found is None:
            return False
        match operator:
            case "<":
                return bool(found < wanted)
            case "<=":
                return bool(found <= wanted)
            case ">":
                return bool(found > wanted)
            case ">=":
                return bool(found >= wanted)
            case _:
                return bool(found == wanted)

    return test
