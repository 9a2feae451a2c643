"""Every test of the contract runs on each engine."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.command import Command
from tests.contract.place import ENGINES, Place, Places, places_of
from tests.core.conftest import fast

ON_ALL_ENGINES = ("test_verbs_worker.py", "test_verbs_operator.py")
"""What the fast lane runs on every engine; the rest of the contract it runs on files only."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the fast lane fast."""
    if config.option.markexpr != "fast":
        return
    for item in list(items):
        callspec = getattr(item, "callspec", None)
        engine = callspec.params.get("places", "files") if callspec else "files"
        if engine != "files" and item.path.name not in ON_ALL_ENGINES:
            items.remove(item)


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
