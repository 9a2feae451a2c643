"""What the parts of the dashboard tell each other."""

from __future__ import annotations

from textual.message import Message

from dibs import Task


class BoardSeen(Message):
    """The reader found something, which waits in its queue."""


class CursorMoved(Message):
    """Another task is under a table's cursor."""

    def __init__(self, panel: str, task: Task | None) -> None:
        super().__init__()
        self.panel = panel
        self.task = task


class Inspected(Message):
    """A task is to be shown whole."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task


class SortAsked(Message):
    """A header was clicked."""

    def __init__(self, panel: str, column: str) -> None:
        super().__init__()
        self.panel = panel
        self.column = column


class RunCommand(Message):
    """A command of the registry is to be run."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command


class AgesWanted(Message):
    """Tasks are painted whose age nobody has looked up."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names


class FilterTyped(Message):
    """Terms were typed, and for long enough on a long board."""

    def __init__(self, terms: str) -> None:
        super().__init__()
        self.terms = terms


class FilterAsked(Message):
    """The board is to be filtered to something."""

    def __init__(self, terms: str, view: str = "", picked: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.terms = terms
        self.view = view
        self.picked = picked
        """The claims that the terms are a word for, where they are no terms."""
