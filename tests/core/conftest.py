import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.library import SHELLS, Fleet
from tests.core.shells import PLAIN_TTL, Shell
from tests.core.test_cli import Command
from tests.core.tools import Place, settle
from tests.homes import in_memory

fast = in_memory
"""The fastest folder for files; None for the default one."""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """An empty, fast directory that other users can reach."""
    path = Path(tempfile.mkdtemp(prefix="dibs-", dir=fast()))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(scratch: Path) -> Place:
    """An empty board in a world whose clocks a test can move."""
    return Place(scratch)


@pytest.fixture(params=SHELLS, ids=[" ".join(program) for program in SHELLS])
def fleet(request: pytest.FixtureRequest, scratch: Path) -> Fleet:
    """A board whose workers source the shell library, once for each shell."""
    return Fleet(scratch, request.param)


@pytest.fixture
def command(scratch: Path) -> Command:
    """`dibs` on a fresh board."""
    settle(scratch / "board")
    return Command(scratch / "board")


@pytest.fixture
def shell(scratch: Path) -> Shell:
    """A board whose workers are shells, with the one task `task-7`."""
    place = Shell(scratch, plain_ttl=PLAIN_TTL, max_attempts=3)
    place.add()
    return place
