"""Each engine's board always matches a plain list in memory."""

import pytest
from hypothesis import HealthCheck, settings

from tests.contract.board_machine import BoardMachine
from tests.contract.files_machine import FilesMachine
from tests.postgres.cluster import why_not


class PostgresMachine(BoardMachine):
    """The rules of every board: no shell and no person makes a name in a database."""

    engine = "postgres"


TestFilesBoard = FilesMachine.TestCase
TestFilesBoard.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
no_server = pytest.mark.skipif(bool(why_not()), reason=f"NO DATABASE WAS TRIED: {why_not()}")
TestPostgresBoard = no_server(PostgresMachine.TestCase)
TestPostgresBoard.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
