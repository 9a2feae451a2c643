"""The table: a window on a roll of any length, which paints only the lines that are shown."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Size

from dibs import Task
from dibs_tui.messages import CursorMoved, Inspected, SortAsked
from dibs_tui.model.board import BoardModel, Listing, Test
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.cursor import Cursor
from dibs_tui.model.line import Line
from dibs_tui.model.roll import Roll
from dibs_tui.widgets.paint import LEAD, Look, fitted
from dibs_tui.widgets.rows import HEADER, Rows


class TaskTable(Rows, inherit_bindings=False):
    """One panel's tasks. Its cursor and its marks stand on tasks, not on lines."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, panel: str, model: BoardModel, *, still: float = 3.0) -> None:
        super().__init__(panel, model)
        self.test: Test | None = None
        self.marks: dict[str, Task] = {}
        """The marked tasks by the exact name that was on the screen."""
        self._under: tuple[object, ...] = ()
        self._paused = False
        self._still = still
        self._still_until = 0.0
        self._sought = False
        self._listing: Listing | None = None
        self._cursor = Cursor(Roll(lambda task: 0))
        self._version = -1

    # The roll

    @property
    def listed(self) -> bool:
        return self._listing is not None

    @property
    def held(self) -> bool:
        """Whether its lines stand still."""
        return self._roll().held

    @property
    def length(self) -> int:
        """How many lines it has."""
        return len(self._roll())

    @property
    def count(self) -> int:
        """How many tasks it lists: a line that stays for one that has left counts as none."""
        return len(self._roll()) - self._roll().gone

    @property
    def held_back(self) -> int:
        """How many changes wait because lines stand still."""
        return self._roll().waiting

    @property
    def cursor_line(self) -> int:
        """The line under the cursor."""
        return self._cursor.line

    @property
    def cursor_task(self) -> Task | None:
        """The task under the cursor."""
        return self._cursor.task

    def remake(self) -> None:
        """List anew, after another sort or filter or very many changes."""
        old = self._listing
        if old is not None:
            self._model.close(old)
        self._listing = None
        roll = self._roll()
        self._cursor.onto(roll)
        self.catch_up()
        self.refresh()

    def order(self, sort: str, *, descending: bool = False) -> None:
        """Sort by that column."""
        self.sort, self.descending = sort, descending
        if self.listed:
            self.remake()

    def recall(self, sort: tuple[str, bool] | None, columns: tuple[str, ...] | None = None) -> None:
        """Take over a remembered order and choice of columns, as far as they make sense."""
        if columns:
            known = tuple(key for key in columns if key in COLUMNS)
            self.columns = known if "id" in known else ("id", *known)
        if sort is not None and sort[0] in COLUMNS:
            self.order(sort[0], descending=sort[1])
        self._shown.clear()

    def close(self) -> None:
        """Nobody looks at it: keep nothing true."""
        if self._listing is not None:
            self._model.close(self._listing)
            self._listing = None
        self.painted.clear()
        self._since.clear()
        self._under, self.moved_at = (), 0.0

    def _opened(self) -> Listing:
        if self._listing is None:
            self._listing = self._model.listing(self.panel, self.sort, self.test, self.descending)
            for reason, holds in (("marks", self.marks), ("pause", self._paused)):
                if holds:
                    self._listing.roll.hold(reason)
        return self._listing

    def _roll(self) -> Roll:
        return self._opened().roll

    def pause(self, paused: bool) -> None:
        """Let every line stand still, or take over what was held back."""
        self._paused = paused
        if self._listing is None:
            return
        if paused:
            self._listing.roll.hold("pause")
        else:
            self._listing.roll.release("pause")
        self.catch_up()

    def catch_up(self) -> None:
        """Show what the roll has become; the cursor's task keeps its place on the screen."""
        listing = self._listing
        if listing is None or not self.is_mounted:
            return
        roll = listing.roll
        if self._still_until and time.monotonic() > self._still_until:
            self._still_until = 0.0
            roll.release("cursor")
        if roll.version != self._version or self.virtual_size.height != len(roll) + HEADER:
            self._version = roll.version
            before = self._shown_at
            self.lengthen(Size(self.size.width, len(roll) + HEADER))
            after = self._cursor.line
            if self._cursor.moved and after != before and self._visible(before):
                self.scroll_to(y=max(0, self.scroll_y + after - before), animate=False)
            self._shown_at = after
        if self._sought:
            self._reveal()
        self._note_moves()
        self.repaint_changed()

    def tick(self, *, faded: bool) -> None:
        """Once a second: as nothing has happened, only what goes on by itself."""
        if faded or self._still_until or self._sought or time.monotonic() >= self._due:
            self.catch_up()
        else:
            self.repainted = False

    def _note_moves(self, *, by_hand: bool = False) -> None:
        task = self._cursor.task
        under = (task, self._model.state_of(task) if task else "", self._cursor.line, self.scroll_y)
        if under != self._under:
            # What no frame has shown yet was not under the operator's cursor: it came by a key.
            by_hand = by_hand or not self._under or (self._under[0] is not None and not self._since)
            by_hand = by_hand or self._moved_by_act(self._under[0], task)
            self._under = under
            self.moved_at = 0.0 if by_hand else time.monotonic()

    def _moved_by_act(self, before: object, now: Task | None) -> bool:
        """Whether the operator's last act is what changed the row under the cursor."""
        if now is None or not isinstance(before, Task):
            return False
        left = before.name == now.name and now.name not in self._model.tasks
        return before.name in self._own and (left or self._own[before.name] == now.name)

    def made(self, names: dict[str, str]) -> None:
        """The operator's act gave tasks these new names: their rows did not move by themselves."""
        self._own = names
        task = self._cursor.task
        if task is not None and (task.name in names or task.name in names.values()):
            self.moved_at = 0.0

    def painted_at_cursor(self) -> str:
        """The exact name that is painted where the cursor stands."""
        return self.painted.get(HEADER + self._cursor.line - int(self.scroll_y), "")

    def shown_since(self) -> float:
        """Since when the row under the cursor is shown where it is; infinity while it is not."""
        task = self._cursor.task
        y = HEADER + self._cursor.line - int(self.scroll_y)
        return self._shown_since(y, task.name if task is not None else "")

    _shown_at = 0

    def _visible(self, line: int) -> bool:
        top = int(self.scroll_y)
        return top <= line < top + self._height

    # The cursor

    def step(self, by: int) -> None:
        """Move the cursor by so many lines, no further than to the first or the last."""
        self.go(max(0, self._cursor.line + by))

    def page(self, by: int) -> None:
        """Move the cursor by so many screens."""
        self.step(by * max(1, self._height - 1))

    def go(self, line: int) -> None:
        """Put the cursor on a line; -1 is the last."""
        if line == -1:
            line = self.length - 1
        changed = self._cursor.move(line)
        if self._still > 0:
            self._roll().hold("cursor")
            self._still_until = time.monotonic() + self._still
        self._shown_at = self._cursor.line
        self._sought = True
        self._reveal()
        self._note_moves(by_hand=True)
        self.repaint_changed()
        if changed:
            self.post_message(CursorMoved(self.panel, self.cursor_task))

    def _reveal(self) -> None:
        """Scroll to the cursor; again after the next layout, where this one has no room yet."""
        at, top = self._cursor.line, int(self.scroll_y)
        if self.size.height and self._visible(at):
            self._sought = False
        elif at < top:
            self.scroll_to(y=at, animate=False, immediate=True)
        else:
            self.scroll_to(y=at - self._height + 1, animate=False, immediate=True)

    def leave(self) -> None:
        """Let the cursor go back to the top, where it follows whatever comes."""
        self._cursor.free()
        self.scroll_home(animate=False)
        self.catch_up()

    def follow(self, task: Task) -> None:
        """The cursor's task has come back under a new name."""
        for mark in [m for m in self.marks.values() if m.id == task.id]:
            # Another state is for the operator to see first: that mark stays on the old name.
            if mark.state == task.state and mark.name not in self._model.tasks:
                del self.marks[mark.name]
                self.marks[task.name] = task
        current = self._cursor.task
        if not self._cursor.moved or current is None or current.id != task.id:
            return
        if current.name not in self._model.tasks and task in self._roll():
            self._cursor.follow(task)

    # Marks

    def mark(self, tasks: list[Task], *, on: bool | None = None) -> None:
        """Mark these tasks, or unmark them; without `on`, turn each round."""
        for task in tasks:
            if on is False or (on is None and task.name in self.marks):
                self.marks.pop(task.name, None)
            else:
                self.marks[task.name] = task
        roll = self._roll()
        if self.marks:
            roll.hold("marks")
        else:
            roll.release("marks")
        self.catch_up()

    def mark_range(self) -> bool:
        """Mark from the nearest mark to the cursor; False where there is none."""
        roll, here = self._roll(), self._cursor.line
        lines = [at for task in self.marks.values() if (at := roll.index(task)) is not None]
        if not lines:
            return False
        there = min(lines, key=lambda at: abs(at - here))
        self.mark(roll.part(min(here, there), max(here, there) + 1), on=True)
        return True

    def all_shown(self) -> list[Task]:
        """Every task that it lists."""
        return list(self._roll())

    # How a line looks

    def _look(self, line: Line) -> Look:
        task = self._cursor.task
        at_cursor = task is not None and task.name == line.task.name
        cursor = ("cursor" if self.has_focus else "cursor-away") if at_cursor else ""
        return Look(line.state, cursor, line.task.name in self.marks, line.flash)

    # The hand

    def on_resize(self) -> None:
        """Another window on the same roll."""
        self._shown.clear()
        self._version = -1
        self.call_after_refresh(self.catch_up)

    def on_click(self, event: Click) -> None:
        """A header sorts, a line takes the cursor, twice opens it."""
        if event.y < HEADER:
            key = self._column_at(event.x)
            if key:
                self.post_message(SortAsked(self.panel, key))
            return
        number = int(self.scroll_y) + event.y - HEADER
        if number < self.length:
            self.go(number)
            if event.chain > 1 and self.cursor_task is not None:
                self.post_message(Inspected(self.cursor_task))

    def _column_at(self, x: int) -> str:
        left = LEAD
        for key, room in fitted(self.columns, self.size.width):
            if left <= x <= left + room:
                return key
            left += room + 1
        return ""
