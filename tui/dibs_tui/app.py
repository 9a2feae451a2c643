"""The dashboard's app: it owns the model, the settings and the output to the terminal."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import termios
import time
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
from textual.filter import NoColor
from textual.markup import escape
from textual.notifications import SeverityLevel
from textual.screen import Screen

import dibs
from dibs_tui.acting.alerts import Alerts
from dibs_tui.acting.janitor import Janitor
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.acting.operator import Operator
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.lifecycle.crash import crashed, hung_up, report_thread_faults
from dibs_tui.lifecycle.key_order import KeyOrder, Typed
from dibs_tui.lifecycle.output.driver import Driver
from dibs_tui.lifecycle.output.picture import Picture, parts
from dibs_tui.model.board import BoardModel
from dibs_tui.model.commands import COMMANDS, spelled
from dibs_tui.model.frame.notice_row import DEMO_SECONDS
from dibs_tui.screens.board import BoardScreen
from dibs_tui.settings import memory
from dibs_tui.settings.config import NOT_LOCAL, Config
from dibs_tui.settings.keymap import check
from dibs_tui.settings.memory import Remembered
from dibs_tui.settings.themes import THEMES, themes
from dibs_tui.source.board_source import BoardSource
from dibs_tui.text.glyphs import has_utf8, in_ascii
from dibs_tui.text.safe import clean
from dibs_tui.widgets.ascii_filter import AsciiFilter
from dibs_tui.widgets.messages import BoardChanged
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.toasts import Toast, Toasts

_UNLOCKED = 300.0
_HUNG_UP = 128 + signal.SIGHUP
_KEPT = 50
"""How many messages are kept at most."""
_SAVED = 0.5
"""Seconds to wait at exit while the view is saved to a slow home directory."""


class DibsApp(App[None]):
    """The app of one dashboard: the board screen, the screens over it, and the remembered view."""

    TITLE = "dibs"
    CSS = """
    Screen { layers: default toasts; }
    TaskTable:nocolor > .table--cursor { text-style: reverse; }
    ListView:nocolor > .listing--cursor { text-style: reverse; }
    TaskTable:nocolor > .table--stale { text-style: bold underline; }
    Input > .input--placeholder, Input > .input--suggestion { color: $muted; }
    """
    BINDINGS = [Binding("ctrl+c", "quit", "quit", show=False, priority=True)]  # noqa: RUF012

    def __init__(
        self,
        source: BoardSource,
        config: Config | None = None,
        *,
        wall: bool = False,
        terms: str = "",
        reap: bool = False,
        remembered: Remembered | None = None,
        temporary: bool = False,
        hints: bool = False,
    ) -> None:
        """The view of a `temporary` board is not remembered; a live demo shows `hints`."""
        self.config = config or Config()
        self._place = "" if temporary else source.label
        self.remembered = remembered if remembered is not None else memory.load(self._place)
        super().__init__(driver_class=Driver, ansi_color=not self.config.colour)
        self.hints_until = time.monotonic() + DEMO_SECONDS if hints else 0.0
        self.is_ascii = in_ascii(self.config.glyphs)
        """Whether the screen is drawn in ASCII."""
        self._set_filters()
        self.picture = Picture()
        self._pumping: asyncio.TimerHandle | None = None
        for theme in themes(self.console.color_system):
            self.register_theme(theme)
        self.theme = self._wanted_theme()
        self.source = source
        self.model = BoardModel(source.boottime)
        if source.location.folder:  # only a directory has a storage that dibs can test
            self.model.check_command = source.location.runnable("`dibs check --probe`")
        self.wall = wall
        self.walled = False
        """Whether the wall display is shown, which is silent."""
        self.terms = terms
        self.read_only = self.config.read_only or wall
        self.unlocked_until = 0.0
        source.lock(self.read_only)
        self.saving = Lock()
        """Held while a thread saves the view; the home directory may hang."""
        self.pane = self.remembered.pane
        host = source.host or dibs.this_host()
        where = clean(f"{host.user}@{host.name}")
        self.operator = Operator(
            source.label,
            source.open_board,
            host.signature,
            where,
            KeyBurstGuard(),
            self.config.evidence_command,
            self.config.local,
        )
        self.toasts: list[Toast] = []
        self.said: list[Toast] = []
        self._typed = KeyOrder(self, self._take_key)
        self.janitor = Janitor(source.open_board, host.signature)
        self.janitor.on = reap
        keys = check(self.config.keys, COMMANDS)
        self.commands = tuple(c._replace(keys=keys.get(c.id, c.keys)) for c in COMMANDS)
        self.alt_keys = frozenset(k for c in self.commands for k in c.keys if "alt+" in k)
        self.alerts = Alerts(self.config, self._to_terminal, muted=self.remembered.muted)

    def _set_filters(self) -> None:
        """Draw without colours and in ASCII where that is wanted; Textual knows `NO_COLOR` only."""
        if not self.config.colour and not self.no_color:
            self.no_color = True
            self._filters.append(NoColor())
        if self.is_ascii:
            self._filters.append(AsciiFilter(strict=not has_utf8()))

    def on_mount(self) -> None:
        """Open the board."""
        self.push_screen(BoardScreen(self))
        self.source.call_on_news(self._notify_news)
        self.call_after_refresh(self._notify_news)
        if self.wall:
            from dibs_tui.screens.wall import WallScreen

            self.push_screen(WallScreen(self))
        self.call_after_refresh(self._drawn)

    def _wanted_theme(self) -> str:
        """The theme of the flag, the environment or the file; else the last one used."""
        known = [theme.name for theme in THEMES]
        wanted = self.config.theme
        if wanted == Config().theme and self.remembered.theme in known:
            wanted = self.remembered.theme
        return wanted if wanted in known else Config().theme

    async def on_event(self, event: events.Event) -> None:
        """Handle keys one after the other; a key ends what was said before it."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._typed.take(event)
            return
        if isinstance(event, events.MouseDown):
            self.operator.keys.used = True
        await super().on_event(event)

    async def _take_key(self, event: Typed) -> None:
        """Note the time of a key, so that a burst of keys never acts, and end what was said."""
        if self._exit:  # a screen that it opened now could not be mounted any more
            return
        if isinstance(event, events.Key):
            self.operator.keys.pressed(event.time)
            if not self.operator.keys.together:  # else it would end what was said of the first
                self._end_said()
        await super().on_event(event)

    def key_again(self, event: events.Key) -> None:
        """Give a key also to the screen below, which it has led back to."""
        self._typed.again(event)

    def keys_arrived(self, times: list[float]) -> None:
        """Note the keys that the terminal's thread has read, before any of them is handled."""
        self.operator.keys.arrived(times)

    def action_suspend_process(self) -> None:
        """Suspend to the shell, if there is one."""
        if self.config.local:
            super().action_suspend_process()
        else:
            self.notify(f"suspend: {NOT_LOCAL}", timeout=3)

    def unlock(self) -> None:
        """Unlock the acts for five minutes."""
        self._lock(False)
        self.unlocked_until = time.monotonic() + _UNLOCKED
        self.set_timer(_UNLOCKED, self._lock_again)

    def _lock_again(self) -> None:
        """Lock the acts, unless they were unlocked once more since."""
        if time.monotonic() >= self.unlocked_until - 0.5:
            self.unlocked_until = 0.0
            self._lock(True)

    def _lock(self, locked: bool) -> None:
        self.read_only = locked
        self.source.lock(locked)
        if self.board_screen is not None:
            self.board_screen.show_status()

    def _fatal_error(self) -> None:
        """Stop; `run` reports the fault in one line once the shell has the terminal back."""
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
        """Show a message on the current screen; any thread may call this.

        It stands until the next key, a warning or an error for `timeout` seconds at least.
        """
        words = Content.from_markup(message).plain if markup else message
        stays = severity != "information"
        until = time.monotonic() + (timeout or self.NOTIFICATION_TIMEOUT) if stays else 0.0
        self.call_later(self.say, Toast(f"{title}: {words}" if title else words, severity, until))

    def say(self, toast: Toast) -> None:
        """Show a message on every screen until the next key."""
        self.toasts = [*self.toasts[-_KEPT:], toast]
        self.said = [*self.said[-_KEPT:], toast]
        self._show_toasts()
        if self.walled:  # no one presses keys there
            asyncio.get_running_loop().call_later(self.NOTIFICATION_TIMEOUT, self.drop, toast)

    def drop(self, toast: Toast) -> None:
        """Remove a message."""
        if toast in self.toasts:
            self.toasts.remove(toast)
            self._show_toasts()

    def _end_said(self) -> None:
        """Remove the message that was shown before this key; a warning stays for its full time."""
        if self.toasts and self.toasts[-1].until <= time.monotonic():
            self.drop(self.toasts[-1])

    def _show_toasts(self) -> None:
        for screen in self.screen_stack if self.is_running else ():
            for shown in screen.query(Toasts):
                shown.say()
            if isinstance(screen, BoardScreen):
                screen.show_status()

    def part_failed(self, words: str) -> None:
        """Report a fault of a thread; called from that thread."""
        self.call_later(self.notify, words, markup=False, severity="error", timeout=10)

    def on_board_changed(self) -> None:
        """Let the board screen apply the deltas, whichever screen is on top."""
        board = self.board_screen
        if board is not None and board.is_mounted:
            board.show_news()

    @property
    def board_screen(self) -> BoardScreen | None:
        """The board screen, below any other screens."""
        stack = self.screen_stack if self.is_running else []
        return next((screen for screen in stack if isinstance(screen, BoardScreen)), None)

    def get_system_commands(self, screen: Screen[object]) -> Iterator[SystemCommand]:
        """Yield the commands of the palette."""
        board = self.board_screen
        if board is None or self.walled:
            return
        from dibs_tui.screens.inspect import InspectScreen

        inspected = screen if isinstance(screen, InspectScreen) else None
        for command in self.commands:
            if command.group != "move" and (inspected is None or inspected.can(command.id)):
                key = f"  ({spelled(command.keys[0])})" if command.keys else ""
                title = f"{command.title}{key}"
                why = board.acts.why_not(command)
                text = f"{command.text} — {escape(clean(why))}" if why else command.text
                do = inspected.run if inspected is not None else board.commands.run
                yield SystemCommand(title, text, partial(do, command.id))
        for title, line, show in () if inspected is not None else board.saved_filters.entries():
            yield SystemCommand(title, escape(clean(line)), show)

    # The remembered view

    def remember(
        self, *, panel: str | None = None, pane: bool | None = None, compact: bool | None = None
    ) -> None:
        """Save a choice of the view."""
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
        """Save a table's order and columns."""
        kept = self.remembered
        sort = {**kept.sort, table.panel: (table.sort, table.descending)}
        columns = {**kept.columns, table.panel: table.columns}
        self._keep(kept._replace(sort=sort, columns=columns))

    def remember_filter(self, line: str) -> None:
        """Save a filter as the newest of the history."""
        self._keep(self.remembered.with_used(line))

    def save_filter(self, name: str, line: str) -> bool:
        """Save a filter under a name, or remove it if it is empty; whether that could be done."""
        kept = self.remembered.with_saved(name, line)
        self._keep(kept)
        return kept.filters.get(name, "") == line

    def next_theme(self) -> str:
        """Switch to the next theme; returns its name."""
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) + 1 if self.theme in names else 0
        self.theme = names[at % len(names)]
        self._keep(self.remembered._replace(theme=self.theme))
        return self.theme

    def toggle_mute(self) -> str:
        """Mute or unmute the alerts; returns the message for it."""
        self.alerts.muted = not self.alerts.muted
        self._keep(self.remembered._replace(muted=self.alerts.muted))
        return "alerts are muted" if self.alerts.muted else "alerts are on"

    def _drawn(self) -> None:
        """Keep all that exists at the first frame out of garbage collections: it stays anyway."""
        gc.freeze()
        gc.enable()

    def _notify_news(self) -> None:
        self.post_message(BoardChanged())

    def _keep(self, remembered: Remembered) -> None:
        self.remembered = remembered
        run_in_background(self._save)

    def _save(self) -> None:
        with self.saving:
            memory.save(self.remembered, self._place)

    # The output to the terminal

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Put a frame into the picture; the link decides when the terminal gets it."""
        if not isinstance(self._driver, Driver) or not isinstance(
            renderable, LayoutUpdate | ChopsUpdate
        ):
            super()._display(screen, renderable)
            return
        if self._running and not self._closed and not self._batch_count:
            picture = self.picture
            if picture.size != tuple(self.size):
                picture.resize(*self.size)
                # This frame may be a part. Nothing is laid out again if the size is the old one.
                self.call_later(screen.refresh)
            picture.colours = self.console._color_system
            picture.put(parts(renderable))
            picture.cursor = self.screen.outer_size.clamp_offset(self.cursor_position)
            self.pump()
        self.post_display_hook()

    def pump(self) -> None:
        """Send the changed cells as soon as the terminal has taken what was sent before."""
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

    def on_resize(self) -> None:
        """Send everything: a terminal that is back at its size has lost what it showed."""
        self.redraw()

    def redraw(self) -> None:
        """Send the complete picture again: the terminal may show something else."""
        self.picture.forget()
        self.pump()

    def _to_terminal(self, text: str) -> None:
        driver = self._driver
        if driver is not None:
            driver.write(text)
            driver.flush()


def run(
    source: BoardSource,
    config: Config,
    *,
    wall: bool = False,
    terms: str = "",
    reap: bool = False,
    temporary: bool = False,
    hints: bool = False,
) -> int:
    """Run the dashboard on a watched board until it is closed; returns the exit code."""
    from dibs_tui.lifecycle.shutdown import end_on_signals, forget_output

    sys.setswitchinterval(0.002)
    app = DibsApp(
        source, config, wall=wall, terms=terms, reap=reap, temporary=temporary, hints=hints
    )
    fault: BaseException | None = None
    with end_on_signals(app), report_thread_faults(app.part_failed):
        try:
            app.run(mouse=config.mouse)
        except (OSError, termios.error) as error:
            fault = error
    source.stop()
    app.saving.acquire(timeout=_SAVED)
    fault = app._exception or fault
    if fault is not None and not hung_up(fault):
        raise crashed(fault)
    if not os.isatty(0):
        forget_output()
    code = app.return_code or (_HUNG_UP if fault is not None else 0)
    if not source.stop() and source.health.busy:  # the disk hangs, and the interpreter would too
        sys.stdout.flush()
        os._exit(code)
    return code
