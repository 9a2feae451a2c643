"""A board in a database for each test, and the server behind all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.command import Command
from tests.postgres.server import Place, Server, own


@pytest.fixture
def server() -> Server:
    """The server that all tests of this process share."""
    return own()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty board with clocks that can be moved."""
    found = Place(tmp_path)
    yield found
    found.remove()


@pytest.fixture
def command(place: Place) -> Command:
    """`dibs` on that board."""
    return Command(place.where)
