"""Modules and patterns that are loaded on first use, so that a worker's verb starts fast."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module and imports it at the first access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_pattern(text: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """A function that returns the pattern, which is compiled by its first call."""
    return cache(partial(re.compile, text, flags))
