"""The modules and functions of dibs that one action passes through."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from inspect import CO_OPTIMIZED
from types import FrameType

from tests.test_tree import modules

_OURS = ("dibs.", "dibs_tui.")


def methods() -> set[str]:
    """The qualified name of every method of dibs."""
    return {
        f"{node.name}.{inner.name}"
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for inner in node.body
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
    }


class Walk:
    """Records the functions entered below some root functions, in any thread."""

    def __init__(
        self,
        *roots: str,
        without: tuple[str, ...] = (),
        until: str = "",
    ) -> None:
        """Functions are given by their qualified names.

        Calls below a function of `without` are left out; the return of `until` ends the recording.
        """
        unknown = {*roots, *without, *([until] if until else [])} - methods()
        assert not unknown, f"no such methods: {unknown}"
        self.recording = False
        self._roots = frozenset(roots)
        self._without = frozenset(without)
        self._until = until
        self._below = threading.local()
        self._functions: dict[str, set[str]] = defaultdict(set)

    @property
    def modules(self) -> list[str]:
        """Every module of which a function was entered."""
        return sorted(self._functions)

    @property
    def functions(self) -> int:
        """The number of functions entered."""
        return sum(map(len, self._functions.values()))

    def __str__(self) -> str:
        return f"{self.functions} functions in {len(self.modules)} modules"

    @property
    def way(self) -> str:
        """Every module with its functions."""
        found = (f"{name}: {', '.join(sorted(self._functions[name]))}" for name in self.modules)
        return "\n".join(found)

    def note(self, frame: FrameType, event: str, _arg: object) -> None:
        """Called by the interpreter for each call and each return."""
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_OURS) or not code.co_flags & CO_OPTIMIZED:
            return
        name, below = code.co_qualname, self._below.__dict__
        if event == "call" and self.recording:
            below["roots"] = below.get("roots", 0) + (name in self._roots)
            below["without"] = below.get("without", 0) + (name in self._without)
            if below["roots"] and not below["without"]:
                self._functions[module].add(name)
        elif event == "return" and below:
            if name == self._until and below["roots"]:
                self.recording = False
            below["roots"] = max(0, below["roots"] - (name in self._roots))
            below["without"] = max(0, below["without"] - (name in self._without))

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Record in this thread and in all threads started meanwhile."""
        _forget_cached()
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def _forget_cached() -> None:
    """Empty the caches of dibs: what an earlier test left there would shorten the walk."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS):
            for value in vars(module).values():
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()
