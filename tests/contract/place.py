"""What the contract tests need from an engine: a board, other processes and movable time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

import dibs
from tests.core import tools
from tests.postgres import cluster, server
from tests.remote import place as remote


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

    def signed(self, by: str) -> str:
        """How the log names whoever acted with this `by`."""

    def remove(self) -> None:
        """Leave nothing."""


Places = Callable[..., Place]
"""Creates a place; the keywords are settings of its board."""

ENGINES: dict[str, Callable[..., Place]] = {"files": tools.Place, "remote": remote.Place}
"""Creates a place below a scratch directory, by engine."""
if not cluster.why_not():  # else tests/postgres is skipped, loudly
    ENGINES["postgres"] = server.Place


def require(place: Place, capability: dibs.Capability) -> None:
    """Skip the rest of a test about what only some boards can do."""
    if capability not in place.board.capabilities:
        pytest.skip(f"a board without {capability}")


@contextmanager
def places_of(engine: str, scratch: Path) -> Iterator[Places]:
    """A function that creates boards of one engine, each a new one; they are removed at the end."""
    made: list[Place] = []

    def make(**settings: object) -> Place:
        below = scratch / f"{engine}-{len(made)}"
        below.mkdir()
        below.chmod(0o755)
        made.append(ENGINES[engine](below, **settings))
        return made[-1]

    yield make
    for place in made:
        place.remove()
