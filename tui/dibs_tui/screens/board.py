"""The board: head, tables, what stands beside them, filter and footer."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus, Resize
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from dibs import BadName
from dibs_tui import layout
from dibs_tui.hand import Hand
from dibs_tui.messages import (
    AgesWanted,
    CursorMoved,
    FilterAsked,
    FilterTyped,
    Inspected,
    RunCommand,
    SortAsked,
)
from dibs_tui.model.board import BoardModel
from dibs_tui.model.panels import PANELS
from dibs_tui.model.picked import Picked
from dibs_tui.screens.aging import Aging
from dibs_tui.screens.notices import Notices
from dibs_tui.screens.own import Own
from dibs_tui.screens.parts import Parts
from dibs_tui.text import clean
from dibs_tui.widgets.banner import Banner
from dibs_tui.widgets.filterbar import FilterBar
from dibs_tui.widgets.footer import Footer
from dibs_tui.widgets.head import Head
from dibs_tui.widgets.panel import Panel
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.tabs import Tabs
from dibs_tui.widgets.toasts import Toasts

if TYPE_CHECKING:
    from dibs_tui.model.seen import Seen

_UPRIGHT = ("all", "stale", "claimed")
_LOW = 12
"""Lines; in fewer of them the frame and most of the head give way to rows."""
_BOTTOM = ("available", "failed", "done", "locks")


class BoardScreen(Own, Screen[None]):
    """Everything about one board; it owns the state, the widgets only show it."""

    CSS_PATH = "board.tcss"
    AUTO_FOCUS = None

    def __init__(self, model: BoardModel) -> None:
        super().__init__()
        self.model = model
        self.view = "all"
        self.paused = False
        self.filter_text = ""
        self.parts = Parts(self)
        self.notices = Notices(self)
        self.aging = Aging()
        self.hand = Hand(self)
        self.tables: dict[str, TaskTable] = {}
        self._picked = Picked()
        self._focused = ""
        self._opened = False
        """Whether the whole board was seen, and the view is where something is stale."""
        self._told: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """All parts; which of them are shown is decided by the view and the room."""
        app = self.dibs
        still = app.config.still
        self.tables = {panel: TaskTable(panel, self.model, still=still) for panel in PANELS}
        self.parts.remember()
        self.take_all()
        self._frame(self.shown, update=False)
        yield Head(app.reader.path, app.where, self.model, read_only=app.read_only)
        yield Tabs(self.model)
        yield Banner()
        with Horizontal(id="body"):
            with Vertical(id="panels"):
                for panel in _UPRIGHT:
                    yield Panel(self.tables[panel])
                with Horizontal(id="bottom"):
                    for panel in _BOTTOM:
                        yield Panel(self.tables[panel])
                yield from self.parts.lists()
            yield Static(id="card", markup=False)
            with Vertical(id="side"):
                yield from self.parts.side()
        yield FilterBar(self.model)
        yield Footer(app.commands, self.hand.operator.why_not)
        yield Toasts()

    def on_mount(self) -> None:
        """Bind the keys, take over what is remembered, and begin to tick."""
        for command in self.dibs.commands:
            for key in command.keys:  # each is done before the next is seen, so none overtakes
                self._bindings.bind(
                    key, f"do('{command.id}')", command.title, show=False, priority=True
                )
        self._bindings.bind("enter", "keep_filter", show=False, priority=True)
        self.take_all()
        self.lay_out()
        self.show()
        if self.dibs.terms:
            self.post_message(FilterAsked(self.dibs.terms))
        self.set_interval(1.0, self.tick)

    # The layout

    @property
    def shown(self) -> tuple[str, ...]:
        """The panels that are on the screen."""
        return layout.shown(self.view, *self.app.size)

    @property
    def shown_tables(self) -> list[TaskTable]:
        """The tables among them."""
        return [self.tables[panel] for panel in self.shown if panel in self.tables]

    @property
    def table(self) -> TaskTable | None:
        """The table that keys act on."""
        focused = self.focused
        if isinstance(focused, TaskTable):
            return focused
        return self.tables.get(self._focused) if self._focused in self.shown else None

    def lay_out(self) -> None:
        """Show what belongs to the view and fits; tables that nobody sees keep nothing true."""
        panels = self.shown
        for name, table in self.tables.items():
            self.query_one(f"#panel-{name}").display = name in panels
            if name in panels and not table.listed:
                table.remake()
            elif name not in panels:
                table.close()
        self.query_one("#bottom").display = any(panel in panels for panel in _BOTTOM)
        self.parts.lay_out(panels)
        self._frame(panels)
        self.query_one(Tabs).show(self.view)
        if self._focused not in panels:
            urgent = len(panels) == 1 or bool(self.model.stale)  # what people open the board for
            self.focus_panel(panels[0] if urgent else panels[1])
        self.call_after_refresh(self._shown_anew)

    def _frame(self, panels: tuple[str, ...], *, update: bool = True) -> None:
        """How these panels stand together; without `update` before there is anything to restyle."""
        self.set_class(len(panels) > 1, "-full", update=update)
        self.set_class(self.view != "all" or len(panels) == 1, "-tabs", update=update)
        self.set_class(self.app.size.height < _LOW, "-low", update=update)

    def _shown_anew(self) -> None:
        self.parts.inspect(self.hand.task())
        self.show()

    def focus_panel(self, panel: str) -> None:
        """Let keys act on this panel."""
        self._focused = panel
        widget: Widget | None = self.tables.get(panel) or self.parts.of(panel)
        if widget is not None:
            self.set_focus(widget)

    def on_resize(self, event: Resize) -> None:
        """Another room, other panels."""
        if self.is_mounted:
            self.lay_out()

    @on(DescendantFocus)
    def _focus_moved(self, event: DescendantFocus) -> None:
        if isinstance(event.widget, TaskTable):
            self._focused = event.widget.panel

    # The data

    def take_all(self) -> bool:
        """Take over whatever the reader has found by now; whether it is more than beats."""
        reader, news = self.dibs.reader, False
        with suppress(Empty):
            while True:
                seen = reader.found.get_nowait()
                news = news or seen.news or not self.model.whole
                self.take(seen)
                if not reader.drawn.is_set():
                    self.call_after_refresh(reader.drawn.set)
        return news

    @property
    def covered(self) -> bool:
        """Whether another screen hides all of it; a dialog lets it be seen."""
        stack = self.app.screen_stack
        above = stack[stack.index(self) + 1 :] if self in stack else []
        return any(not screen.is_modal for screen in above)

    def look(self) -> None:
        """Show at once what was found, or that the reader fares differently."""
        told, self._told = self._told, self.dibs.reader.status.kind
        news = self.take_all() or told != self._told
        if not self._opened and self.model.whole:
            self._opened = True
            self.hand.operator.opened()
        if news:  # in the same frame as the stale rows: a key must not act on another panel
            self.hand.operator.focus_stale()
        if news and not self.covered:
            self.show()

    def on_screen_resume(self) -> None:
        """What hid it has gone."""
        if self.is_mounted:
            self.show()

    def take(self, seen: Seen) -> None:
        """Take over what the reader found, and paint what is another by now."""
        self.model.boottime = self.dibs.reader.boottime or self.model.boottime
        anew = self.model.apply(seen)
        for table in self.shown_tables:
            if anew:
                table.remake()
            elif not self.paused:
                for task in seen.came:
                    table.follow(task)
        self.parts.seen(seen)

    def show(self) -> None:
        """Paint what has changed."""
        for table in self.shown_tables:
            table.catch_up()
        self.tell_panels()
        self._tell_status()
        self.query_one(Tabs).refresh()
        self.parts.show()
        self.notices.show()

    def tell_panels(self) -> None:
        """Let every frame tell what its table has become."""
        for table in self.shown_tables:
            total = sum(self.model.count(state) for state in PANELS[table.panel].states)
            panel = table.parent
            assert isinstance(panel, Panel)
            panel.tell(total)

    def tick(self) -> None:
        """Once a second: ages go on, flashes fade, and silence is noticed."""
        faded = self.model.fade()
        self.parts.tick()
        self.notices.show()
        if self.covered:  # what nobody sees is painted once it is seen again
            return
        for table in self.shown_tables:
            table.tick(faded=faded)
        self.aging.tick(self.shown_tables)
        self.parts.show()
        self.tell_panels()
        if any(table.repainted for table in self.shown_tables):
            # Not at once with the rows: what stands between two changed places is painted too.
            self.set_timer(0.5, self._tell_status)
        else:
            self._tell_status()

    def _tell_status(self) -> None:
        head, janitor = self.query_one(Head), self.dibs.janitor
        head.reaping = ("reaping locked" if janitor.why_not else "reaping") if janitor.on else ""
        head.muted = self.dibs.alerts.muted
        head.tell(self.dibs.reader.status)
        self.query_one(Footer).tell()

    @on(AgesWanted)
    def _ages_wanted(self, event: AgesWanted) -> None:
        self.dibs.reader.ask_since(event.names)

    # Filter

    def set_filter(self, text: str) -> str:
        """Show only what matches; the complaint where the terms make no sense."""
        if text.strip() == self.filter_text:
            return ""
        try:
            test = self._picked.test(text)
        except BadName as error:
            return clean(str(error))
        self.filter_text = text.strip()
        self.aging.filtered(text)
        for table in self.tables.values():
            table.test = test
            if table.listed:
                table.remake()
        self.parts.filtered(test)
        self.show()
        return ""

    @on(FilterTyped)
    def _filter_typed(self, event: FilterTyped) -> None:
        complaint = self.set_filter(event.terms)
        self.query_one(FilterBar).set_class(bool(complaint), "-wrong")

    @on(Input.Submitted, "#filter")
    def _filter_kept(self, event: Input.Submitted) -> None:
        complaint = self.set_filter(event.value)
        if complaint:
            self.notify(complaint, markup=False)
            self.query_one(FilterBar).focus()
            return
        self.set_class(bool(self.filter_text), "-filter")

    def action_keep_filter(self) -> None:
        """What is typed after it in one go is commands, though the bar still takes in what was."""
        bar = self.query_one(FilterBar)
        bar.call_later(bar.action_submit)
        self.focus_panel(self._focused)

    @on(FilterAsked)
    def _filter_asked(self, event: FilterAsked) -> None:
        if event.view:
            self.hand.view(event.view)
        if event.picked:
            self._picked.name(event.terms, event.picked)
            self.set_filter("")
        self.query_one(FilterBar).value = event.terms
        self.set_filter(event.terms)
        self.set_class(bool(event.terms), "-filter")

    # Commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key that is typed into the filter is text."""
        if action == "keep_filter":
            return isinstance(self.focused, FilterBar)
        return action != "do" or not isinstance(self.focused, Input) or parameters == ("back",)

    def action_do(self, command: str) -> None:
        """Run a command of the registry."""
        self.hand.do(command)

    @on(RunCommand)
    def _run_command(self, event: RunCommand) -> None:
        self.hand.do(event.command)

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        self.hand.operator.chosen()
        self.parts.inspect(event.task)

    @on(Inspected)
    def _inspected(self, event: Inspected) -> None:
        self.hand.inspect(event.task)

    @on(SortAsked)
    def _sort_asked(self, event: SortAsked) -> None:
        self.hand.sort_by(event.panel, event.column)

    BINDINGS: ClassVar[list[Binding]] = []  # type: ignore[assignment]
