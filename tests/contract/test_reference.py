"""Each engine's board always matches a plain list in memory."""

from hypothesis import HealthCheck, settings

from tests.contract.board_machine import BoardMachine
from tests.contract.files_machine import FilesMachine


class PostgresMachine(BoardMachine):
    """The rules of every board: no shell and no person makes a name in a database."""

    engine = "postgres"


TestFilesBoard = FilesMachine.TestCase
TestFilesBoard.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
TestPostgresBoard = PostgresMachine.TestCase
TestPostgresBoard.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
