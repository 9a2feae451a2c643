"""The demo's board in a database: made where there is none, and removed at the end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import dibs
from dibs.model.names import match_scheme
from dibs.model.task import ASKED
from dibs.postgres import schema
from dibs.postgres.engine import PostgresBoard
from dibs.postgres.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dibs.host import Host

is_database = match_scheme
"""Whether a location is that of a database."""


def make(where: str, settings: bytes) -> None:
    """Make the demo's board; `Refused` if the database has another one."""
    schema.initialize_demo(where, settings)


def remove(where: str) -> None:
    """Remove the demo's board, and no other."""
    with suppress(dibs.DibsError):  # the server is gone: the next demo removes it
        schema.remove_demo(where)


def board_as(where: str, host: Host) -> tuple[PostgresBoard, DatabaseView]:
    """The board as seen from a host, and its tasks."""
    session = Session(where, host)
    session.connect()
    board = PostgresBoard(session)
    return board, DatabaseView(board)


class DatabaseView:
    """The tasks of the board at the last look."""

    def __init__(self, board: PostgresBoard) -> None:
        self._board = board
        self.tasks: Mapping[str, dibs.Task] = {}

    @property
    def asked(self) -> Collection[dibs.Task]:
        """The tasks that wait for an answer."""
        return [task for task in self.tasks.values() if task.state == ASKED]

    def scan(self) -> None:
        """Look again."""
        self.tasks = self._board.snapshot(ended=False).tasks
