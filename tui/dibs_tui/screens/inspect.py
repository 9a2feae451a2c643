"""The full view of one task, with a tab for each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dibs_tui.acting.act_controller import acts_of
from dibs_tui.acting.key_bursts import PASTED
from dibs_tui.model.commands import BY_ID, COMMANDS, Command, spelled
from dibs_tui.model.rows import EMPTY, Row, plain
from dibs_tui.screens.clipboard import open_address
from dibs_tui.screens.output_keys import SearchOutput, export_dialog
from dibs_tui.screens.pager import page_text
from dibs_tui.text.addresses import address_in
from dibs_tui.text.ages import clock, many
from dibs_tui.text.safe import clean, width
from dibs_tui.widgets.inspection import DetailsFound, Inspection
from dibs_tui.widgets.key_line import Key, key_parts
from dibs_tui.widgets.lines import Lines
from dibs_tui.widgets.page import Page
from dibs_tui.widgets.ribbon import Ribbon
from dibs_tui.widgets.toasts import Toasts

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.detail_sections import DetailSections
    from dibs_tui.model.live_board import LiveBoard

TABS = ("overview", "output", "payload", "timeline", "beats", "files")
"""The last one exists only where tasks are files on this host."""
_ACTIONS = {
    "timeline": "tab('timeline')",
    "copy": "copy",
    "open-url": "open_url",
    "refresh": "refresh",
    "back": "leave",
    "inspect": "leave",
    "quit": "leave",
    "next-panel": "turn(1)",
    "previous-panel": "turn(-1)",
    "down": "move('down')",
    "up": "move('up')",
    "page-down": "move('page_down')",
    "page-up": "move('page_up')",
    "top": "move('home')",
    "bottom": "move('end')",
    "filter": "search",
    "next": "find(1)",
    "previous": "find(-1)",
    "export": "export",
}
"""The commands that do something else here than on the board."""
_ACTS = ("force-release", "requeue", "park", "answer", "raise", "lower", "undo", "forget")
"""The acts that can be done to the task that is shown."""
_SCROLLS: dict[str, Callable[..., None]] = {
    "down": Page.scroll_down,
    "up": Page.scroll_up,
    "page_down": Page.scroll_page_down,
    "page_up": Page.scroll_page_up,
    "home": Page.scroll_home,
    "end": Page.scroll_end,
}
_ROOMY = 12
"""Lines from which the status row is shown."""
_ANYWHERE = ("help", "commands", "messages", "theme", "mute")
_FOOTER = {
    "force-release": "release",
    "requeue": "requeue",
    "park": "park",
    "raise": "priority",
    "answer": "answer",
    "undo": "undo",
    "copy": "copy name",
    "open-url": "URL",
}
"""The commands that the keys offer, each in a word."""


class InspectScreen(Screen[None]):
    """The full view of one task; it keeps to the exact name, whatever happens on the board."""

    CSS_PATH = "inspect.tcss"
    AUTO_FOCUS = "#inspected"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(n), f"tab('{tab}')", tab, show=False, priority=True)
        for n, tab in enumerate(TABS, 1)
    ]
    BINDINGS += [
        Binding("left_square_bracket", "step(-1)", "previous task", show=False, priority=True),
        Binding("right_square_bracket", "step(1)", "next task", show=False, priority=True),
        Binding("v", "pager", "pager", show=False, priority=True),
        Binding("w", "wrap", "wrap", show=False, priority=True),
        Binding("f", "follow", "follow", show=False, priority=True),
    ]

    def __init__(
        self,
        task: Task,
        model: BoardModel,
        source: LiveBoard,
        tab: str = "",
        commands: Sequence[Command] = COMMANDS,
        listed: Sequence[Task] = (),
        *,
        run: Callable[[str], object],
        act: Callable[[str, Task], str | None],
        why_no_copy: Callable[[], str] = lambda: "",
        can_undo: Callable[[], bool] = lambda: False,
        pasted: Callable[[], bool] = lambda: False,
        no_files: str = "",
    ) -> None:
        """`commands` is the registry with the user's keys, `listed` the list that it came from.

        `run` runs a command that does the same everywhere. `act` opens the dialog of an act on the
        task, or returns why it is refused. `can_undo` says whether the last act from here can be,
        `pasted` whether the last key came with others. `no_files` says why nothing may be saved or
        paged here, or is "".
        """
        super().__init__()
        self._source = source
        self._run = run
        self._act = act
        self._why_no_copy = why_no_copy
        self._can_undo = can_undo
        self._pasted = pasted
        self._no_files = no_files
        self._commands = commands
        for command in commands:  # before it is mounted: a key may follow at once
            for key in command.keys:
                if command.id in _ACTIONS:
                    self._bindings.key_to_bindings.pop(key, None)
                elif key in self._bindings.key_to_bindings:
                    continue  # it opens a tab here
                self._bindings.bind(
                    key, self._action(command.id), command.title, show=False, priority=True
                )
        self.tabs = TABS if source.location.folder else TABS[:-1]
        self.tab = tab or TABS[0]
        self._model = model
        self._listed = listed
        self._wraps = self._follows = True
        self._search = SearchOutput()
        self._inspection = Inspection(model, self.post_message)
        self._inspection.set(task)
        self._want_output()

    def _want_output(self) -> bool:
        """Read the output where it is shown; True if that changed."""
        return self._inspection.want_output(self.tab in ("overview", "output"))

    def compose(self) -> ComposeResult:
        """The task and what decides, the tabs, the page, the keys."""
        yield Ribbon(id="inspect-title")
        yield Lines(id="inspect-head", ground="bar")
        yield Ribbon(id="inspect-tabs")
        yield Page(id="inspected")
        yield Ribbon(id="inspect-status", ground="bg")
        yield Ribbon(id="inspect-keys")
        yield Toasts()

    def on_mount(self) -> None:
        """Read the task and show it."""
        self._inspection.load(self._source.open_board)
        self.set_interval(1.0, self.show)
        self.call_after_refresh(self.show)

    def _action(self, command: str) -> str:
        return _ACTIONS.get(command, f"do('{command}')")

    def can(self, command: str) -> bool:
        """Whether a command of the registry works here."""
        return command in (*_ACTIONS, *_ACTS, *_ANYWHERE)

    async def run(self, command: str) -> None:
        """Run a command of the registry on the task that is shown."""
        await self.run_action(self._action(command))

    # What is shown

    def show(self) -> None:
        """Show the task as it is now."""
        details, page = self._inspection.details, self.query_one("#inspected", Page)
        if details is None or not page.size.width:
            return
        page.put(self._rows(details, page))
        if self.tab == "output" and self._follows:
            page.scroll_end(animate=False, immediate=True)
        cells = self.size.width
        self.query_one("#inspect-title", Ribbon).put([self._title(details, cells)])
        headline = details.headline(cells - 2)[: max(1, self.size.height // 8)]
        self.query_one("#inspect-status").display = self.size.height >= _ROOMY
        self.query_one("#inspect-head", Lines).put([((" ", "text"), *line) for line in headline])
        self.query_one("#inspect-tabs", Ribbon).put_parts(self._tabs())
        self.query_one("#inspect-status", Ribbon).put_parts(self._status(details, cells))
        self.query_one("#inspect-keys", Ribbon).put_parts(key_parts(self._keys(), cells))
        self._inspection.follow(self._source.open_board)

    def _title(self, details: DetailSections, cells: int) -> Row:
        """The task, its place in the list that it came from, and the clock."""
        task: Row = ((" ", "text"), *details.title())
        right = clock(self._model.now.fs)
        names = [task.name for task in self._listed]
        if details.task.name in names:
            right = f"{names.index(details.task.name) + 1:,} of {len(names):,}  {right}"
        room = cells - width(plain(task)) - width(right) - 1
        return (*task, (" " * room, "text"), (right, "muted")) if room > 0 else task

    def _rows(self, details: DetailSections, page: Page) -> list[Row]:
        cells = page.cells - 1
        match self.tab:
            case "overview":
                return [EMPTY, *details.overview(cells, page.size.height)]
            case "output":
                part = details.output(cells, wrap=self._wraps, find=self._search.words)
            case "payload":
                part = details.payload(cells)
            case "timeline":
                part = details.timeline(cells)
            case "beats":
                part = details.all_beats(cells)
            case _:
                part = details.files(cells)
        return [EMPTY, *details.notes(cells), *part]

    def _tabs(self) -> Iterator[tuple[str, Row]]:
        known = self._inspection.known
        output = known.output if known is not None else None
        for n, tab in enumerate(self.tabs, 1):
            count = f" {many(output.end)}" if tab == "output" and output is not None else ""
            if tab == self.tab:
                yield f"tab('{tab}')", ((f" {n} {tab} ", "chosen"), (count.lstrip(), "chosen"))
            else:
                yield f"tab('{tab}')", ((f" {n}", "faint"), (f" {tab}{count} ", "muted"))

    def _status(self, details: DetailSections, cells: int) -> Iterator[tuple[str, Row]]:
        """What is done with the output, and how to read a part in a pager."""
        left = ""
        if self.tab == "output":
            left = "FOLLOWING: f stops" if self._follows else "f follows the output"
            left = self._search.place(self.query_one("#inspected", Page).lines) or left
        paged = not self._no_files and self._pages(details) is not None
        right = "v opens $PAGER" if paged else ""
        room = max(0, cells - width(left) - width(right) - 3)
        yield "follow", ((f" {left}", "ok-text" if self._follows else "muted"),)
        yield "", ((" " * room, "text"),)
        yield "pager", ((right, "faint"),)

    def _pages(self, details: DetailSections) -> bytes | None:
        """What the pager shows: the output or the payload; None if there is none."""
        known = details.known
        if self.tab == "output":
            parts = known.output.parts if known.output is not None else ()
            return b"".join(data for _, data in parts) or None
        return known.payload.data if known.payload is not None else None

    def _keys(self) -> Iterator[Key]:
        keys = {command.id: command.keys for command in self._commands}
        leaves = "end search" if self._searching else "back"
        yield Key(spelled(keys["back"][0]) if keys["back"] else "Esc", leaves, "leave")
        if len(self._listed) > 1:
            yield Key("[ ]", "prev, next", "step(1)")
        details = self._inspection.details
        if self.tab == "output":
            if keys["filter"]:
                yield Key(spelled(keys["filter"][0]), "search", "search")
            if self._searching:
                yield Key("n N", "next, prev", "find(1)")
            yield Key("f", "follow", "follow")
            yield Key("w", "wrap", "wrap")
            if keys["export"] and not self._no_files:
                yield Key(spelled(keys["export"][0]), "export", "export")
        for command, title in _FOOTER.items():
            if keys.get(command) and self._fits(command, details):
                key = spelled(keys[command][0])
                key += f" {spelled(keys['lower'][0])}" if command == "raise" else ""
                yield Key(key, title, self._action(command))
        for command in ("help", "commands"):
            if keys.get(command):
                key = spelled(keys[command][0])
                yield Key(key, command, self._action(command), right=True)

    def _fits(self, command: str, details: DetailSections | None) -> bool:
        """Whether the task is in a state to which a command applies."""
        if command == "undo":
            return self._can_undo()
        if details is None or details.gone:
            return command == "copy"
        if command == "answer":
            return details.task.state == "asked"
        if command == "open-url":
            return bool(address_in(details.entry.metadata))
        if command == "copy":
            return True
        return any(details.state in act.states for act in acts_of(command))

    @on(DetailsFound)
    def _found(self, event: DetailsFound) -> None:
        if self._inspection.accept(event.known):
            self.show()

    def on_resize(self) -> None:
        """Fit the lines into the new size."""
        self.call_after_refresh(self.show)

    def on_unmount(self) -> None:
        """Stop reading the task."""
        self._inspection.stop()

    def _scroll_to_start(self) -> None:
        """Scroll to where reading starts: the end of an output, else the top."""
        page = self.query_one("#inspected", Page)
        if self.tab == "output":
            page.scroll_end(animate=False, immediate=True)
        else:
            page.scroll_home(animate=False)

    # Keys
    @on(Ribbon.Clicked)
    async def _clicked(self, event: Ribbon.Clicked) -> None:
        await self.run_action(event.action)

    def action_do(self, command: str) -> None:
        """Open an act on this task or another screen, or say that the command is not here."""
        known = self._inspection.known
        if known is None:
            return
        if command in _ANYWHERE:
            self._run(command)
            return
        why: str | None = "not here; Esc returns to the board"
        if command in _ACTS:
            why = self._act(command, known.task)
        if why:
            self.notify(f"{BY_ID[command].title}: {why}", markup=False, timeout=3)

    def action_tab(self, tab: str) -> None:
        """Show a tab."""
        if tab not in self.tabs:
            return
        self.tab = tab
        self._follows = True
        if self._want_output():
            self._inspection.load(self._source.open_board)
        self.show()
        self._scroll_to_start()

    def action_turn(self, by: int) -> None:
        """Show the next or the previous tab."""
        self.action_tab(self.tabs[(self.tabs.index(self.tab) + by) % len(self.tabs)])

    def action_move(self, where: str) -> None:
        """Scroll the page."""
        page = self.query_one("#inspected", Page)
        self._follows = False
        _SCROLLS[where](page, animate=False)
        self.call_after_refresh(self._follow_at_end)

    def _follow_at_end(self) -> None:
        page = self.query_one("#inspected", Page)
        self._follows = page.scroll_y >= page.max_scroll_y
        self.show()

    def action_follow(self) -> None:
        """Follow the output, or stop."""
        if self.tab == "output":
            self._follows = not self._follows
            self.show()

    def action_wrap(self) -> None:
        """Wrap long lines of the output, or cut them."""
        self._wraps = not self._wraps
        self.show()

    def action_step(self, by: int) -> None:
        """Show the next task of the list that this one came from, as far as it is there still."""
        known, tasks = self._inspection.known, self._model.tasks
        if known is None:
            return
        names = [task.name for task in self._listed]
        at = names.index(known.task.name) if known.task.name in names else -1
        beyond = names[at + 1 :] if by > 0 else names[:at][::-1] if at > 0 else []
        name = next((name for name in beyond if name in tasks), "")
        if not name:
            self.notify("this is the last task of the list" if by > 0 else "this is the first one",
                        timeout=2)  # fmt: skip
            return
        self._inspection.set(tasks[name])
        self._want_output()
        self._inspection.load(self._source.open_board)
        self.show()
        self._scroll_to_start()

    def action_pager(self) -> None:
        """Show the output or the payload in the user's pager, every byte as text."""
        details = self._inspection.details
        data = self._pages(details) if details is not None else None
        if data is None:
            self.notify("there is nothing to page", timeout=2)
            return
        why = PASTED if self._pasted() else self._no_files or page_text(self.app, data)
        if why:
            self.notify(why, markup=False, timeout=5)

    def action_refresh(self) -> None:
        """Read the task again now."""
        self._inspection.load(self._source.open_board)

    def action_leave(self) -> None:
        """End the search, else close the view."""
        if self._searching:
            self._search.words = ""
            self.show()
        else:
            self.dismiss()

    # The output: search and export

    @property
    def _searching(self) -> bool:
        """Whether a search is shown."""
        return self.tab == "output" and bool(self._search.words)

    def action_search(self) -> None:
        """Ask what to search for in the output."""
        if self._only_output("filter"):
            self.app.push_screen(self._search.dialog(self._searched))

    def _only_output(self, command: str) -> bool:
        """Whether the output is shown; else say that a command is only for it."""
        if self.tab != "output":
            self.notify(f"{BY_ID[command].title}: only in the output (2)", timeout=3)
        return self.tab == "output"

    def _searched(self, line: str) -> str:
        """Go to the last match; returns why there is none."""
        self._search.words = line.strip()
        self._follows = self._follows and not self._search.words
        self.show()
        if self._search.words:
            self.action_find(-1)
        if not self._search.words or self._search.rows(self.query_one("#inspected", Page).lines):
            return ""
        self._search.words = ""
        self.show()
        return f"no line has {line.strip()}"

    def action_find(self, by: int) -> None:
        """Go to the next or the previous line that matches."""
        page = self.query_one("#inspected", Page)
        if not self._searching:
            self.notify(f"{BY_ID['next'].title}: / searches the output (2)", timeout=3)
            return
        line = self._search.step(page.lines, by)
        if line is not None:
            self._follows = False
            page.scroll_to(y=max(0, line - page.size.height // 2), animate=False, immediate=True)
            self.show()

    def action_export(self) -> None:
        """Ask where to save the output."""
        details = self._inspection.details
        if details is None or not self._only_output("export"):
            return
        data = self._pages(details)
        if self._pasted() or data is None or self._no_files:
            why = self._no_files or (PASTED if data is not None else "there is no output")
            self.notify(f"export: {why}", timeout=3)
        else:
            self.app.push_screen(export_dialog(self.app, details.task.id, data))

    def action_copy(self) -> None:
        """Copy the exact name."""
        details = self._inspection.details
        if why := PASTED if self._pasted() else self._why_no_copy():
            self.notify(why, markup=False, timeout=3)
        elif details is not None:
            self._copied(clean(details.entry.claim))

    def _copied(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(f"copied {text}", markup=False, timeout=3)

    def action_open_url(self) -> None:
        """Open the URL in the metadata."""
        details = self._inspection.details
        if details is not None:
            metadata = details.entry.metadata
            message = PASTED if self._pasted() else open_address(self.app, metadata)
            self.notify(message, markup=False, timeout=3)
