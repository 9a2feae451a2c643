"""The dashboard: one board, its reader, and the screens over them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import termios
from collections.abc import Iterator
from functools import partial
from threading import Lock

from rich.console import RenderableType
from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.content import Content
from textual.markup import escape
from textual.notifications import SeverityLevel
from textual.screen import Screen

import dibs
from dibs_tui import memory
from dibs_tui.acting.hands import Hands
from dibs_tui.acting.janitor import Janitor
from dibs_tui.alerts import Alerts
from dibs_tui.aside import aside
from dibs_tui.commands import COMMANDS, spelled
from dibs_tui.config import Config
from dibs_tui.crash import crashed, hung_up, threads_tell
from dibs_tui.key_order import KeyOrder, Typed
from dibs_tui.keymap import check
from dibs_tui.memory import Remembered
from dibs_tui.messages import BoardSeen
from dibs_tui.model.board import BoardModel
from dibs_tui.output.driver import Driver
from dibs_tui.output.picture import Picture, parts
from dibs_tui.reader import Reader
from dibs_tui.screens.board import BoardScreen
from dibs_tui.text import clean
from dibs_tui.themes import THEMES
from dibs_tui.widgets.head import Head
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.toasts import Toast, Toasts

_UNLOCKED = 300.0
_HUNG_UP = 128 + signal.SIGHUP
_SAVED = 0.5
"""Seconds that the end waits for a home that is slow to take what is remembered."""


class DibsApp(App[None]):
    """The living board."""

    TITLE = "dibs"
    CSS = """
    Screen { layers: default toasts; }
    TaskTable:nocolor > .table--cursor { text-style: reverse; }
    Shown:nocolor > .listing--cursor { text-style: reverse; }
    TaskTable:nocolor > .table--stale { text-style: bold underline; }
    Input > .input--placeholder, Input > .input--suggestion { color: $muted; }
    """
    BINDINGS = [Binding("ctrl+c", "quit", "quit", show=False, priority=True)]  # noqa: RUF012

    def __init__(
        self,
        reader: Reader,
        config: Config | None = None,
        *,
        wall: bool = False,
        terms: str = "",
        reap: bool = False,
        remembered: Remembered | None = None,
        temporary: bool = False,
    ) -> None:
        """A `temporary` board goes with the dashboard: its view is not remembered."""
        self.config = config or Config()
        self._place = "" if temporary else reader.path
        self.remembered = remembered if remembered is not None else memory.load(self._place)
        super().__init__(driver_class=Driver, ansi_color=not self.config.colour)
        self.picture = Picture()
        self._pumping: asyncio.TimerHandle | None = None
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self._wanted_theme()
        self.reader = reader
        self.model = BoardModel(reader.tasks)
        self.wall = wall
        self.walled = False
        """Whether the wall display is shown, which never rings."""
        self.terms = terms
        self.read_only = reader.read_only = self.config.read_only or wall
        self.saving = Lock()
        """Held while the view is written in a thread: a home may hang as well."""
        self.pane = self.remembered.pane
        host = dibs.this_host()
        self.by = host.signature
        self.where = clean(f"{host.user}@{host.name}")
        self.hands = Hands()
        self.toasts: list[Toast] = []
        self._typed = KeyOrder(self, self._take_key)
        self.janitor = Janitor(reader.open_board, self.by)
        self.janitor.on = reap
        keys = check(self.config.keys, COMMANDS)
        self.commands = tuple(c._replace(keys=keys.get(c.id, c.keys)) for c in COMMANDS)
        self.alt_keys = frozenset(k for c in self.commands for k in c.keys if "alt+" in k)
        self.alerts = Alerts(self.config, self._to_terminal, muted=self.remembered.muted)

    def on_mount(self) -> None:
        """Open the board."""
        self.push_screen(BoardScreen(self.model))
        self.reader.notify = self._told
        self.call_after_refresh(self._told)
        if self.wall:
            from dibs_tui.screens.wall import WallScreen

            self.push_screen(WallScreen(self.model))
        self.call_after_refresh(self._drawn)

    def _wanted_theme(self) -> str:
        """The theme of the flag, the environment or the file; else the one of the last time."""
        known = [theme.name for theme in THEMES]
        wanted = self.config.theme
        if wanted == Config().theme and self.remembered.theme in known:
            wanted = self.remembered.theme
        return wanted if wanted in known else Config().theme

    async def on_event(self, event: events.Event) -> None:
        """Let keys in one after the other."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._typed.take(event)
            return
        if isinstance(event, events.MouseDown):
            self.hands.used = True
        await super().on_event(event)

    async def _take_key(self, event: Typed) -> None:
        """Note when keys come, so that a burst of them never acts."""
        if isinstance(event, events.Key):
            self.hands.pressed(event.time)
        await super().on_event(event)

    def unlock(self) -> None:
        """Let acts through for a while."""
        self._lock(False)
        self.set_timer(_UNLOCKED, lambda: self._lock(True))

    def _lock(self, locked: bool) -> None:
        self.read_only = self.reader.read_only = locked
        for head in self.query(Head):
            head.read_only = locked
        if self.board_screen is not None:
            self.board_screen.query_one(Head).read_only = locked

    def _fatal_error(self) -> None:
        """A fault is told in one line once the terminal is the shell's again, by `run`."""
        self._close_messages_no_wait()

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Say it for a while on whatever screen is shown; any thread may call this."""
        words = Content.from_markup(message).plain if markup else message
        toast = Toast(f"{title}\n{words}" if title else words, severity)
        self.call_later(self._say, toast, timeout or self.NOTIFICATION_TIMEOUT)

    def _say(self, toast: Toast, seconds: float) -> None:
        """A timer of Textual's would not fire, or never end, where no time is left."""
        self.toasts.append(toast)
        asyncio.get_running_loop().call_later(seconds, self.drop, toast)
        self._show_toasts()

    def drop(self, toast: Toast) -> None:
        """Say it no longer."""
        if toast in self.toasts:
            self.toasts.remove(toast)
            self._show_toasts()

    def _show_toasts(self) -> None:
        for screen in self.screen_stack if self.is_running else ():
            for shown in screen.query(Toasts):
                shown.show()

    def part_failed(self, words: str) -> None:
        """A thread of ours ended with a fault; called from that thread."""
        self.call_later(self.notify, words, markup=False, severity="error", timeout=10)

    def on_board_seen(self) -> None:
        """The board screen owns the state, whichever screen is on top."""
        board = self.board_screen
        if board is not None and board.is_mounted:
            board.look()

    @property
    def board_screen(self) -> BoardScreen | None:
        """The board, below whatever lies on it."""
        stack = self.screen_stack if self.is_running else []
        return next((screen for screen in stack if isinstance(screen, BoardScreen)), None)

    def get_system_commands(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """The palette: every command of the registry."""
        board = self.board_screen
        if board is None or self.walled:
            return
        from dibs_tui.screens.inspect import InspectScreen

        inspected = screen if isinstance(screen, InspectScreen) else None
        for command in self.commands:
            if command.group != "move" and (inspected is None or inspected.can(command.id)):
                key = f"  ({spelled(command.keys[0])})" if command.keys else ""
                title = f"{command.title}{key}"
                why = board.hand.operator.why_not(command)
                text = f"{command.text} — {escape(clean(why))}" if why else command.text
                do = inspected.run if inspected is not None else board.hand.do
                yield SystemCommand(title, text, partial(do, command.id))

    # What is remembered

    def remember(
        self, *, panel: str | None = None, pane: bool | None = None, compact: bool | None = None
    ) -> None:
        """Keep a choice for the next time."""
        kept = self.remembered
        if panel is not None:
            kept = kept._replace(panel=panel)
        if pane is not None:
            self.pane = pane
            kept = kept._replace(pane=pane)
        if compact is not None:
            kept = kept._replace(compact=compact)
        self._keep(kept)

    def remember_table(self, table: TaskTable) -> None:
        """Keep a table's order and columns for the next time."""
        kept = self.remembered
        sort = {**kept.sort, table.panel: (table.sort, table.descending)}
        columns = {**kept.columns, table.panel: table.columns}
        self._keep(kept._replace(sort=sort, columns=columns))

    def next_theme(self) -> str:
        """Go round the themes."""
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) + 1 if self.theme in names else 0
        self.theme = names[at % len(names)]
        self._keep(self.remembered._replace(theme=self.theme))
        return self.theme

    def toggle_mute(self) -> str:
        """Silence the alerts, or let them sound."""
        self.alerts.muted = not self.alerts.muted
        self._keep(self.remembered._replace(muted=self.alerts.muted))
        return "alerts are muted" if self.alerts.muted else "alerts sound again"

    def _drawn(self) -> None:
        """What was made until the first frame stays: no collection need go through it."""
        gc.freeze()
        gc.enable()

    def _told(self) -> None:
        self.post_message(BoardSeen())

    def _keep(self, remembered: Remembered) -> None:
        self.remembered = remembered
        aside(self._save)

    def _save(self) -> None:
        with self.saving:
            memory.save(self.remembered, self._place)

    # What the terminal shows

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Take over a frame; what the terminal gets of it, and when, is up to the link."""
        if not isinstance(self._driver, Driver) or not isinstance(
            renderable, LayoutUpdate | ChopsUpdate
        ):
            super()._display(screen, renderable)
            return
        if self._running and not self._closed and not self._batch_count:
            picture = self.picture
            if picture.size != tuple(self.size):
                picture.resize(*self.size)
            picture.colours = self.console._color_system
            picture.put(parts(renderable))
            picture.cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
            self.pump()
        self.post_display_hook()

    def pump(self) -> None:
        """Send what the terminal lacks, as soon as it has taken what was sent before."""
        driver, picture = self._driver, self.picture
        if not isinstance(driver, Driver) or driver.link is None or not picture.behind:
            return
        if self._pumping is not None:
            self._pumping.cancel()
            self._pumping = None
        wait = driver.link.wait()
        if wait > 0:
            self._pumping = asyncio.get_running_loop().call_later(wait, self.pump)
            return
        data = picture.bytes(driver.link.room())
        if data:
            start, end = (SYNC_START, SYNC_END) if self._sync_available else ("", "")
            driver.link.send(f"{start}{data}{end}", ask=True)

    def redraw(self) -> None:
        """Send all of it again: the terminal may show anything."""
        self.picture.forget()
        self.pump()

    def _to_terminal(self, text: str) -> None:
        driver = self._driver
        if driver is not None:
            driver.write(text)
            driver.flush()


def run(
    reader: Reader,
    config: Config,
    *,
    wall: bool = False,
    terms: str = "",
    reap: bool = False,
    temporary: bool = False,
) -> int:
    """Open the dashboard on a reader's board and stay until it is left."""
    from dibs_tui.leaving import forget_output, leave_when_told

    sys.setswitchinterval(0.002)
    app = DibsApp(reader, config, wall=wall, terms=terms, reap=reap, temporary=temporary)
    fault: BaseException | None = None
    with leave_when_told(app), threads_tell(app.part_failed):
        try:
            app.run(mouse=config.mouse)
        except (OSError, termios.error) as error:
            fault = error
    reader.stop()
    app.saving.acquire(timeout=_SAVED)
    fault = app._exception or fault
    if fault is not None and not hung_up(fault):
        raise crashed(fault)
    if not os.isatty(0):
        forget_output()
    code = app.return_code or (_HUNG_UP if fault is not None else 0)
    if reader.is_alive() and reader.status.busy:  # the disk hangs, and so would the interpreter
        sys.stdout.flush()
        os._exit(code)
    return code
