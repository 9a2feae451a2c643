"""One private server for each pytest process; tests skip loudly where none can be started."""

from collections.abc import Iterator

import pytest

from dibs.model.settings import Settings
from tests.postgres.boards import Site, site
from tests.postgres.cluster import Server, server, why_not


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """A quick server; a test makes its own databases in it and never stops it."""
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with server() as found:
        yield found


@pytest.fixture
def durable_server() -> Iterator[Server]:
    """A server of the test's own that flushes to a disk, to be stopped and killed."""
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")
    with server(durable=True) as found:
        yield found


@pytest.fixture
def place(shared_server: Server) -> Site:
    """A new board in a database of its own, in real time."""
    return site(shared_server, Settings(retry=()))
