"""The location of a board: how to write it, and which payloads have paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dibs.model.task import Task


class Location(NamedTuple):
    """The location of a board.

    >>> board.location.where == os.path.abspath("tasks")
    True
    """

    where: str
    """Opens the same board from any directory: an absolute path or a URL."""
    label: str
    """The same for display and for command lines, without a password: that is in `PGPASSWORD`."""
    folder: str = ""
    """The directory with the payload files; empty if payloads are not files on this host."""

    @property
    def command_line_args(self) -> tuple[str, ...]:
        """The options that make a `dibs` command line act on this board; they show no password."""
        return "-d", self.label

    def payload_path(self, task: Task) -> str | None:
        """The path of a task's payload; None if it is not a file on this host."""
        return os.path.join(self.folder, task.name) if self.folder else None
