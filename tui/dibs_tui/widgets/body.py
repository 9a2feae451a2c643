"""The tables and lists of the board screen; the view and the room decide which are shown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Set
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus
from textual.geometry import Size

from dibs import Task
from dibs.model.filters import Test
from dibs_tui.model import layout
from dibs_tui.model.board import BoardModel
from dibs_tui.model.filter_terms import about_reason
from dibs_tui.model.last_reasons import why_incomplete
from dibs_tui.model.layout import Contents, Place
from dibs_tui.model.live_board import LiveBoard
from dibs_tui.model.panels import PANELS
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.widgets.age_filter_refresh import AgeFilterRefresh
from dibs_tui.widgets.card import Card
from dibs_tui.widgets.feed import Feed
from dibs_tui.widgets.inspector import Inspector
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.owners import Owners
from dibs_tui.widgets.panels import Panels
from dibs_tui.widgets.problems import Problems
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.window import NO_TASK, Selection

_NARROW = 80
"""A narrower screen shows nothing beside the tables."""
_PANE, _LEAST_PANE, _MOST_PANE = 34, 36, 90
"""The width of the pane: the part of the screen in percent, and the least and most cells."""


class Body(Horizontal):
    """Everything between head and footer; it knows which list has the cursor."""

    def __init__(self, model: BoardModel, source: LiveBoard, config: Config) -> None:
        super().__init__(id="body")
        still = config.still
        self.view = "all"
        self.shown: tuple[str, ...] = ()
        """The panels on the screen."""
        self.paused = False
        self.filtered = False
        self._terms = ""
        """Whether a filter is in force."""
        self.tables = {panel: TaskTable(panel, model, still=still) for panel in PANELS}
        self.problems = Problems(model, config, source)
        self.lists: dict[str, ListView[Any]] = {
            "problems": self.problems,
            "owners": Owners(model, still=still),
            "feed": Feed(model, still=still),
        }
        self.inspector = Inspector(model, source)
        self._beside: dict[str, ListView[Any]] = {
            "owners": Owners(model, side=True),
            "feed": Feed(model, side=True),
        }
        """Lists beside the tables, which keep the cursor."""
        self._card = Card()
        self._panels = Panels(self._places)
        self._model = model
        model.waiting_too_long = config.waiting_too_long
        self._contents = Contents()
        self._laid_out: tuple[Size, dict[str, Place]] = Size(0, 0), {}
        self._key_at = time.monotonic()
        self._age_refresh = AgeFilterRefresh()
        self._focused = ""
        self._pane = False

    def compose(self) -> ComposeResult:
        """Mount all parts; `lay_out` decides which are shown."""
        with self._panels:
            yield from self.tables.values()
            yield from self.lists.values()
            yield from self._beside.values()
        yield self._card
        with Vertical(id="side"):
            yield self.inspector

    def recall(self, remembered: Remembered) -> None:
        """Restore the view of the last session."""
        if remembered.panel in layout.VIEWS:
            self.view = remembered.panel
        self.shown = layout.shown(self.view, self._room(), self.app.size.height)
        for panel, table in self.tables.items():
            table.recall(remembered.sort.get(panel), remembered.columns.get(panel))

    # What is shown

    @property
    def shown_tables(self) -> list[TaskTable]:
        """The tables on the screen."""
        return [self.tables[panel] for panel in self.shown if panel in self.tables]

    @property
    def has_side(self) -> bool:
        """Whether something is shown beside the panels."""
        return bool(self.inspector.display)

    def _room(self) -> int:
        """The columns for the panels; a pane takes some."""
        width = self.app.size.width
        pane = self._pane and width >= _NARROW
        return width - max(_LEAST_PANE, min(_MOST_PANE, width * _PANE // 100)) * pane

    def lay_out(self, *, pane: bool) -> None:
        """Show the parts of the view that fit, and close the lists of hidden tables.

        `pane`: whether to show the task under the cursor beside the tables.
        """
        for part in (*self.tables.values(), *self.lists.values()):
            part.view_changed()
        self._pane = pane
        width, height = self._room(), self.app.size.height
        panels = self.shown = layout.shown(self.view, width, height)
        for name, table in self.tables.items():
            table.in_grid = len(panels) > 1
            table.display = name in panels
            if name in panels and not table.listed:
                table.rebuild()
            elif name not in panels:
                table.close()
        for name, widget in self.lists.items():
            if name in panels and not widget.display:
                widget.open()
            widget.display = name in panels
        beside = layout.beside(self.view, width, height)
        for name, widget in self._beside.items():
            widget.display = name in beside
        self.inspector.display = pane and self.app.size.width >= _NARROW
        self._contents.reset()
        self._panels.refresh(layout=True)

    def _places(self, width: int, height: int) -> dict[str, Place]:
        """The place of each part by the id of its widget."""
        rows = {
            panel: 1 + self.tables[panel].length if panel in self.tables else 0
            for panel in self.shown
        }
        beside = [name for name, widget in self._beside.items() if widget.display]
        rows |= {name: 1 + self._beside[name].length for name in beside}
        rows = self._contents.update(rows, time.monotonic(), self._key_at)
        is_open = "stale" in rows and self.tables["stale"].is_open
        found = layout.places(rows, width, height, is_open=is_open)
        self._laid_out = Size(width, height), found
        ids = {name: table.id for name, table in self.tables.items()}
        ids |= {name: widget.id for name, widget in self.lists.items() if name in self.shown}
        ids |= {name: self._beside[name].id for name in beside}
        return {ids[name] or "": place for name, place in found.items()}

    def _fit_contents(self) -> None:
        """Lay the panels out again if what they contain has changed their places."""
        size, before = self._laid_out
        if len(self.shown) > 1 and size:
            self._places(*size)
            if self._laid_out[1] != before:
                self._panels.refresh(layout=True)

    def folded(self) -> None:
        """Lay out by what is listed now: the operator has opened or closed a fold."""
        self._contents.reset()
        self._fit_contents()

    def note_key(self) -> None:
        """Note that the operator pressed a key: what had changed until then was seen."""
        self._key_at = time.monotonic()
        if self._model.seen():
            for table in self.shown_tables:
                table.repaint_changed()

    def show_card(self, words: str | None, look: str) -> None:
        """Show this text in place of the tables; None shows the tables again."""
        self._card.display = words is not None
        self._panels.display = words is None
        self._card.show(words or "", look)

    def inspect(self, task: Task | None) -> None:
        """Show a task in the pane."""
        if self._pane:
            self.inspector.inspect(task)

    # Where the keys act

    @property
    def table(self) -> TaskTable | None:
        """The table that has the cursor."""
        focused = self.screen.focused
        if isinstance(focused, TaskTable):
            return focused
        return self.tables.get(self._focused) if self._focused in self.shown else None

    @property
    def cursor_list(self) -> TaskTable | ListView[Any] | None:
        """The list or table that has the cursor."""
        found = self.lists.get(self.view)
        return found if found is not None else self.table

    @property
    def cursor_task(self) -> Task | None:
        """The task under the cursor."""
        found = self.cursor_list
        return found.cursor_task if found is not None else None

    @property
    def cursor_id(self) -> str:
        """The id under the cursor, whose task may be gone; empty if there is none."""
        found = self.cursor_list
        return found.cursor_id if found is not None else ""

    def focus_view(self) -> None:
        """Focus a panel of this view, unless one has the focus."""
        panels = self.shown
        if self._focused not in panels:
            urgent = len(panels) == 1 or bool(
                self._model.stale
            )  # stale claims are why people open it
            self.focus_panel(panels[0] if urgent else panels[1])

    def focus_panel(self, panel: str = "") -> None:
        """Focus this panel; without one, the panel that had the focus last."""
        self._focused = panel or self._focused
        widget = self.tables.get(self._focused) or self.lists.get(self._focused)
        if widget is not None:
            self.screen.set_focus(widget)

    def focus_matches(self) -> None:
        """Focus the first panel with rows, if the one with the focus has none."""
        here = self.table
        if here is not None and not here.count:
            there = next((table for table in self.shown_tables if table.count), here)
            self.focus_panel(there.panel)

    def rest_on_stale(self) -> None:
        """Put the cursor of the one table on its first stale line."""
        table = self.tables["all"]
        if table.rest_on("stale"):
            self.inspect(table.cursor_task)

    @on(DescendantFocus)
    def _focus_moved(self, event: DescendantFocus) -> None:
        if isinstance(event.widget, TaskTable):
            self._focused = event.widget.panel

    def selected(self) -> Selection:
        """The marked tasks, else those of the row under the cursor; or why there are none."""
        found = self.cursor_list
        if found is None:
            return [], NO_TASK
        marked = [t for table in self.shown_tables for t in table.marks.values()]
        return (marked, "") if marked and isinstance(found, TaskTable) else found.selected()

    def listed(self) -> list[Task]:
        """Every task in the tables on the screen."""
        return [task for table in self.shown_tables for task in table.all_shown()]

    def renamed(self, names: dict[str, str]) -> None:
        """Note that the operator's act renamed tasks: their rows count as unmoved."""
        for table in self.tables.values():
            table.note_renames(names)

    def unmark(self, tasks: Iterable[Task]) -> None:
        """Unmark these tasks, also under the newer names that their marks have followed to."""
        ids = {task.id for task in tasks}
        for table in self.tables.values():
            marked = [task for task in table.marks.values() if task.id in ids]
            if marked:
                table.mark(marked, on=False)

    def mark_named(self, names: Set[str]) -> None:
        """Mark the listed tasks with these exact names."""
        for table in self.shown_tables if names else ():
            table.mark([task for task in table.all_shown() if task.name in names], on=True)

    def leave_members(self) -> bool:
        """Put the cursor back on the problem whose tasks it is in; False if it is in none."""
        found = self.cursor_list
        return isinstance(found, Problems) and found.go_out()

    def unmark_all(self) -> bool:
        """Unmark all tasks; True if there were marks."""
        marked = [task for table in self.tables.values() for task in table.marks.values()]
        self.unmark(marked)
        return bool(marked)

    # What is listed

    def follow(self, came: Sequence[Task]) -> None:
        """Keep cursors and marks on tasks that have a new name."""
        for table in () if self.paused else self.shown_tables:
            table.follow(came)

    def set_test(self, test: Test | None, terms: str) -> None:
        """Set the filter; `terms` is its text."""
        self.filtered = test is not None
        self._age_refresh.filtered(terms)
        self._terms = terms
        for table in self.tables.values():
            table.test, table.by_reason = test, about_reason(terms)
            if table.listed:
                table.rebuild()
        for widget in (*self.lists.values(), *self._beside.values()):
            widget.set_test(test)

    @property
    def why_incomplete(self) -> str:
        """Why the rows of a filter cannot stand for an act yet; empty if they can."""
        return why_incomplete(len(self._model.last_reasons.unread), self._terms)

    def pause(self, paused: bool) -> None:
        """Freeze every list, or resume."""
        self.paused = paused
        for part in (*self.tables.values(), *self.lists.values(), *self._beside.values()):
            part.pause(paused)

    @property
    def held_back(self) -> int:
        """The number of changes that wait in frozen tables."""
        return sum(table.held_back for table in self.shown_tables)

    # Painting

    def show(self) -> None:
        """Draw what has changed."""
        for table in self.shown_tables:
            table.catch_up()
        self._show_lists()
        self._fit_contents()

    def tick(self) -> None:
        """Update ages, once a second."""
        tables = self.shown_tables
        for table in tables:
            table.tick()
        self._age_refresh.tick(tables)
        self._show_lists()
        self._fit_contents()

    def redraw(self) -> None:
        """Draw every row again: the board is lost or seen again."""
        for part in (*self.tables.values(), *self.lists.values(), *self._beside.values()):
            part.redraw()

    def update_titles(self) -> None:
        """Update the counts in the bands."""
        for table in self.shown_tables:
            table.update_title()

    def _show_lists(self) -> None:
        for widget in (*self.lists.values(), *self._beside.values()):
            if widget.display:
                widget.show()
        if self.inspector.display:
            self.inspector.inspect(self.inspector.shown_task or self.cursor_task)
