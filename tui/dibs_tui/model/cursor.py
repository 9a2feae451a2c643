"""Where a table's cursor stands: on a task, never on a line number."""

from __future__ import annotations

from dibs import Task
from dibs_tui.model.roll import Roll


class Cursor:
    """A place in a roll that follows its task.

    Until somebody moves it, it stands at the top, whatever comes there.
    """

    def __init__(self, roll: Roll) -> None:
        self._roll = roll
        self._task: Task | None = None
        self._line = 0

    @property
    def task(self) -> Task | None:
        """The task under the cursor, which may be gone by now; None on an empty roll."""
        if self._task is not None:
            return self._task
        return self._roll[0] if len(self._roll) else None

    @property
    def moved(self) -> bool:
        """Whether it was put somewhere by hand."""
        return self._task is not None

    @property
    def line(self) -> int:
        """The line it stands on now."""
        if self._task is None:
            return 0
        found = self._roll.index(self._task)
        self._line = min(self._line, max(0, len(self._roll) - 1)) if found is None else found
        return self._line

    def move(self, line: int) -> bool:
        """Stand on that line, or as near as there is one; whether it is another task."""
        if not len(self._roll):
            return False
        before = self._task
        self._line = max(0, min(line, len(self._roll) - 1))
        self._task = self._roll[self._line]
        if self._roll.anchor(self._task.name):
            self._line = self.line
        return before is None or before.name != self._task.name

    def free(self) -> None:
        """Stand at the top again."""
        self._task = None
        self._line = 0
        self._roll.anchor("")

    def follow(self, task: Task) -> None:
        """The task under the cursor has a new name, and a line of its own in this roll."""
        self._task = task
        self._roll.anchor(task.name)

    def onto(self, roll: Roll) -> None:
        """The same task in a roll made anew."""
        self._roll = roll
        if self._task is not None:
            if roll.index(self._task) is None:
                self.move(self._line)
            else:
                roll.anchor(self._task.name)
