"""The messages that the parts of the dashboard send each other."""

from __future__ import annotations

from textual.message import Message

from dibs import Task


class BoardChanged(Message):
    """The source has new deltas of the board."""


class CursorMoved(Message):
    """A cursor moved to another task."""

    def __init__(self, panel: str, task: Task | None, *, by_hand: bool = True) -> None:
        """`by_hand`: whether the operator moved it, and not an act that ended its claim."""
        super().__init__()
        self.panel = panel
        self.task = task
        self.by_hand = by_hand


class InspectRequested(Message):
    """Show the details of a task."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task


class SortRequested(Message):
    """Sort a table by the column whose header was clicked."""

    def __init__(self, panel: str, column: str) -> None:
        super().__init__()
        self.panel = panel
        self.column = column


class RunCommand(Message):
    """Run a command of the registry."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command


class AgesRequested(Message):
    """Look up the ages of tasks that are on the screen without one."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names


class FilterTyped(Message):
    """Filter the board by the terms that were typed."""

    def __init__(self, terms: str) -> None:
        super().__init__()
        self.terms = terms


class FilterRequested(Message):
    """Filter the board to some tasks, in a view."""

    def __init__(self, terms: str, view: str = "", picked: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.terms = terms
        self.view = view
        self.picked = picked
        """The claims that the word in `terms` stands for; empty if `terms` are ordinary terms."""
