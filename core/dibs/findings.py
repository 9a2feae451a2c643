"""What `check` reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is not as it should be, or worth knowing."""

    kind: str
    name: str
    """Where, relative to the board."""
    text: str
    """What it means and what to do."""
    mend: Callable[[], object] | None = None
    """What `repair` does about it; None where a person must decide. It returns False where there
    was nothing left to do."""
    ids: tuple[str, ...] = ()
    """The ids that it is about, where they are several."""
    fault: bool = True
    """False for what is worth knowing and in order."""


def some(words: list[str]) -> str:
    """The first few of many, in words."""
    more = len(words) - 3
    return ", ".join(words[:3]) + (f" and {more:,} more" if more > 0 else "")
