"""What each command does on the board screen: one method for each that is more than a step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dibs_tui.acting.operator import Operator
from dibs_tui.commands import BY_ID
from dibs_tui.layout import VIEWS
from dibs_tui.model.panels import PANELS
from dibs_tui.taking import Taking
from dibs_tui.widgets.filterbar import FilterBar
from dibs_tui.widgets.listing import Shown

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.screens.board import BoardScreen


class Movable(Protocol):
    """A list with a cursor."""

    def step(self, by: int) -> None: ...
    def page(self, by: int) -> None: ...
    def go(self, line: int) -> None: ...


class Hand:
    """Runs the commands of the registry on one board screen."""

    def __init__(self, screen: BoardScreen) -> None:
        self.screen = screen
        self.operator = Operator(screen)
        self._taking = Taking(self)

    # Commands

    def do(self, command: str) -> None:
        """Run one command; a word says why where it cannot be."""
        known = BY_ID[command]
        if command.startswith("panel-"):
            self.view(command.removeprefix("panel-"))
            return
        if command in _MOVES:
            why = self._move(*_MOVES[command])
        elif known.destructive:
            why = self.operator.start(command)
        else:
            name = "_" + command.replace("-", "_")
            where = self if hasattr(self, name) else self._taking
            method: Callable[[], str | None] = getattr(where, name)
            why = method()
        self.screen.tell_panels()
        if why:
            self.screen.notify(f"{known.title}: {why}", markup=False, timeout=3)

    def view(self, view: str) -> None:
        """Show another view."""
        screen = self.screen
        screen.view = view
        screen.dibs.remember(panel=view)
        screen.lay_out()

    def _list(self) -> Movable | None:
        screen = self.screen
        found = screen.parts.of(screen.view)
        return found if found is not None else screen.table

    def _move(self, how: str, by: int) -> str | None:
        found = self._list()
        if found is None:
            return "there is no list here"
        getattr(found, how)(by)
        return None

    def _next_panel(self) -> None:
        self._turn(1)

    def _previous_panel(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        screen = self.screen
        shown = screen.shown
        if len(shown) > 1:
            at = shown.index(screen.table.panel) if screen.table else 0
            screen.focus_panel(shown[(at + by) % len(shown)])
        else:
            self.view(VIEWS[(VIEWS.index(screen.view) + by) % len(VIEWS)])

    def task(self) -> Task | None:
        """The task under the cursor of whatever list is shown."""
        screen = self.screen
        found = screen.parts.of(screen.view)
        return getattr(found or screen.table, "cursor_task", None)

    def inspect(self, task: Task, tab: str = "") -> None:
        """Show a task whole."""
        from dibs_tui.screens.inspect import InspectScreen

        screen = InspectScreen(task, self.screen.model, tab, self.screen.dibs.commands)
        self.screen.app.push_screen(screen)

    def _inspect(self) -> str | None:
        found = self.screen.parts.of(self.screen.view)
        if found is not None and hasattr(found, "enter"):
            found.enter()
            return None
        task = self.task()
        if task is None:
            return "there is no task under the cursor"
        self.inspect(task)  # at once: a message would let the next key overtake it
        return None

    def _timeline(self) -> str | None:
        task = self.task()
        if task is None:
            return "there is no task under the cursor"
        self.inspect(task, "timeline")
        return None

    def _pane(self) -> str | None:
        screen = self.screen
        if screen.size.width < 80:
            return "the terminal is narrower than 80 columns; Enter shows the task whole"
        screen.dibs.remember(pane=not screen.dibs.pane)
        screen.lay_out()
        screen.parts.inspect(self.task())
        return None

    def _filter(self) -> None:
        screen = self.screen
        screen.add_class("-filter")
        screen.set_focus(screen.query_one(FilterBar))

    def _next(self) -> str | None:
        return self._round(1)

    def _previous(self) -> str | None:
        return self._round(-1)

    def _round(self, by: int) -> str | None:
        table = self.screen.table
        if table is None or not table.length:
            return "nothing matches"
        table.go((table.cursor_line + by) % table.length)
        return None

    def _sort(self) -> str | None:
        from dibs_tui.screens.choose import ChooseSort

        table = self.screen.table
        if table is None:
            return "this view has an order of its own"
        self.screen.app.push_screen(
            ChooseSort(table), lambda column: self.sort_by(table.panel, column) if column else None
        )
        return None

    def sort_by(self, panel: str, column: str) -> None:
        """Sort by a column; by the same one again, the other way round."""
        table = self.screen.tables[panel]
        table.order(column, descending=not table.descending if table.sort == column else False)
        self.screen.dibs.remember_table(table)
        self.screen.show()

    def _invert(self) -> str | None:
        table = self.screen.table
        if table is None:
            return "this view has an order of its own"
        self.sort_by(table.panel, table.sort)
        return None

    def _columns(self) -> str | None:
        from dibs_tui.screens.choose import ChooseColumns

        table = self.screen.table
        if table is None:
            return "this view has columns of its own"
        self.screen.app.push_screen(
            ChooseColumns(table), lambda keys: self._chosen(table.panel, keys)
        )
        return None

    def _chosen(self, panel: str, keys: tuple[str, ...] | None) -> None:
        if keys:
            table = self.screen.tables[panel]
            table.recall(None, keys)
            self.screen.dibs.remember_table(table)
            table.refresh()

    def _pause(self) -> None:
        screen = self.screen
        screen.paused = not screen.paused
        for part in (*screen.tables.values(), *screen.query(Shown)):
            part.pause(screen.paused)
        screen.show()

    def _mark(self) -> str | None:
        table = self.screen.table
        if table is None or table.cursor_task is None:
            return "there is no task under the cursor"
        table.mark([table.cursor_task])
        table.step(1)
        return None

    def _range(self) -> str | None:
        table = self.screen.table
        if table is None or not table.mark_range():
            return "mark one end with Space first"
        return None

    def _mark_all(self) -> str | None:
        table = self.screen.table
        if table is None or not table.length:
            return "nothing is listed here"
        table.mark(table.all_shown(), on=True)
        return None

    def _back(self) -> None:
        screen = self.screen
        bar = screen.query_one(FilterBar)
        if screen.focused is bar or screen.filter_text:
            bar.value = ""
            screen.set_filter("")
            screen.remove_class("-filter")
            screen.focus_panel(screen.shown[0] if screen.table is None else screen.table.panel)
        elif any(table.marks for table in screen.tables.values()):
            for table in screen.tables.values():
                table.mark(list(table.marks.values()), on=False)
        elif screen.model.aftermath.back:
            screen.model.aftermath.clear()
        elif screen.table is not None:
            screen.table.leave()
        screen.show()

    def _compact(self) -> None:
        self.screen.toggle_class("-compact")
        self.screen.dibs.remember(compact=self.screen.has_class("-compact"))

    def _wide(self) -> str | None:
        table = self.screen.table
        if table is None:
            return "this view has columns of its own"
        everything = tuple(key for key in PANELS["claimed"].columns if key not in table.columns)
        table.recall(
            None, (*table.columns, *everything) if everything else PANELS[table.panel].columns
        )
        table.refresh()
        return None

    def _theme(self) -> str:
        return self.screen.dibs.next_theme()

    def _mute(self) -> str:
        return self.screen.dibs.toggle_mute()

    def _unlock(self) -> str | None:
        from dibs_tui.screens.unlock import UnlockScreen

        if not self.screen.dibs.read_only:
            return "it is not read-only"
        self.screen.app.push_screen(UnlockScreen("unlock", self.screen.dibs.unlock))
        return None

    def _brake(self) -> str | None:
        from dibs_tui.screens.unlock import UnlockScreen

        brake = self.screen.model.brake
        if not brake.why(time.monotonic()):
            return "it is not on"
        self.screen.app.push_screen(UnlockScreen("release", brake.unlock))
        return None

    def _wall(self) -> None:
        from dibs_tui.screens.wall import WallScreen

        self.screen.app.push_screen(WallScreen(self.screen.model))

    def _suspend(self) -> None:
        self.screen.app.action_suspend_process()

    def _refresh(self) -> None:
        self.screen.dibs.redraw()
        self.screen.dibs.reader.refresh()

    def _commands(self) -> None:
        self.screen.app.action_command_palette()

    def _help(self) -> None:
        from dibs_tui.screens.help import HelpScreen

        self.screen.app.push_screen(HelpScreen(self.screen.dibs.commands))

    def _quit(self) -> None:
        self.screen.app.exit()


_MOVES = {
    "down": ("step", 1),
    "up": ("step", -1),
    "page-down": ("page", 1),
    "page-up": ("page", -1),
    "top": ("go", 0),
    "bottom": ("go", -1),
}
