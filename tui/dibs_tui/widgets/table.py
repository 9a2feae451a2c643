"""A table of tasks of any length, which draws only the lines in its window."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.strip import Strip

from dibs import Task
from dibs.model.filters import Test
from dibs.model.metadata import values_of
from dibs_tui.model.board import BoardModel, Listing
from dibs_tui.model.columns import column_of
from dibs_tui.model.cursor import TaskCursor
from dibs_tui.model.folds import Fold, is_head
from dibs_tui.model.panels import NUMBERS, PANELS
from dibs_tui.model.sorted_tasks import SortedTasks
from dibs_tui.model.task_line import TaskLine
from dibs_tui.text.ages import UNREAD, counted, many, step
from dibs_tui.text.natural import natural
from dibs_tui.text.safe import fit, width
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.messages import (
    AgesRequested,
    CursorMoved,
    InspectRequested,
    RunCommand,
    SortRequested,
)
from dibs_tui.widgets.paint import Band, LineLook, Painter, Part, band, heads_of, parts_of
from dibs_tui.widgets.window import HEADER, NO_TASK, UNMOVED, Selection, View, Window, scroll_bar

_CLAIMS_READ = 1000
_FIRST = 5000
"""The tasks that a filter looks at before it lets keys have their turn."""
_TURN, _REST = 0.006, 0.006
"""Seconds for which it looks at more tasks, and between two turns."""
_SPARE = 25
"""Folding a list may take at most 1/25 of one core."""
_Read = tuple[tuple[Part, ...], LineLook]
"""What a line of a task shows, and how it is drawn."""


class TaskTable(Window, inherit_bindings=False):
    """The tasks of one panel; its cursor and its marks stay on tasks, not on lines."""

    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    TaskTable { height: 1fr; background: $bg; overflow-x: hidden; scrollbar-size: 0 0; }
    """

    def __init__(self, panel: str, model: BoardModel, *, still: float = 3.0) -> None:
        super().__init__(id=f"table-{panel}", classes="tasks")
        self.panel = panel
        self._spec = PANELS[panel]
        self._chosen: tuple[str, ...] | None = None
        """The columns that the operator has chosen; None for those of the panel."""
        self.in_grid = False
        """Whether there are other panels beside it, so that it has less room."""
        self._band: tuple[object, ...] = ()
        self.sort = PANELS[panel].sort
        self.descending = False
        self.shown_names: dict[int, str] = {}
        """The exact name on each line of the screen, which is what a key acts on."""
        self._step = math.inf
        """Seconds until the next line changes without an event, because an age grows."""
        self._due = 0.0
        self._ageless: set[str] = set()
        self._model = model
        self.test: Test | None = None
        self.by_reason = False
        """Whether the filter is about reasons."""
        self.marks: dict[str, Task] = {}
        """The marked tasks by exact name."""
        self._under: tuple[object, ...] = ()
        self._under_state = ""
        """The last state of what is under the cursor, as long as it was on the board."""
        self._paused = False
        self._still = still
        self._still_until = 0.0
        self._reveal_pending = False
        self._listing: Listing | None = None
        self._next: Listing | None = None
        """The list that replaces it once it is full."""
        self._next_is_own = False
        self._whole: Listing | None = None
        """The list without the filter, which is kept while there is one: it is in order."""
        self.made_in, self.made_at = 0.0, 0.0
        """How long it took to make the list, without the time of others, and when it was ready."""
        self._opened: set[str] = set()
        """The folds that the operator has opened, by the names of their heads."""
        self._drawn_folds: dict[str, Fold] = {}
        """Each fold on the screen as it was last drawn."""
        self._folded, self._fold_due = -1, 0.0
        self._cursor = TaskCursor(SortedTasks(lambda task: 0))
        self._rests = False
        """Whether the cursor was put where it is, and not moved by the operator."""
        self._version = -1

    # The list

    @property
    def listed(self) -> bool:
        """Whether its list is being kept up to date."""
        return self._listing is not None

    @property
    def held(self) -> bool:
        """Whether its lines stay in place."""
        return self._sorted_tasks().held

    @property
    def length(self) -> int:
        """The number of lines."""
        return len(self._sorted_tasks())

    @property
    def count(self) -> int:
        """The number of tasks, without lines that are kept for tasks that have left."""
        folds = self._open_listing().folds
        shown = len(self._sorted_tasks()) - self._sorted_tasks().gone
        return shown + (folds.hidden if folds is not None else 0)

    @property
    def held_back(self) -> int:
        """The number of changes that wait because lines stay in place."""
        return self._sorted_tasks().waiting

    @property
    def cursor_line(self) -> int:
        """The line under the cursor."""
        return self._cursor.line

    @property
    def cursor_task(self) -> Task | None:
        """The task under the cursor; None on the line of many tasks."""
        task = self._cursor.task
        return None if task is not None and is_head(task.name) else task

    @property
    def cursor_fold(self) -> Fold | None:
        """The fold whose line is under the cursor."""
        task = self._cursor.task
        return self._fold(task.name) if task is not None else None

    @property
    def is_in_fold(self) -> bool:
        """Whether the task under the cursor is a member of an open fold."""
        folds, task = self._open_listing().folds, self._cursor.task
        return folds is not None and task is not None and folds.of(task.name) is not None

    @property
    def cursor_tasks(self) -> list[Task]:
        """The task under the cursor, or all that its line stands for."""
        fold, task = self.cursor_fold, self.cursor_task
        if fold is not None:
            drawn = self._drawn_folds.get(fold.head.name)
            return self._members(fold, drawn.names if drawn is not None else ())
        return [task] if task is not None else []

    @property
    def is_open(self) -> bool:
        """Whether any fold is open."""
        listing = self._listing
        return listing is not None and listing.folds is not None and listing.folds.any_open

    def metadata_keys(self) -> list[str]:
        """The keys in the metadata of the first claims of the board, each of which is a column."""
        holders = islice(self._model.holders.values(), _CLAIMS_READ)
        found = {key for holder in holders for key in values_of(holder.metadata)}
        return sorted(found, key=natural)

    def opens(self, fold: Fold) -> bool:
        """Whether a fold is open."""
        return fold.head.name in self._opened

    def _fold(self, name: str) -> Fold | None:
        """The fold whose line has this name."""
        folds = self._listing.folds if self._listing is not None else None
        return folds.folds.get(name) if folds is not None else None

    def _members(self, fold: Fold, names: Iterable[str]) -> list[Task]:
        """Those of the names that are still what the fold says."""
        found = (self._model.tasks.get(name) for name in names)
        state = fold.head.state
        return [t for t in found if t is not None and self._model.state_of(t) == state]

    def turn_fold(self, *, to_open: bool | None = None) -> bool:
        """Open or close the fold under the cursor, or close the one around it; False if none."""
        self._complete()
        listing, task = self._open_listing(), self._cursor.task
        if listing.folds is None or task is None:
            return False
        fold = self._fold(task.name)
        if fold is None and to_open is not True:
            fold = listing.folds.of(task.name)
        if fold is None:
            return False
        if to_open is None or to_open is not (fold.head.name in self._opened):
            self._model.turn_fold(listing, fold)
        line = listing.sorted_tasks.index(fold.head)
        if line is not None and task.name != fold.head.name:
            self.go(line)
        self.catch_up()
        self._note_moves(by_hand=True)
        return True

    @property
    def cursor_id(self) -> str:
        """The id of the task under the cursor."""
        task = self.cursor_task
        return task.id if task is not None else ""

    def selected(self) -> Selection:
        """The task under the cursor, if it is the one on the screen; or why there is none."""
        task = self._cursor.task
        if task is None:
            return [], NO_TASK
        if why := self.why_unsettled:
            return [], why
        if self.name_at_cursor() != task.name:
            return [], "row changed — look again"
        tasks = self.cursor_tasks
        return tasks, "" if tasks else NO_TASK

    def rebuild(self, *, own: bool = True) -> None:
        """Make the list again; `own` is a change of sort or filter by the operator.

        A long list that is filtered stays as it is until the other one is full.
        """
        start = time.thread_time()
        if own:
            self.view_changed()
        self._drop_next()
        waits = self._listing is not None and not self.held and self.test is not None
        if waits and self._listing is not None and self._listing.test is None:
            self._whole = self._listing
        self._next = self._whole if self.test is None else None
        if self._next is None:
            self._next = self._new_listing(_FIRST if waits else None)
        self._next_is_own, self.made_in = own, time.thread_time() - start
        if self._next.rest:
            self.set_timer(_REST, partial(self._fill, self._next))
        else:
            self._adopt()

    @property
    def is_being_made(self) -> bool:
        """Whether another list is being made."""
        return self._next is not None

    def _fill(self, listing: Listing) -> None:
        """Look at more tasks, unless the list is no longer wanted."""
        if listing is not self._next:
            return
        start = time.thread_time()
        full = self._model.fill(listing, _TURN)
        self.made_in += time.thread_time() - start
        if full:
            self._adopt()
        else:
            self.set_timer(_REST, partial(self._fill, listing))

    def _complete(self) -> None:
        """Fill the next list at once: a key needs what it will show."""
        if self._next is not None:
            self._model.fill(self._next, math.inf)
            self._adopt()

    def _adopt(self) -> None:
        """Show the next list."""
        assert self._next is not None
        listing, self._next = self._next, None
        if self._next_is_own:
            self.view_changed()
        before, self._listing, self.made_at = self._listing, listing, time.monotonic()
        if before is not None and before is self._whole:
            before.sorted_tasks.settle()
        elif before is not None and before is not listing:
            self._model.close(before)
        if listing is self._whole:
            self._whole = None
            self._folded, self._fold_due = -1, 0.0
        self._hold(listing)
        self._cursor.onto(listing.sorted_tasks)
        self.catch_up()
        self.refresh()

    def _drop_next(self) -> None:
        if self._next is not None:
            self._model.close(self._next)
            self._next = None

    def _drop_whole(self) -> None:
        if self._whole is not None and self._whole is not self._listing:
            self._model.close(self._whole)
        self._whole = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to show, as far as they fit."""
        if self._chosen is not None:
            return self._chosen
        return self._spec.grid if self.in_grid else self._spec.columns

    def order(self, sort: str, *, descending: bool = False) -> None:
        """Sort by this column."""
        self.sort, self.descending = sort, descending
        self._drop_whole()
        if self.listed:
            self.rebuild()

    def recall(self, sort: tuple[str, bool] | None, columns: tuple[str, ...] | None = None) -> None:
        """Restore a remembered order and choice of columns, without unknown ones."""
        if columns:
            known = tuple(key for key in columns if column_of(key) is not None)
            chosen = known if "id" in known else ("id", *known)
            self._chosen = chosen if chosen != self._spec.columns else None
        if sort is not None and column_of(sort[0]) is not None:
            self.order(sort[0], descending=sort[1])
        self._shown.clear()

    def close(self) -> None:
        """Stop updating the list, because the table is hidden."""
        self._drop_next()
        self._drop_whole()
        if self._listing is not None:
            self._model.close(self._listing)
            self._listing = None
        self.shown_names.clear()
        self._since.clear()
        self._under, self.moved_at = (), UNMOVED

    def _open_listing(self) -> Listing:
        if self._listing is None:
            self._listing = self._new_listing()
            self._hold(self._listing)
            self._cursor.onto(self._listing.sorted_tasks)
        return self._listing

    def _new_listing(self, first: int | None = None) -> Listing:
        self._folded = self._model.causes_version
        return self._model.listing(
            self.panel, self.sort, self.test, self.descending, self._opened, first=first,
            whole=self._whole,
        )  # fmt: skip

    def _hold(self, listing: Listing) -> None:
        for reason, holds in (("marks", self.marks), ("pause", self._paused)):
            if holds:
                listing.sorted_tasks.hold(reason)

    def _sorted_tasks(self) -> SortedTasks:
        return self._open_listing().sorted_tasks

    def pause(self, paused: bool) -> None:
        """Freeze the lines, or apply the changes that wait."""
        self._complete()
        self._paused = paused
        if self._listing is None:
            return
        if paused:
            self._listing.sorted_tasks.hold("pause")
        else:
            self._listing.sorted_tasks.release("pause")
        self.catch_up()

    def catch_up(self) -> None:
        """Show the list as it is now; the cursor's task keeps its place on the screen."""
        listing = self._listing
        if listing is None or not self.is_mounted:
            return
        tasks = listing.sorted_tasks
        if self._still_until and time.monotonic() > self._still_until:
            self._still_until = 0.0
            tasks.release("cursor")
        self._refold(listing)
        self._go_on()
        if tasks.version != self._version or self.virtual_size.height != len(tasks) + HEADER:
            self._version = tasks.version
            before = self._shown_at
            self.lengthen(Size(self.size.width, len(tasks) + HEADER))
            after = self._cursor.line
            if self._cursor.moved and after != before and self._visible(before):
                self.scroll_to(y=max(0, self.scroll_y + after - before), animate=False)
            self._shown_at = after
        if self._reveal_pending:
            self._reveal()
        self._note_moves()
        self.repaint_changed()

    def _refold(self, listing: Listing) -> None:
        """Fold the list again if that is due; it may take at most 1/25 of one core."""
        now = time.monotonic()
        stale = self._folded == self._model.causes_version
        if listing.folds is None or stale or listing.sorted_tasks.held or now < self._fold_due:
            return
        start = time.thread_time()
        self._folded = self._model.causes_version
        self._model.refold(listing)
        self._fold_due = now + _SPARE * (time.thread_time() - start)

    def tick(self) -> None:
        """Update what changes without events, once a second."""
        if (
            self._folded != self._model.causes_version
            or self._still_until
            or self._reveal_pending
            or time.monotonic() >= self._due
        ):
            self.catch_up()
        else:
            self.update_title()

    def _note_moves(self, *, by_hand: bool = False) -> None:
        task = self._cursor.task
        state, place = self._model.state_of(task) if task else "", self.region.y
        under = (task, state, self._cursor.line, self.scroll_y, place)
        if task is not None and self._is_there(task, _NO_TASK):
            self._under_state = self._state_of(task)
        if under != self._under:
            # A row that no frame has shown cannot have moved under the operator's cursor.
            by_hand = by_hand or self._own_view or not self._under
            by_hand = by_hand or (self._under[0] is not None and not self._since)
            by_hand = by_hand or self._moved_by_act(self._under[0], task)
            self._under = under
            self.moved_at = UNMOVED if by_hand else time.monotonic()

    def view_changed(self) -> None:
        """Note that the operator changed the view, and keep a cursor that was moved in sight."""
        self._reveal_pending = self._reveal_pending or self._cursor.moved
        super().view_changed()

    def _view_in_place(self) -> None:
        """Take the rows' places as those that the operator has chosen."""
        if self.listed:  # a closed table has none
            self.catch_up()
            self._note_moves(by_hand=True)
        super()._view_in_place()

    def _moved_by_act(self, before: object, now: Task | None) -> bool:
        """Whether the operator's last act changed the row under the cursor."""
        if now is None or not isinstance(before, Task):
            return False
        left = before.name == now.name and now.name not in self._model.tasks
        return before.name in self._own and (left or self._own[before.name] == now.name)

    def note_renames(self, names: dict[str, str]) -> None:
        """Note that the operator's act renamed these tasks: their rows count as unmoved."""
        self._own = names
        task = self._cursor.task
        if task is not None and (task.name in names or task.name in names.values()):
            self.moved_at = UNMOVED
        if self.listed:
            self._go_on()

    def name_at_cursor(self) -> str:
        """The exact name on the screen at the cursor."""
        return self.shown_names.get(HEADER + self._cursor.line - int(self.scroll_y), "")

    def shown_since(self) -> float:
        """Since when the row under the cursor is at its place on the screen; infinity if not."""
        task = self._cursor.task
        y = HEADER + self._cursor.line - int(self.scroll_y)
        return self._shown_since(y, task.name if task is not None else "")

    _shown_at = 0

    def _visible(self, line: int) -> bool:
        top = int(self.scroll_y)
        return top <= line < top + self._height

    # The cursor

    def step(self, by: int) -> None:
        """Move the cursor by this many lines, at most to the first or the last."""
        self.go(max(0, self._cursor.line + by))

    def page(self, by: int) -> None:
        """Move the cursor by this many pages."""
        self.step(by * max(1, self._height - 1))

    def go(self, line: int) -> None:
        """Move the cursor to a line; -1 is the last."""
        self._complete()
        if line == -1:
            line = self.length - 1
        self._rests = False
        changed = self._cursor.move(line)
        if self._still > 0:
            self._sorted_tasks().hold("cursor")
            self._still_until = time.monotonic() + self._still
        self._shown_at = self._cursor.line
        self._reveal_pending = True
        self._reveal()
        self._note_moves(by_hand=True)
        self.repaint_changed()
        if changed:
            self.post_message(CursorMoved(self.panel, self.cursor_task))

    def rest_on(self, state: str) -> bool:
        """Put a cursor that the operator has not moved on the first line of this state, if any.

        True if another line is under the cursor.
        """
        if not self.listed or (self._cursor.moved and not self._rests):
            return False
        line = self._first_line(state)
        if line is None:
            if self._rests:
                self.leave()
                return True
            return False
        found = self._sorted_tasks()[line]
        if self._cursor.moved and self._cursor.task == found:
            return False
        self._rests = True
        self._cursor.move(line)
        self._shown_at = self._cursor.line
        self._reveal_pending = True  # until `catch_up` knows the layout
        self._note_moves()
        return True

    def _first_line(self, state: str) -> int | None:
        """The first line of this state in a list that is sorted by state."""
        if self.sort != "state" or self.descending or not self._model.count(state):
            return None
        for line, task in enumerate(self._sorted_tasks()):
            found = task.state if is_head(task.name) else self._model.state_of(task)
            if found == state:
                return line
            if found != "asked":
                break
        return None

    def _reveal(self) -> None:
        """Scroll to the cursor; `catch_up` repeats it if there is no layout yet."""
        at, top = self._cursor.line, int(self.scroll_y)
        if self.size.height and self._visible(at):
            self._reveal_pending = False
        elif at < top:
            self.scroll_to(y=at, animate=False, immediate=True)
        else:
            self.scroll_to(y=at - self._height + 1, animate=False, immediate=True)

    def leave(self) -> None:
        """Move the cursor back to the first line, whichever task is there."""
        self._complete()
        self._rests = False
        self._cursor.free()
        self.scroll_home(animate=False)
        self.catch_up()

    def _go_on(self) -> None:
        """Leave a line that the operator's last act has ended, for the next one of its state."""
        task = self._cursor.task
        if task is None or not self._cursor.moved or not self._is_ended(task):
            return
        lines, here, state = self._sorted_tasks(), self._cursor.line, self._under_state
        below = (at for at in range(here, len(lines)) if self._is_there(lines[at], task))
        above = (at for at in range(here - 1, -1, -1) if self._is_there(lines[at], task))
        places = [at for at in (next(below, None), next(above, None)) if at is not None]
        alike = (at for at in places if self._state_of(lines[at]) == state)
        line = next(alike, next(iter(places), None))
        if line is None:
            return
        self._cursor.move(line)
        self._shown_at = self._cursor.line
        self._reveal_pending = True
        self.post_message(CursorMoved(self.panel, self.cursor_task, by_hand=False))

    def _is_ended(self, task: Task) -> bool:
        """Whether the operator's last act ended what this line stands for."""
        if is_head(task.name):
            drawn = self._drawn_folds.get(task.name)
            if drawn is None or self._own.keys().isdisjoint(drawn.names):
                return False
            return not self._members(drawn, drawn.names)
        return task.name in self._own and task.name not in self._model.tasks

    def _is_there(self, line: Task, ended: Task) -> bool:
        """Whether a line still stands for something on the board, and not for what has ended."""
        if line.name in self._model.tasks:
            return line.id != ended.id
        other = is_head(line.name) and line.name != ended.name
        return other and self._fold(line.name) is not None

    def _state_of(self, line: Task) -> str:
        """The state that a line shows."""
        return self._model.state_of(line) if line.name in self._model.tasks else line.state

    def follow(self, came: Iterable[Task]) -> None:
        """Keep cursor and marks on tasks that have a new name in the same state.

        A mark on a claim is on exactly that claim, and leaves with it.
        """
        gone = [m for m in self.marks.values() if m.live and m.name not in self._model.tasks]
        if gone:
            self.mark(gone, on=False)
        if self.marks or self._cursor.moved:
            for task in came:
                self._follow(task)

    def _follow(self, task: Task) -> None:
        for mark in [m for m in self.marks.values() if m.id == task.id]:
            # The operator has not seen a new state yet, so that mark stays on the old name.
            if not mark.live and mark.state == task.state and mark.name not in self._model.tasks:
                del self.marks[mark.name]
                self.marks[task.name] = task
        current = self._cursor.task
        if not self._cursor.moved or current is None or current.id != task.id:
            return
        if current.state != task.state:  # it belongs elsewhere, perhaps out of sight
            return
        if current.name not in self._model.tasks and task in self._sorted_tasks():
            self._cursor.follow(task)

    # Marks

    def mark(self, tasks: list[Task], *, on: bool | None = None) -> None:
        """Mark or unmark these tasks; without `on`, toggle each."""
        self._complete()
        for task in tasks:
            if on is False or (on is None and task.name in self.marks):
                self.marks.pop(task.name, None)
            else:
                self.marks[task.name] = task
        sorted_tasks = self._sorted_tasks()
        if self.marks:
            sorted_tasks.hold("marks")
        else:
            sorted_tasks.release("marks")
        self.catch_up()

    def mark_range(self) -> bool:
        """Mark from the nearest mark to the cursor; False if there is no mark."""
        self._complete()
        sorted_tasks, here = self._sorted_tasks(), self._cursor.line
        lines = [at for task in self.marks.values() if (at := sorted_tasks.index(task)) is not None]
        if not lines:
            return False
        there = min(lines, key=lambda at: abs(at - here))
        between = sorted_tasks.part(min(here, there), max(here, there) + 1)
        self.mark(self._unfolded(between), on=True)
        return True

    def all_shown(self) -> list[Task]:
        """Every task in the list."""
        self._complete()
        return self._unfolded(self._sorted_tasks())

    def _unfolded(self, lines: Iterable[Task]) -> list[Task]:
        """The tasks of these lines, with those that folds stand for."""
        found: dict[str, Task] = {}
        for line in lines:
            fold = self._fold(line.name) if is_head(line.name) else None
            if fold is not None:
                found.update({task.name: task for task in self._members(fold, fold.names)})
            elif not is_head(line.name):
                found[line.name] = line
        return list(found.values())

    def listed_rows(self) -> list[Task]:
        """Every task in the list, also those out of sight."""
        return self.all_shown()

    # Drawing

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        view, painter = self._view, Painter(inks_of(self.app))
        if y < HEADER:
            self._band = self._band_now(view)
            return band(painter, *self._band)
        number = view.top + y - HEADER
        if number >= view.length:
            self.shown_names.pop(y, None)
            self._since.pop(y, None)
            self._shown[y] = ()
            return painter.strip(self._absence(y), view.cells)
        task = self._sorted_tasks()[number]
        read_for, read = self._fresh.pop(y, (None, None))
        if read_for != (task.name, self.columns, view):
            read = self._read(task, y, view)
        parts, look = self._shown[y] = read
        if (fold := self._fold(task.name)) is not None:
            self._drawn_folds[task.name] = fold
        self.shown_names[y] = task.name
        self._shows(y, task.name)
        return painter.task_line(parts, look, view.cells)

    def _read(self, task: Task, y: int, view: View) -> _Read:
        """What a task's line shows now."""
        line = self._line(task)
        if line.entry.age is None and not task.live:
            self._want_age(task.name)
        self._step = min(self._step, 1.0 if task.live else step(line.entry.age))
        look = self._look(line, y, view)
        return parts_of(self.columns, line, view.cells, cursor=look.cursor), look

    def _line(self, task: Task) -> TaskLine:
        """What a line of the list shows, by its fold."""
        folds = self._open_listing().folds
        if folds is None:
            return self._model.line(task)
        fold = folds.folds.get(task.name)
        if fold is not None:
            return self._model.fold_line(fold, is_open=task.name in self._opened)
        line = self._model.line(task)
        if is_head(task.name):  # its key says nothing to a person
            drawn = self._drawn_folds.get(task.name)
            return line._replace(id=drawn.title if drawn is not None else "")
        fold = folds.of(task.name)
        if fold is None or fold.head.name not in self._opened:
            return line
        return line._replace(fold="member", alike=bool(fold.verdict == line.verdict))

    def _absence(self, y: int) -> list[Part]:
        """One line of the text of an empty table that has the screen to itself."""
        if self.length or self.in_grid or y != HEADER + min(2, self._height // 2):
            return []
        text = "Esc clears the filter" if self.test else self._spec.empty
        text = text if self._is_read else f"reading {UNREAD}"
        text = fit(text, min(width(text), self.size.width))
        return [(" " * ((self.size.width - width(text)) // 2), "muted"), (text, "muted")]

    def _band_now(self, view: View) -> tuple[Band, tuple[str, ...], tuple[str, bool], int]:
        """Everything that the band depends on."""
        count = self.count
        shown = Band(
            NUMBERS[self.panel],
            self._spec.glyph,
            self._spec.title,
            self._count_text(count),
            _COUNT_INKS.get(self.panel, "bright bold") if count else "muted",
            self._extra(),
            view.focused,
            view.dim,
            bool(self._unread),
        )
        columns = self.columns if view.length else ()
        return shown, columns, (self.sort, self.descending), view.cells

    def _count_text(self, count: int) -> str:
        if self.test:
            total = sum(self._model.count(state) for state in self._spec.states)
            if not self._is_read:
                return UNREAD
            unread = self._unread
            more = f" · {counted(unread, 'reason')} not read" if unread else ""
            return f"{many(count)} of {many(total)} match{more}"
        if self.panel in _BESIDE:  # the others are counted beside them
            count = self._model.count(self.panel)
        if not self._is_read:
            return f"{many(count)} {UNREAD}" if count else UNREAD
        return many(count) if count else "none"

    @property
    def _unread(self) -> int:
        """How many rows may match the filter that cannot be compared with it yet."""
        return self._model.unread(self._spec.states) if self.by_reason and self.test else 0

    @property
    def _is_read(self) -> bool:
        """Whether every task that may be listed was reported."""
        return self._model.knows(*self._spec.states)

    def _extra(self) -> str:
        """What else the band says, if there is room."""
        if held := self.held_back:
            return f"+{many(held)} held back"
        if self.test:
            return ""
        listing = self._open_listing()
        if listing.folds is not None and listing.folds.folds and self.panel != "all":
            members = sum(len(fold.names) for fold in listing.folds.folds.values())
            causes = self.count - members + len(listing.folds.folds)
            return counted(causes, "cause")
        if self.panel == "claimed" and (locks := self._model.count("held")):
            return f"+ {counted(locks, 'lock')}"
        if self.panel == "available" and (later := self._model.count("later")):
            return f"{many(later)} later"
        return ""

    def update_title(self) -> None:
        """Draw the band again if it reads differently."""
        self._draw_band(self._view_now())

    def _draw_band(self, view: View) -> None:
        if self._band != self._band_now(view):
            self.refresh(Region(0, 0, view.cells, HEADER))

    def repaint_changed(self) -> None:
        """Draw only the lines that changed."""
        fresh, shown = self._fresh, self._shown
        fresh.clear()
        if not self.listed:
            return
        self._step, start = math.inf, time.monotonic()
        view, columns = self._view_now(), self.columns
        self._draw_band(view)
        tasks = self._sorted_tasks().part(view.top, view.top + view.height)
        for y, task in enumerate(tasks, HEADER):
            read = self._read(task, y, view)
            if shown.get(y) != read:
                fresh[y] = (task.name, columns, view), read
        below = range(HEADER + len(tasks), self.size.height)
        self._draw_lines([*fresh, *(y for y in below if shown.get(y))], view.cells)
        self._due = start + self._step

    def _want_age(self, name: str) -> None:
        if not self._ageless:
            self.call_later(self._ask)
        self._ageless.add(name)

    def _ask(self) -> None:
        names, self._ageless = tuple(self._ageless), set()
        self.post_message(AgesRequested(names))

    def _look(self, line: TaskLine, y: int, view: View) -> LineLook:
        """How a line is drawn."""
        task = self._cursor.task
        cursor = view.focused and task is not None and task.name == line.task.name
        fold = self._fold(line.task.name) if line.fold else None
        names = fold.names if fold is not None else (line.task.name,)
        marked = bool(self.marks) and all(name in self.marks for name in names)
        return LineLook(cursor, marked, line.changed, scroll_bar(y - HEADER, view), view.dim)

    # Mouse and size

    def on_resize(self) -> None:
        """Draw everything at the new size."""
        self._shown.clear()
        self._version = -1
        self.call_after_refresh(self.catch_up)

    def on_click(self, event: Click) -> None:
        """Sort by a head, open a title, move the cursor to a line, scroll at the scroll bar.

        A double click shows the task.
        """
        if event.y < HEADER:
            key = self._head_at(event.x)
            if self.in_grid and not key:
                self.post_message(RunCommand(f"panel-{self.panel}"))
            else:
                self.post_message(SortRequested(self.panel, key or "id"))
            return
        if event.x == self.size.width - 1 and self.length > self._height:
            part = (event.y - HEADER) / max(1, self._height - 1)
            self.scroll_to(y=round(part * (self.length - self._height)), animate=False)
            return
        number = int(self.scroll_y) + event.y - HEADER
        if number < self.length:
            self.go(number)
            if self.cursor_fold is not None:
                self.turn_fold()
            elif event.chain > 1 and self.cursor_task is not None:
                self.post_message(InspectRequested(self.cursor_task))

    def _head_at(self, x: int) -> str:
        """The column whose head is at this cell; empty at the title."""
        heads = heads_of(self.columns, self.sort, self.descending, self.size.width)
        return next((head.key for head in reversed(heads[1:]) if head.start - 1 <= x), "")


_NO_TASK = Task("", "", "", 0, 0, 0, "")
_BESIDE = ("claimed", "available")
"""The panels whose other states, locks and later tasks, have a count of their own."""
_COUNT_INKS = {"stale": "alarm bold", "failed": "fail"}
