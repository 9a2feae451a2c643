"""Every test of the contract runs on each engine."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.command import Command
from tests.contract.place import ENGINES, Place, Places, places_of
from tests.core.conftest import fast


@pytest.fixture(params=ENGINES)
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    """Creates boards of one engine."""
    path = Path(tempfile.mkdtemp(prefix="dibs-", dir=fast()))
    path.chmod(0o755)
    with places_of(request.param, path) as made:
        yield made
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(places: Places) -> Place:
    """An empty board with clocks that can be moved."""
    return places()


@pytest.fixture
def command(places: Places) -> Command:
    """`dibs` on its own board, in real time."""
    return Command(places().board.location.where)
