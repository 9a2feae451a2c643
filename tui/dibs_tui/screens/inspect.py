"""One task whole: everything that is known of it, a part on each tab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from dibs_tui.commands import BY_ID, COMMANDS, Command, spelled
from dibs_tui.model.rows import Row
from dibs_tui.screens.own import Own
from dibs_tui.taking import open_address
from dibs_tui.text import clean
from dibs_tui.widgets.inspector import board_of
from dibs_tui.widgets.page import Page
from dibs_tui.widgets.ribbon import Ribbon
from dibs_tui.widgets.subject import Found, Subject
from dibs_tui.widgets.toasts import Toasts

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.details import Details

TABS = ("overview", "payload", "timeline", "beats", "files")
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
}
"""What the keys of the registry do here."""
_ACTS = ("force-release", "requeue", "park", "raise", "lower", "undo", "forget")
"""What can be done to the task that is shown."""
_ANYWHERE = ("help", "commands", "theme", "mute")
_FOOTER = {
    "back": "back",
    "next-panel": "next tab",
    "timeline": "timeline",
    "copy": "copy",
    "open-url": "open URL",
    "force-release": "release",
    "help": "help",
}


class InspectScreen(Own, Screen[None]):
    """The full view of one task; it stays with its exact name wherever the board goes."""

    CSS_PATH = "inspect.tcss"
    AUTO_FOCUS = "#inspected"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(n), f"tab('{tab}')", tab, show=False, priority=True)
        for n, tab in enumerate(TABS, 1)
    ]

    def __init__(
        self,
        task: Task,
        model: BoardModel,
        tab: str = "",
        commands: Sequence[Command] = COMMANDS,
    ) -> None:
        """`commands`: the registry, with the keys as the user has bound them."""
        super().__init__()
        self._commands = commands
        for command in commands:  # before it is mounted: a key may follow at once
            for key in command.keys:
                if command.id in _ACTIONS:
                    self._bindings.key_to_bindings.pop(key, None)
                elif key in self._bindings.key_to_bindings:
                    continue  # a tab has it here
                self._bindings.bind(
                    key, self._action(command.id), command.title, show=False, priority=True
                )
        self.tab = tab or TABS[0]
        self._subject = Subject(model, self.post_message)
        self._subject.set(task)

    def compose(self) -> ComposeResult:
        """A title, the tabs, the page, the keys."""
        yield Ribbon(id="inspect-title")
        yield Ribbon(id="inspect-tabs")
        yield Page(id="inspected")
        yield Ribbon(id="inspect-keys")
        yield Toasts()

    def on_mount(self) -> None:
        """Look."""
        self._subject.find_out(board_of(self.app))
        self.set_interval(1.0, self.show)
        self.call_after_refresh(self.show)

    def _action(self, command: str) -> str:
        return _ACTIONS.get(command, f"do('{command}')")

    def can(self, command: str) -> bool:
        """Whether a command of the registry does something here."""
        return command in (*_ACTIONS, *_ACTS, *_ANYWHERE)

    async def run(self, command: str) -> None:
        """Run a command of the registry on the task that is shown."""
        await self.run_action(self._action(command))

    # What is shown

    def show(self) -> None:
        """Paint what is another by now; ages, mostly."""
        details, page = self._subject.details, self.query_one("#inspected", Page)
        if details is None or not page.size.width:
            return
        page.put(self._rows(details, page))
        self.query_one("#inspect-title", Ribbon).put([((" ", "text"), *details.title())])
        self.query_one("#inspect-tabs", Ribbon).put_parts(self._tabs())
        self.query_one("#inspect-keys", Ribbon).put_parts(self._keys())
        self._subject.follow(board_of(self.app))

    def _rows(self, details: Details, page: Page) -> list[Row]:
        cells = page.cells
        if self.tab == "overview":
            return details.overview(cells, page.size.height)
        part = {
            "payload": details.payload,
            "timeline": details.life,
            "beats": details.all_beats,
            "files": details.files,
        }[self.tab]
        return [*details.notes(cells), *part(cells)]

    def _tabs(self) -> Iterator[tuple[str, Row]]:
        for n, tab in enumerate(TABS, 1):
            look = "chosen" if tab == self.tab else "muted"
            yield f"tab('{tab}')", ((f" {n} {tab} ", look),)

    def _keys(self) -> Iterator[tuple[str, Row]]:
        keys = {command.id: command.keys for command in self._commands}
        for command, title in _FOOTER.items():
            if keys.get(command):
                key = (f" {spelled(keys[command][0])}", "heading")
                yield self._action(command), (key, (f" {title}  ", "muted"))

    @on(Found)
    def _found(self, event: Found) -> None:
        known = self._subject.known
        first = known is not None and known.events is None
        if self._subject.take(event.known):
            self.show()
            if first and event.known.events and self.tab == "timeline":
                self._to_the_point()

    def on_resize(self) -> None:
        """Other lines fit."""
        self.call_after_refresh(self.show)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._subject.stop()

    def _to_the_point(self) -> None:
        """The newest of a life stands last; of everything else the beginning tells most."""
        page = self.query_one("#inspected", Page)
        if self.tab == "timeline":
            page.scroll_end(animate=False)
        else:
            page.scroll_home(animate=False)

    # The hand

    @on(Ribbon.Clicked)
    async def _clicked(self, event: Ribbon.Clicked) -> None:
        await self.run_action(event.action)

    def action_do(self, command: str) -> None:
        """An act on exactly this task, a screen over this one, or a word that it is not here."""
        board, known = self.dibs.board_screen, self._subject.known
        if board is None or known is None:
            return
        if command in _ANYWHERE:
            board.hand.do(command)
            return
        why: str | None = "not here; Esc leads back to the board"
        if command in _ACTS:
            why = board.hand.operator.start_on(command, known.task)
        if why:
            self.notify(f"{BY_ID[command].title}: {why}", markup=False, timeout=3)

    def action_tab(self, tab: str) -> None:
        """Show another part."""
        self.tab = tab
        self.show()
        self._to_the_point()

    def action_turn(self, by: int) -> None:
        """The next tab, round and round."""
        self.action_tab(TABS[(TABS.index(self.tab) + by) % len(TABS)])

    def action_move(self, where: str) -> None:
        """Scroll the page."""
        getattr(self.query_one("#inspected", Page), f"scroll_{where}")(animate=False)

    def action_refresh(self) -> None:
        """Look again now."""
        self._subject.find_out(board_of(self.app))

    def action_leave(self) -> None:
        """Back to where one came from."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the exact name, as every verb takes it."""
        details = self._subject.details
        if details is not None:
            self._copied(clean(details.entry.claim))

    def _copied(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(f"copied {text}", markup=False, timeout=3)

    def action_open_url(self) -> None:
        """Open the address in the metadata."""
        details = self._subject.details
        if details is not None:
            told = open_address(self.app, details.entry.metadata)
            self.notify(told, markup=False, timeout=3)
