"""The location of a board: how to write it, and which payloads have paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.lazy import lazy_pattern

if TYPE_CHECKING:
    from dibs.model.task import Task

_commands = lazy_pattern(
    r"`dibs (?!-|help |init |setup |where|demo|mcp|run\b|[a-z-]+ --help)(?=[a-z])"
)
"""Where a text begins to quote a command of dibs that acts on a board."""


class Location(NamedTuple):
    """The location of a board.

    >>> board.location.where == os.path.abspath("tasks")
    True
    """

    where: str
    """Opens the same board from any directory: an absolute path or a URL."""
    label: str
    """The same for display, without a password."""
    folder: str = ""
    """The directory with the payload files; empty if payloads are not files on this host."""

    @property
    def command_line_args(self) -> tuple[str, ...]:
        """The options that make a `dibs` command line act on this board."""
        return "-d", self.where

    def runnable(self, text: str) -> str:
        """A text in which each command of dibs names this board, so that it works as it is typed.

        A password of the location is left out, because the text may go to a screen or a log.

        >>> board.location.runnable("try `dibs reap`").startswith("try `dibs -d /")
        True
        """
        if "`dibs " not in text:
            return text
        from shlex import join

        begins = f"`{join(('dibs', '-d', self.label))} "
        return _commands().sub(lambda _: begins, text)

    def payload_path(self, task: Task) -> str | None:
        """The path of a task's payload; None if it is not a file on this host."""
        return os.path.join(self.folder, task.name) if self.folder else None
