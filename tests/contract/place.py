"""What the contract tests need from an engine: a board, other processes and movable time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import dibs
from tests.core import tools
from tests.postgres import server


class Place(Protocol):
    """An empty board of one engine, with clocks that can be moved."""

    @property
    def board(self) -> dibs.Board:
        """The board as one process sees it."""

    def other(self, host: dibs.Host | None = None) -> dibs.Board:
        """The board as another process sees it, on this host or another."""

    def advance(self, seconds: float) -> None:
        """Move all clocks forward."""

    def names(self) -> list[str]:
        """The exact names of all tasks and locks, as they are stored."""


Places = Callable[..., Place]
"""Creates a place; the keywords are settings of its board."""

ENGINES: dict[str, Callable[..., Place]] = {"files": tools.Place, "postgres": server.Place}
"""Creates a place below a scratch directory, by engine."""


def places_of(engine: str, scratch: Path) -> Places:
    """A function that creates boards of one engine, each a new one."""
    count = 0

    def make(**settings: object) -> Place:
        nonlocal count
        count += 1
        below = scratch / f"{engine}-{count}"
        below.mkdir()
        below.chmod(0o755)
        return ENGINES[engine](below, **settings)

    return make
