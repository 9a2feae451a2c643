"""Natural order: `render-2` before `render-10`."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGITS = "0123456789"
_replace_numbers = re.compile("[0-9]+").sub


def natural(text: str) -> str:
    """The key that sorts a text by its words and by the values of its numbers."""
    stem = text.rstrip(_DIGITS)
    if len(stem) == len(text):
        return _words(text)
    digits = text[len(stem) :].lstrip("0")
    # Most ids on a board differ only in the number at their end, so the rest is kept.
    return f"{_words(stem)}\0{chr(len(digits))}{digits}"


@lru_cache(1024)
def _words(text: str) -> str:
    return _replace_numbers(_number, text)


def _number(found: re.Match[str]) -> str:
    """A number so that texts sort it by its value: of two, the one with more digits is higher."""
    digits = found[0].lstrip("0")
    return f"\0{chr(len(digits))}{digits}"
