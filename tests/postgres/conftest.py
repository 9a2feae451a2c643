"""Boards in databases, with clocks that can be moved or in real time, and the servers behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs.model.settings import Settings
from tests.contract.command import Command
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server as Cluster
from tests.postgres.cluster import server as cluster
from tests.postgres.cluster import why_not
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
    return Command(place.where, process=True)


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Cluster]:
    """A quick server; a test makes its own databases in it and never stops it."""
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with cluster() as found:
        yield found


@pytest.fixture
def durable_server() -> Iterator[Cluster]:
    """A server of the test's own that flushes to a disk, to be stopped and killed."""
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with cluster(durable=True, settings={"synchronous_commit": "off"}) as found:
        yield found


@pytest.fixture
def site(shared_server: Cluster) -> Site:
    """A new board in a database of its own, in real time."""
    return new_site(shared_server, Settings(retry=()))
