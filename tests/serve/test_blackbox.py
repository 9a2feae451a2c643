"""The black-box suite, against a server in the default configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.serve.blackbox import CHECKS, Bench
from tests.serve.server_process import ServerProcess, add_token

LEAST = 40


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    board: Path = tmp_path_factory.mktemp("blackbox") / "board"
    server = ServerProcess(board)
    yield Bench(server.url, add_token(board, "ci"))
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def test_there_are_enough_checks() -> None:
    assert len(CHECKS) >= LEAST


@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])
def test_blackbox(bench: Bench, check: Callable[[Bench], None]) -> None:
    check(bench)
