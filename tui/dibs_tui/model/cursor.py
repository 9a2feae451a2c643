"""A table's cursor, which stays on its task when the lines move."""

from __future__ import annotations

from dibs import Task
from dibs_tui.model.sorted_tasks import SortedTasks


class TaskCursor:
    """The cursor of a list, which follows its task.

    Until the operator moves it, it stays on the first line, whichever task is there.
    """

    def __init__(self, tasks: SortedTasks) -> None:
        self._tasks = tasks
        self._task: Task | None = None
        self._line = 0

    @property
    def task(self) -> Task | None:
        """The task under the cursor, which may be gone from the board; None on an empty list."""
        if not len(self._tasks):  # a filter may hide it: what no row shows cannot be acted on
            return None
        return self._task or self._tasks[0]

    @property
    def moved(self) -> bool:
        """Whether the operator has moved it."""
        return self._task is not None

    @property
    def line(self) -> int:
        """Its line now."""
        if self._task is None:
            return 0
        found = self._tasks.index(self._task)
        self._line = min(self._line, max(0, len(self._tasks) - 1)) if found is None else found
        return self._line

    def move(self, line: int) -> bool:
        """Move to this line, or to the nearest one; True if another task is under the cursor."""
        if not len(self._tasks):
            return False
        before = self._task
        self._line = max(0, min(line, len(self._tasks) - 1))
        self._task = self._tasks[self._line]
        if self._tasks.anchor(self._task.name):
            self._line = self.line
        return before is None or before.name != self._task.name

    def free(self) -> None:
        """Go back to the first line."""
        self._task = None
        self._line = 0
        self._tasks.anchor("")

    def follow(self, task: Task) -> None:
        """Stay on the same task under its new name."""
        self._task = task
        self._tasks.anchor(task.name)

    def onto(self, tasks: SortedTasks) -> None:
        """Stay on the same task in a new list."""
        self._tasks = tasks
        if self._task is not None:
            if tasks.index(self._task) is None:
                self.move(self._line)
            else:
                tasks.anchor(self._task.name)
