"""The commands of the list that has the cursor: movement, sorting, columns and marks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs_tui.model.panels import PANELS
from dibs_tui.widgets.window import NO_TASK

if TYPE_CHECKING:
    from textual.app import App

    from dibs_tui.screens.command_runner import Handler
    from dibs_tui.widgets.body import Body
    from dibs_tui.widgets.table import TaskTable
    from dibs_tui.widgets.window import Window

_OWN_COLUMNS = "this view has fixed columns"
_OWN_ORDER = "this view has a fixed order"


class ListCommands:
    """Answers the keys that move in a list and change how it is shown."""

    def __init__(self, app: App[Any], body: Body, remember: Callable[[TaskTable], object]) -> None:
        """`remember` saves a table's order and columns."""
        self._app = app
        self._body = body
        self._remember = remember
        handlers: dict[str, Handler] = {
            "down": lambda: self._move(lambda found: found.step(1)),
            "up": lambda: self._move(lambda found: found.step(-1)),
            "page-down": lambda: self._move(lambda found: found.page(1)),
            "page-up": lambda: self._move(lambda found: found.page(-1)),
            "top": lambda: self._move(lambda found: found.go(0)),
            "bottom": lambda: self._move(lambda found: found.go(-1)),
            "next": lambda: self._round(1),
            "previous": lambda: self._round(-1),
            "sort": self._sort,
            "invert": self._invert,
            "columns": self._columns,
            "wide": self._wide,
            "open": partial(self._turn_fold, to_open=True),
            "close": partial(self._turn_fold, to_open=False),
            "mark": self._mark,
            "range": self._mark_range,
            "mark-all": self._mark_all,
        }
        self.handlers = {
            command: partial(self._run, handler) for command, handler in handlers.items()
        }

    def _run(self, handler: Handler) -> str | None:
        """Run a handler, then update the titles of the lists."""
        words = handler()
        self._body.update_titles()
        return words

    def sort_by(self, panel: str, column: str) -> None:
        """Sort by a column; the same column again reverses the order."""
        table = self._body.tables[panel]
        table.order(column, descending=not table.descending if table.sort == column else False)
        self._remember(table)
        self._body.show()

    def _move(self, how: Callable[[Window], None]) -> str | None:
        found = self._body.cursor_list
        if found is None:
            return "no list here"
        how(found)
        return None

    def _round(self, by: int) -> str | None:
        table = self._body.table
        if table is None or not table.length:
            return "nothing matches"
        table.go((table.cursor_line + by) % table.length)
        return None

    def _sort(self) -> str | None:
        from dibs_tui.screens.choose import ChooseSort

        table = self._body.table
        if table is None:
            return _OWN_ORDER
        self._app.push_screen(
            ChooseSort(table), lambda column: self.sort_by(table.panel, column) if column else None
        )
        return None

    def _invert(self) -> str | None:
        table = self._body.table
        if table is None:
            return _OWN_ORDER
        self.sort_by(table.panel, table.sort)
        return None

    def _columns(self) -> str | None:
        from dibs_tui.screens.choose import ChooseColumns

        table = self._body.table
        if table is None:
            return _OWN_COLUMNS
        self._app.push_screen(
            ChooseColumns(table), lambda keys: self._show_columns(table, keys) if keys else None
        )
        return None

    def _show_columns(self, table: TaskTable, keys: tuple[str, ...]) -> None:
        table.recall(None, keys)
        self._remember(table)
        table.refresh()

    def _wide(self) -> str | None:
        table = self._body.table
        if table is None:
            return _OWN_COLUMNS
        spec = PANELS[table.panel]
        more = tuple(key for key in (*spec.columns, *spec.more) if key not in table.columns)
        table.recall(None, (*table.columns, *more) if more else spec.columns)
        table.refresh()
        return None

    def _turn_fold(self, *, to_open: bool) -> str | None:
        table = self._body.table
        if table is None or not table.turn_fold(to_open=to_open):
            return "no fold here"
        self._body.folded()
        return None

    def _mark(self) -> str | None:
        table = self._body.table
        tasks = table.cursor_tasks if table is not None else []
        if table is None or not tasks:
            return NO_TASK
        table.mark(tasks, on=not all(task.name in table.marks for task in tasks))
        table.step(1)
        return None

    def _mark_range(self) -> str | None:
        table = self._body.table
        if table is None or not table.mark_range():
            return "mark one end with Space first"
        return None

    def _mark_all(self) -> str | None:
        table = self._body.table
        if table is None or not table.length:
            return "no rows here"
        if why := self._body.why_incomplete:
            return why
        table.mark(table.all_shown(), on=True)
        return None
