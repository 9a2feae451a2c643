"""The main screen: it shows what the watch reports, and answers the keys."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.events import Key, Resize
from textual.screen import Screen
from textual.widgets import Input, Static

from dibs import BadName
from dibs.board import locate
from dibs_tui.acting.act_controller import ActController
from dibs_tui.lifecycle.output.row_compositor import RowCompositor
from dibs_tui.model.cards import card_of, first_command, trouble_of
from dibs_tui.model.commands import BY_ID, spelled
from dibs_tui.model.filter_terms import unfinished
from dibs_tui.model.layout import VIEWS
from dibs_tui.model.picked_claims import PickedClaims
from dibs_tui.screens.app_commands import AppCommands
from dibs_tui.screens.board_frame import LOW, BoardFrame
from dibs_tui.screens.board_keys import BoardKeys
from dibs_tui.screens.clipboard import ClipboardCommands
from dibs_tui.screens.command_runner import CommandRunner, Handler
from dibs_tui.screens.dashboard import Dashboard
from dibs_tui.screens.dialogs import Dialogs
from dibs_tui.screens.export_rows import ExportRows
from dibs_tui.screens.list_commands import ListCommands
from dibs_tui.screens.saved_filters import SavedFilters
from dibs_tui.settings.config import NOT_LOCAL
from dibs_tui.text.safe import clean
from dibs_tui.widgets.body import Body
from dibs_tui.widgets.filterbar import FilterBar
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import (
    AgesRequested,
    BoardChanged,
    CursorMoved,
    FilterRequested,
    FilterTyped,
    InspectRequested,
    RunCommand,
    SortRequested,
)
from dibs_tui.widgets.problems import Problems
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.toasts import Notifying, Toast
from dibs_tui.widgets.usual_check import UsualCheck
from dibs_tui.widgets.window import NO_TASK

if TYPE_CHECKING:
    from dibs import Delta, Task
    from dibs_tui.screens.inspect import InspectScreen

_FIRST = 0.3
"""Seconds for which applying deltas may delay the first frame."""
_TURN = 0.02
"""Seconds for which deltas are applied before keys have their turn."""
_REST = 0.2
"""Seconds between two frames while many deltas are applied."""
_PANE = 80
"""Columns below which the pane has no room."""


class _Drilled(NamedTuple):
    """The row of a list from which Enter led to a filter."""

    shown: ListView[Any]
    key: str
    view: str
    """The view that the filter was set in."""
    terms: str


class BoardScreen(Screen[None]):
    """Shows one board; it applies the deltas to the model, and the widgets show the model."""

    CSS_PATH = "board.tcss"
    AUTO_FOCUS = None

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._dashboard = dashboard
        self._source = dashboard.source
        self._model = dashboard.model
        self.body = Body(self._model, self._source, dashboard.config)
        self.filter_text = ""
        self._wrong = ""
        """What is wrong with the filter that is being typed."""
        self._picked = PickedClaims()
        self._usual = UsualCheck(self._model)
        self._drilled: _Drilled | None = None
        """Where Esc leads back to."""
        self._opened = False
        """Whether the board was seen in full, and the view was chosen for what is stale."""
        self._troubled = False
        self._shown_health: tuple[object, ...] = ()
        self._shown_at = 0.0
        self._unshown = False
        """Whether deltas were applied that no frame shows yet."""
        self._ageless: set[str] = set()
        """The tasks that need attention whose ages were asked for and not given yet."""
        self._shown_polling = ""
        app, operator, config = self.app, dashboard.operator, dashboard.config
        self.acts = ActController(
            self,
            Dialogs(
                app, operator, self._model, dashboard.commands, self._source.refresh,
                limit=config.bulk_limit,
            ),
            self._model,
            dashboard.janitor,
            operator.keys,
            config.rights,
        )  # fmt: skip
        self.frame = BoardFrame(dashboard, self.body, BoardKeys(dashboard, self.body, self.acts))
        self._trouble = ""
        """Why the board cannot be read, as a notice shows it."""
        self._list_commands = ListCommands(app, self.body, dashboard.remember_table)
        clipboard = ClipboardCommands(
            app, self._model, locate(operator.path), lambda: self.body.cursor_task,
            self.acts.why_no_copy,
        )  # fmt: skip
        self._no_files = "" if config.local else NOT_LOCAL
        export = ExportRows(
            app, self.body, self._model, self._source.label, lambda: self.filter_text,
            self._no_files,
        )  # fmt: skip
        self.saved_filters = SavedFilters(
            app, dashboard, lambda: self.filter_text, self._show_saved
        )
        self.commands = CommandRunner(
            {
                **self._view_commands(),
                **self._list_commands.handlers,
                **self.acts.handlers,
                **clipboard.handlers,
                "copy": partial(self._copy, clipboard.handlers["copy"]),
                **self.saved_filters.handlers,
                **export.handlers,
                **AppCommands(app, dashboard).handlers,
            },
            partial(self.notify, markup=False, timeout=3),
            operator.keys,
        )

    def _view_commands(self) -> dict[str, Handler]:
        """The commands that change what this screen shows."""
        return {
            **{f"panel-{view}": partial(self.show_view, view) for view in VIEWS},
            "next-panel": partial(self._turn, 1),
            "previous-panel": partial(self._turn, -1),
            "inspect": self._inspect_cursor,
            "timeline": self._inspect_timeline,
            "messages": self._show_messages,
            "pane": self._toggle_pane,
            "filter": self._open_filter,
            "freeze": self._toggle_freeze,
            "back": self._back,
            "compact": self._toggle_compact,
        }

    def compose(self) -> ComposeResult:
        """All parts; the view and the size decide which of them are shown."""
        dashboard = self._dashboard
        self.body.recall(dashboard.remembered)
        self.take_all(_FIRST)
        self._frame(update=False)
        frame = self.frame
        yield frame.title
        yield frame.band
        yield frame.tabs
        yield frame.notice
        yield self.body
        with Horizontal(id="last"):
            yield Static(" /", id="prompt", markup=False)
            yield FilterBar(self._model)
            yield frame.status
        yield frame.footer

    def on_mount(self) -> None:
        """Bind the keys, restore the remembered view, and start the timer."""
        for command in self._dashboard.commands:
            for key in command.keys:  # with priority, so that keys run in the order they came
                self._bindings.bind(
                    key, f"do('{command.id}')", command.title, show=False, priority=True
                )
        self._bindings.bind("enter", "keep_filter", show=False, priority=True)
        self.take_all(_TURN)
        self._lay_out()
        self.show()
        if self._dashboard.terms:
            self.post_message(FilterRequested(self._dashboard.terms))
        self.set_interval(1.0, self.tick)

    # The layout

    def _lay_out(self) -> None:
        """Show the panels of the view that fit."""
        self.body.lay_out(pane=self._dashboard.pane)
        self.set_class(self.body.has_side, "-side")
        self._frame()
        self.body.focus_view()
        self.call_after_refresh(self._laid_out)

    def _frame(self, *, update: bool = True) -> None:
        """Set the classes for the layout; `update` is False before the widgets exist."""
        panels = self.body.shown
        self.set_class(len(panels) > 1, "-full", update=update)
        self.set_class(self.app.size.height < LOW, "-low", update=update)
        self.frame.compact = self.has_class("-compact")
        self.frame.lay_out(*self.app.size)

    def _laid_out(self) -> None:
        self.body.inspect(self.body.cursor_task)
        self.show()

    def on_resize(self, event: Resize) -> None:
        """Lay out the panels for the new size."""
        if self.is_mounted:
            self._lay_out()

    # The data

    def take_all(self, seconds: float) -> bool:
        """Apply deltas for about `seconds`; returns whether they hold more than heartbeats.

        The rest waits until other messages, above all keys, have had their turn.
        """
        source, news, until = self._source, False, time.monotonic() + seconds
        while (delta := source.take()) is not None:
            news = news or delta.news or not self._model.complete
            self._take(delta)
            if delta.added and not delta.more:
                self.call_after_refresh(source.drawn)
            if time.monotonic() > until:
                break
        if source.waiting:
            self.app.post_message(BoardChanged())
        return news

    def _take(self, delta: Delta) -> None:
        """Apply one delta."""
        self._model.apply(delta)
        self.body.follow(delta.added)
        self._dashboard.alerts.note(delta, self._model)

    @property
    def covered(self) -> bool:
        """Whether another screen hides this one; a dialog does not."""
        stack = self.app.screen_stack
        above = stack[stack.index(self) + 1 :] if self in stack else []
        return any(not screen.is_modal for screen in above)

    def show_news(self) -> None:
        """Show the deltas at once, or a change in the health of the watch."""
        before, self._shown_health = self._shown_health, self._source.health.kind
        self._model.note_health(self._source.health, time.monotonic())
        self._unshown = self.take_all(_TURN) or self._unshown or before != self._shown_health
        if not self._opened and self._model.complete:
            self._opened = True
            self._show_stale_first()
            self._ask_ages()
        if self._source.waiting and time.monotonic() < self._shown_at + _REST:
            return
        news, self._unshown = self._unshown, False
        if news:  # in the frame that shows the stale rows: a key must not act on another panel
            self._focus_stale()
        if news and not self.covered:
            self.show()

    def on_screen_resume(self) -> None:
        """Update: what happened while it was hidden was not shown."""
        if self.is_mounted:
            self.show()

    def show(self) -> None:
        """Update all parts."""
        self._shown_at = time.monotonic()
        self.body.show()
        self._show_notices()
        self._show_frame()

    def tick(self) -> None:
        """Once a second: update the ages, notice a stalled storage."""
        self._model.note_health(self._source.health, time.monotonic())
        self._model.tick()
        self._watch()
        self._show_notices()
        if self.covered:  # updated when it is shown again
            return
        self.body.tick()
        self._show_frame()

    def _watch(self) -> None:
        """Run the brake, the alerts, the janitor and what learns, whatever is shown."""
        dashboard, model, health, now = (
            self._dashboard, self._model, self._source.health, time.monotonic(),
        )  # fmt: skip
        if model.complete:
            model.brake.note_health(health, now)
        model.report_unfinished_acts()
        dashboard.alerts.tick(health, quiet=dashboard.walled)
        why_not = self.acts.why_not(BY_ID["reaping"]) or model.brake.why(now)
        dashboard.janitor.tick(model, why_not)
        if health.fresh:  # else no board was seen yet
            self._usual.ask(self._source.open_board)
        self._ask_ages()
        self._focus_stale()

    def _ask_ages(self) -> None:
        """Ask once since when each task needs attention: a table asks only for what it draws."""
        missing = {*self._model.ageless()}
        if new := missing - self._ageless:
            self._source.ask_since(new)
        self._ageless = missing

    def _focus_stale(self) -> None:
        """Put the cursor on the first stale claim, until the user presses a key."""
        if self._dashboard.operator.keys.used or self.covered:
            return
        if "all" in self.body.shown:  # questions stand above the stale claims
            self.body.rest_on_stale()
        elif self._model.stale and "stale" in self.body.shown:
            self.body.focus_panel("stale")

    def _show_stale_first(self) -> None:
        """Show the stale view once the board is seen in full, unless stale rows are shown anyway.

        The remembered view stays remembered. A user who pressed a key keeps the current view.
        """
        everything, shown = self.body.tables["all"], self.body.shown
        first = everything.sort == "state" and not everything.descending
        if "stale" in shown or (shown == ("all",) and first) or self.body.view == "problems":
            return
        if self._dashboard.terms or self._dashboard.operator.keys.used:
            return
        if self._model.stale:
            self.body.view = "stale"
            self._lay_out()

    def _show_frame(self) -> None:
        """Update everything around the panels."""
        self.frame.show(self.filter_text, self._wrong)

    def show_status(self) -> None:
        """Update what was said, and what is locked."""
        if self.is_mounted:
            self.set_class(bool(self._wrong), "-wrong")
            self.frame.show_status(self.filter_text, self._wrong)
            self.frame.show_keys()

    @on(AgesRequested)
    def _ages_wanted(self, event: AgesRequested) -> None:
        self._source.ask_since(event.names)

    # Notices above the tables, and the card in place of them

    def _show_notices(self) -> None:
        source, model = self._source, self._model
        trouble = trouble_of(source.health, source.label, time.monotonic())
        card = card_of(model, source.health, trouble, source.label, self._key("quit"))
        if self._troubled != bool(trouble):
            self._troubled = bool(trouble)
            self.set_class(self._troubled, "-troubled")
            # At once: a row is drawn again when its age reads differently, which may take an hour.
            self.body.redraw()
            self.frame.dim(self._troubled)
        if card and not trouble and self.body.view == "problems" and self.body.problems.total():
            card = None  # a board without tasks has them too: an event that no hook received
        if card is not None and self.has_class("-low"):
            card = card.replace("\n\n", "\n")
        self.body.show_card(card, "bold $state-failed" if trouble else "bold")
        self._trouble = trouble if card is None else ""  # the card shows it
        self.frame.show_notices(self._trouble)
        self._notify_polling(source.health.why_polling)

    def _notify_polling(self, why: str) -> None:
        """Show each reason for polling once; the badge stays."""
        if why and why != self._shown_polling:
            self.notify(f"polling: {clean(why)}", markup=False, severity="warning", timeout=6)
        self._shown_polling = why or self._shown_polling

    def _key(self, command: str) -> str:
        """The user's key for a command."""
        return spelled(next(c.keys[0] for c in self._dashboard.commands if c.id == command))

    # The filter

    def set_filter(self, text: str) -> str:
        """Show only rows that match; returns what is wrong with the terms, or ""."""
        if text.strip() == self.filter_text:
            return ""
        try:
            test = self._picked.test(text)
        except BadName as error:
            return clean(str(error))
        self.filter_text = text.strip()
        self.body.set_test(test, text)
        self.show()
        return ""

    @on(FilterTyped)
    def _filter_typed(self, event: FilterTyped) -> None:
        error = self.set_filter(event.terms)
        self._wrong = "" if unfinished(event.terms) else error
        self.show_status()

    @on(Input.Submitted, "#filter")
    def _filter_kept(self, event: Input.Submitted) -> None:
        error = self.set_filter(event.value)
        if error:
            self._wrong = error
            self.show_status()
            self.query_one(FilterBar).focus()
            return
        self._close_filter()
        self.body.focus_matches()
        if self.filter_text and not self._picked.words & set(self.filter_text.split()):
            self._dashboard.remember_filter(self.filter_text)

    def _show_saved(self, line: str) -> None:
        self.post_message(FilterRequested(line))

    def _close_filter(self) -> None:
        """Leave the input; the status row shows the terms that are in force."""
        self.frame.filtering = False
        self.remove_class("-filter")
        self.show_status()

    def action_keep_filter(self) -> None:
        """Leave the filter at once: keys typed right after Enter are commands, not text."""
        bar = self.query_one(FilterBar)
        bar.call_later(bar.action_submit)
        self.body.focus_panel()

    @on(FilterRequested)
    def _filter_asked(self, event: FilterRequested) -> None:
        drilled = self.body.lists.get(self.body.view) if event.view else None
        if event.view:
            self.body.view = event.view
            self._lay_out()
        if event.picked:
            self._picked.name(event.terms, event.picked)
            self.query_one(FilterBar).picked = self._picked.words
            self.set_filter("")
        self.query_one(FilterBar).value = event.terms
        self.set_filter(event.terms)
        self._close_filter()
        self._drilled = None
        if drilled is not None:
            self._drilled = _Drilled(drilled, drilled.cursor_key, event.view, self.filter_text)

    def _go_back_to_list(self) -> bool:
        """Show the list again from which Enter led to this filter; False if none did."""
        before, self._drilled = self._drilled, None
        if before is None or (before.view, before.terms) != (self.body.view, self.filter_text):
            return False
        self.set_filter("")
        self.body.view = before.shown.id or ""
        self._lay_out()
        self.show()
        before.shown.go_to(before.key)
        return True

    # Commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Treat keys as text while the filter has the focus."""
        if action == "keep_filter":
            return isinstance(self.focused, FilterBar)
        return action != "do" or not isinstance(self.focused, Input) or parameters == ("back",)

    def on_key(self, event: Key) -> None:
        """Say that a key has no command: silence looks like a screen that hangs."""
        if isinstance(self.focused, Input) or self._dashboard.operator.keys.together:
            return
        key = clean(event.character if event.is_printable and event.character else event.key, 20)
        words = f"{key}: no command has this key; {self._key('help')} lists all"
        self.notify(words, markup=False, timeout=3)

    def action_do(self, command: str) -> None:
        """Run a command of the registry."""
        self.body.note_key()
        self.commands.run(command)

    @on(RunCommand)
    def _run_command(self, event: RunCommand) -> None:
        self.commands.run(event.command)

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        if event.by_hand:
            self.acts.chosen()
        self.body.inspect(event.task)
        self.show_status()

    @on(InspectRequested)
    def _inspected(self, event: InspectRequested) -> None:
        self._inspect(event.task)

    @on(SortRequested)
    def _sort_asked(self, event: SortRequested) -> None:
        self._list_commands.sort_by(event.panel, event.column)

    def show_view(self, view: str) -> None:
        """Show another view."""
        self.body.view = view
        self._dashboard.remember(panel=view)
        self._lay_out()

    def _turn(self, by: int) -> None:
        body, shown = self.body, self.body.shown
        found = body.cursor_list
        if isinstance(found, Problems) and (found.go_in() if by > 0 else found.go_out()):
            self.show_status()
        elif len(shown) > 1:
            at = shown.index(body.table.panel) if body.table else 0
            body.focus_panel(shown[(at + by) % len(shown)])
        else:
            self.show_view(VIEWS[(VIEWS.index(body.view) + by) % len(VIEWS)])

    def inspect_screen(self, task: Task, tab: str = "") -> InspectScreen:
        """The full view of a task."""
        from dibs_tui.screens.inspect import InspectScreen

        table = self.body.table
        listed = tuple(table.all_shown()) if table is not None else ()
        return InspectScreen(
            task, self._model, self._source, tab, self._dashboard.commands, listed,
            run=self.commands.run, act=self.acts.start_on, why_no_copy=self.acts.why_no_copy,
            can_undo=lambda: self.acts.can_undo,
            pasted=lambda: self._dashboard.operator.keys.together,
            no_files=self._no_files,
        )  # fmt: skip

    def _inspect(self, task: Task, tab: str = "") -> None:
        self.app.push_screen(self.inspect_screen(task, tab))

    def _inspect_cursor(self) -> str | None:
        found = self.body.cursor_list
        if isinstance(found, ListView):
            found.enter()
            return None
        if isinstance(found, TaskTable) and found.cursor_fold is not None:
            found.turn_fold()
            self.body.folded()
            return None
        task = self.body.cursor_task
        if task is None:
            return NO_TASK
        self._inspect(task)  # not by a message: the next key would come first
        return None

    def _inspect_timeline(self) -> str | None:
        task = self.body.cursor_task
        if task is None:
            return NO_TASK
        self._inspect(task, "timeline")
        return None

    def _show_messages(self) -> None:
        from dibs_tui.screens.read_messages import MessagesScreen

        said = self.app.said if isinstance(self.app, Notifying) else ()
        self.app.push_screen(MessagesScreen(self.frame.notices, said, self.frame.fact))

    def _copy(self, copy: Handler) -> str | None:
        """Copy the exact name; on an empty board, the command that adds a task."""
        if self._model.tasks or not self._model.complete:
            return copy()
        command = first_command(self._source.label)
        self.app.copy_to_clipboard(command)
        return command

    def _toggle_pane(self) -> str | None:
        if self.size.width < _PANE:
            return "the terminal is narrower than 80 columns; Enter opens the full view"
        self._dashboard.remember(pane=not self._dashboard.pane)
        self._lay_out()
        self.body.inspect(self.body.cursor_task)
        return None

    def _open_filter(self) -> None:
        bar = self.query_one(FilterBar)
        bar.history = self._dashboard.remembered.history
        self.frame.filtering = True
        self.add_class("-filter")
        self.set_focus(bar)
        self.show_status()

    def _toggle_freeze(self) -> None:
        self.body.pause(not self.body.paused)
        self.show()

    def _back(self) -> None:
        bar, body = self.query_one(FilterBar), self.body
        if self.focused is bar or self.filter_text:
            bar.value = ""
            self._wrong = ""
            self._close_filter()
            if self._go_back_to_list():
                return
            self.set_filter("")
            body.focus_panel(body.shown[0] if body.table is None else body.table.panel)
        elif body.leave_members() or body.unmark_all():
            pass
        elif gone := self._model.gone():
            self._model.hosts_gone.see(gone)
        elif self._model.late_holders.back:
            self._model.late_holders.clear()
        elif self.frame.hide_hint():
            pass
        elif body.table is not None:
            body.table.leave()
        self.show()

    def _toggle_compact(self) -> None:
        self.toggle_class("-compact")
        self._lay_out()
        self._dashboard.remember(compact=self.has_class("-compact"))

    # What acts need of the screen

    @property
    def behind(self) -> bool:
        """Whether the terminal still shows older rows."""
        return self._dashboard.picture.behind

    @property
    def cursor_id(self) -> str:
        """The id under the cursor, even of a task that is gone; empty if there is none."""
        return self.body.cursor_id

    def why_locked(self) -> str:
        """Why every act is locked now; empty if none is."""
        if self._dashboard.read_only:
            return "read-only; run `unlock` from the palette (:)"
        if self._source.health.why_read_only:
            return f"read-only: {self._source.health.why_read_only}"
        return "locked while the board cannot be read" if self._troubled else ""

    def selected(self) -> tuple[list[Task], str]:
        """The marked tasks or those of the row under the cursor; or why there are none."""
        return self.body.selected()

    def listed(self) -> list[Task]:
        """Every task that the shown tables list."""
        return self.body.listed()

    def renamed(self, names: dict[str, str]) -> None:
        """Keep rows in place whose tasks an act from here renamed, by old and new name."""
        self.body.renamed(names)

    def acted(self, done: Sequence[Task], left: Set[str]) -> None:
        """Unmark the tasks that were acted on, mark those that were not, and refresh."""
        self.body.unmark(done)
        self.body.mark_named(left)
        self._source.refresh()
        self.show()

    def say(self, words: str) -> None:
        """Show a message until the next key."""
        self.notify(words, markup=False)

    def say_done(self, words: str, how: str, *, undo: bool) -> None:
        """Show the result of an act until the next key."""
        hint = (self._key("undo"), "undo") if undo else ("", "")
        if isinstance(self.app, Notifying):
            self.app.say(Toast(words, more=how, hint=hint))

    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]
