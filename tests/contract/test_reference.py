"""Each engine's board always matches a plain list in memory."""

from hypothesis import HealthCheck, settings

from tests.contract.files_machine import FilesMachine

TestFilesBoard = FilesMachine.TestCase
TestFilesBoard.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
