"""Values of the board as a server sends them: each is made by the annotations of its class.

Nothing is taken on trust: a field of another kind is refused, and one that is not known is ignored.
"""

from __future__ import annotations

import base64
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Set
from enum import StrEnum
from functools import cache
from math import inf
from typing import Any

from dibs.model import names
from dibs.model.events import Cursor
from dibs.model.holder import Holder
from dibs.model.pauses import Pause
from dibs.model.process import Process
from dibs.model.questions import Question
from dibs.model.rates import Rates
from dibs.model.sample import Sample
from dibs.model.task import Task
from dibs.model.waiters import Waiter

Reader = Callable[[Any, int], Any]
"""Makes a value; the number is the time on this host's clock as the answer came."""
_NAMES = {each.__name__: each for each in (Holder, Pause, Process, Question, Sample, Task, Waiter)}
_LARGEST = 2**63


@cache
def reader(kind: Any) -> Reader:
    """What makes values of that kind; they raise `ValueError` or `TypeError` for anything else."""
    if kind in _OWN:
        return _OWN[kind]
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [reader(part) for part in parts if part is not type(None)]
        return lambda value, boot: None if value is None else inner(value, boot)
    if origin in (tuple, list) and (origin is list or parts[-1] is Ellipsis):
        inner = reader(parts[0])
        return lambda value, boot: origin(inner(each, boot) for each in _listed(value))
    if origin is tuple:
        each = [reader(part) for part in parts]
        return lambda value, boot: tuple(
            read(one, boot) for read, one in zip(each, _listed(value), strict=True)
        )
    if origin in (Set, frozenset):
        inner = reader(parts[0])
        return lambda value, boot: frozenset(inner(one, boot) for one in _listed(value))
    if origin in (Mapping, dict):
        inner = reader(parts[1])
        return lambda value, boot: types.MappingProxyType(
            {key: inner(one, boot) for key, one in _mapped(value).items()}
        )
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda value, boot: kind(value)
    return _named_tuple(kind)


def _named_tuple(kind: Any) -> Reader:
    fields: dict[str, Reader] = {}

    def read(value: Any, boot: int) -> Any:
        if not fields:  # only now, because a field may be of the same kind
            hints = typing.get_type_hints(kind, localns=_NAMES | {kind.__name__: kind})
            wanted = [name for name in kind._fields if name not in _UNSENT]
            fields.update({name: reader(hints[name]) for name in wanted})
        given = _mapped(value)
        return kind(**{key: make(given[key], boot) for key, make in fields.items() if key in given})

    return read


_UNSENT = ("repair", "shell_snapshot")
"""Fields that no answer has."""


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _mapped(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _of(kind: type) -> Reader:
    def read(value: Any, boot: int) -> Any:
        if type(value) is not kind:
            raise TypeError(f"no {kind.__name__}")
        return value

    return read


def _whole(value: Any, boot: int) -> int:
    if type(value) is not int or not -_LARGEST <= value < _LARGEST:
        raise TypeError("no whole number")
    return value


def _number(value: Any, boot: int) -> float:
    if value is None:  # JSON has no infinity
        return inf
    if type(value) is float:
        return value
    return _whole(value, boot)


def _bytes(value: Any, boot: int) -> bytes:
    return base64.b64decode(_of(str)(value, boot), validate=True)


def _task(value: Any, boot: int) -> Task:
    task = names.read_any(_of(str)(value["name"] if isinstance(value, dict) else value, boot))
    if task is None:
        raise ValueError("no exact name")
    return task


def _sample(value: Any, boot: int) -> Sample:
    """The board's clock; its age is there because the server's own clock says nothing here."""
    given = _mapped(value)
    return Sample(_whole(given["fs"], boot), boot - max(0, _whole(given.get("age", 0), boot)))


def _cursor(value: Any, boot: int) -> Cursor:
    return Cursor({_of(str)(value, boot): 0})


def _rates(value: Any, boot: int) -> Rates:
    given, found = _mapped(value), Rates()
    for key, counts in _mapped(given["seconds"]).items():
        if key in found.seconds:
            found.seconds[key] = _counts(counts)
    for key, counts in _mapped(given["moved"]).items():
        if key in found.moved:
            found.moved[key] = _counts(counts)
    text = _of(str)
    for verb, owner, counts in _listed(given["ended"]):
        found.ended[text(verb, boot), text(owner, boot)] = _counts(counts)
    found.begins = inf if given.get("empty") else reader(float | None)(given["begins"], boot)
    found.complete = given["complete"] is True
    return found


def _counts(value: Any) -> Counter[int]:
    return Counter({int(key[:20]): _whole(one, 0) for key, one in _mapped(value).items()})


_OWN: dict[Any, Reader] = {
    str: _of(str),
    bool: _of(bool),
    int: _whole,
    float: _number,
    bytes: _bytes,
    Task: _task,
    Sample: _sample,
    Cursor: _cursor,
    Rates: _rates,
}
