from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.conftest import scratch
from tests.serve.server_process import ServerProcess

__all__ = ["scratch", "server"]


@pytest.fixture
def server(scratch: Path) -> Iterator[ServerProcess]:
    """A server on an empty board, in the default configuration."""
    found = ServerProcess(scratch / "board")
    yield found
    found.stop()
