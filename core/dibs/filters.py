"""The filter terms that the command line and the dashboard share.

A term is `field=value`, `field!=value`, `field^=beginning`, `field~part`, `field!~part`, or
`field` with `<`, `<=`, `>`, `>=` and a number or a time such as `90s`, `5m`, `2h`, `1d`; `!`
before a term turns it round; a bare word is a part of the id. All terms must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dibs.errors import BadName

if TYPE_CHECKING:
    from dibs.entries import Entry

TEXTS = ("id", "kind", "state", "claim", "owner", "host", "metadata")
NUMBERS = ("fence", "attempts", "priority", "age", "held", "ttl")
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_match_term = re.compile(r"(!?)([a-z]+)(!=|!~|\^=|<=|>=|=|~|<|>)(.*)", re.DOTALL).fullmatch
_match_time = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|s|m|h|d|)").fullmatch

Test = Callable[["Entry"], bool]


def parse(terms: Iterable[str]) -> Test:
    """One test of all terms; `BadName` with what to write instead when one makes no sense."""
    tests = [_term(term) for term in terms if term]
    return lambda entry: all(test(entry) for test in tests)


def states(terms: Iterable[str], known: Iterable[str]) -> set[str]:
    """Those of the known states that the terms leave open, so that no others need be looked at."""
    from dibs.entries import Entry

    told = [term for term in terms if (m := _match_term(term)) and m[2] == "state"]
    test = parse(told)
    return {state for state in known if test(Entry("", "", state, ""))}


def seconds(text: str) -> float:
    """A number with an optional unit of time, in seconds."""
    m = _match_time(text)
    if m is None:
        raise BadName(f"{text!a} is no time: write 90s, 5m, 2h or 1d")
    return float(m[1]) * _UNITS[m[2]]


def _term(term: str) -> Test:
    m = _match_term(term)
    if m is None:
        negated, word = term.startswith("!"), term.lstrip("!")
        if re.search(r"[=<>~]", word):
            raise BadName(f"{term!a} is no filter: write field=value, age>5m, or a part of the id")
        return _turned(negated, lambda entry: word in entry.id)
    negated, field, operator, value = bool(m[1]), m[2], m[3], m[4]
    if field in TEXTS:
        return _turned(negated ^ operator.startswith("!"), _text(term, field, operator, value))
    if field in NUMBERS:
        return _turned(negated ^ (operator == "!="), _number(term, field, operator, value))
    known = ", ".join(TEXTS + NUMBERS)
    raise BadName(f"{term!a}: there is no field {field!a}; there are {known}")


def _turned(negated: bool, test: Test) -> Test:
    return (lambda entry: not test(entry)) if negated else test


def _text(term: str, field: str, operator: str, value: str) -> Test:
    if operator in ("=", "!="):
        return lambda entry: getattr(entry, field) == value
    if operator == "^=":
        return lambda entry: bool(getattr(entry, field).startswith(value))
    if operator in ("~", "!~"):
        part = value.casefold()
        return lambda entry: part in getattr(entry, field).casefold()
    raise BadName(f"{term!a}: {field} is text; compare it with =, !=, ^=, ~ or !~")


def _number(term: str, field: str, operator: str, value: str) -> Test:
    if operator in ("^=", "~", "!~"):
        raise BadName(f"{term!a}: {field} is a number; compare it with =, !=, <, <=, > or >=")
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
