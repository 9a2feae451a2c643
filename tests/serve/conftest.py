from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.conftest import scratch
from tests.serve.http_client import HttpClient
from tests.serve.server_process import ServerProcess

__all__ = ["module_server", "operator", "scratch", "server"]


@pytest.fixture
def server(scratch: Path) -> Iterator[ServerProcess]:
    """A server on an empty board, in the default configuration."""
    found = ServerProcess(scratch / "board")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The same for all tests of a module."""
    found = ServerProcess(tmp_path_factory.mktemp("served") / "board")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def operator(module_server: ServerProcess) -> HttpClient:
    """An operator of that server."""
    return module_server.client("op", "operator")
