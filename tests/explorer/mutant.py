"""Puts a fault into the shipped code, by replacing the text of the line that prevents it.

A change whose text no longer exists is refused: otherwise a mutant would silently become the
shipped code.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .scenario import Scenario

Change = tuple[str, str, str]
"""A function of `dibs.files` (`module:Class.name`) or of another package (`dibs.run.job:…`), a text
in it, and its replacement."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, in the code for as long as `patched()` is entered."""

    name: str
    breaks: str
    """What goes wrong, in a sentence."""
    caught_by: tuple[str, ...]
    """The scenarios that must find it, quickest first."""
    patched: Callable[[], AbstractContextManager[Any]]


def mutant(name: str, breaks: str, by: Scenario | tuple[Scenario, ...], *changes: Change) -> Mutant:
    """A mutant made of changes to the text of the shipped code."""
    scenarios = by if isinstance(by, tuple) else (by,)
    return Mutant(name, breaks, tuple(s.name for s in scenarios), lambda: edited(changes))


@contextmanager
def swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of a module or class inside the block."""
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)


@contextmanager
def edited(changes: tuple[Change, ...]) -> Iterator[None]:
    """Replace a part of the text of functions, in every module that imports them."""
    by_place: dict[str, list[tuple[str, str]]] = {}
    for place, old, new in changes:
        by_place.setdefault(place, []).append((old, new))
    with ExitStack() as stack:
        for place, edits in by_place.items():
            module_name, _, path = place.partition(":")
            full = module_name if module_name.startswith("dibs.") else f"dibs.files.{module_name}"
            module = importlib.import_module(full)
            owner: Any = module
            *above, name = path.split(".")
            for part in above:
                owner = getattr(owner, part)
            original = getattr(owner, name)
            replacement = _rewritten(module, original, place, edits)
            if above:
                stack.enter_context(swapped(owner, name, replacement))
                continue
            for other in [m for n, m in sys.modules.items() if n.split(".")[0] == "dibs"]:
                for key, value in list(vars(other).items()):
                    if value is original:
                        stack.enter_context(swapped(other, key, replacement))
        yield


def _rewritten(
    module: Any, original: FunctionType, place: str, edits: list[tuple[str, str]]
) -> Any:
    source = textwrap.dedent(inspect.getsource(original))
    for old, new in edits:
        if source.count(old) != 1:
            raise LookupError(f"{place} holds {old!r} {source.count(old)} times, not once")
        source = source.replace(old, new)
    made: dict[str, Any] = {}
    flags = "from __future__ import annotations\n"
    exec(compile(flags + source, place, "exec"), vars(module), made)
    return made[original.__name__]
