import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.conftest import scratch
from tests.serve.server_process import ServerProcess, add_token

__all__ = ["scratch", "served"]


@pytest.fixture
def served(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    """A server on an empty board, and an operator's token in the environment."""
    found = ServerProcess(scratch / "board")
    monkeypatch.setenv("DIBS_TOKEN", add_token(found.board, "op", "operator"))
    monkeypatch.delenv("DIBS_TOKEN_FILE", raising=False)
    assert "DIBS_TOKEN" in os.environ
    yield found
    found.stop()
