"""The wall display: large counts, one line per cause, and the last hour."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.screen import Screen
from textual.strip import Strip

from dibs_tui.lifecycle.output.row_compositor import RowCompositor
from dibs_tui.model.cards import trouble_of
from dibs_tui.model.commands import spelled
from dibs_tui.model.frame.graph_band import drain_text
from dibs_tui.model.hour import WAITING, Hour, hour, hour_key
from dibs_tui.model.wall import COUNTED, WallLine, came_back, under, wall_lines
from dibs_tui.screens.dashboard import Dashboard
from dibs_tui.text.ages import UNREAD, clock, counted, rate, short
from dibs_tui.text.safe import clean
from dibs_tui.widgets.canvas import Canvas
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.problems import FileCheck
from dibs_tui.widgets.toasts import Toasts
from dibs_tui.widgets.wall_view import WallPicture, buckets, drawn, first_row

if TYPE_CHECKING:
    from collections.abc import Hashable

WORD = "unlock"
_UNLOCKED = 300.0
_CHECKED = 300.0
"""The least seconds between two checks of all files: a wall is open all day."""
_EVERY = 5.0
"""Seconds after which causes are looked for again though nothing was added or removed."""


class WallScreen(Screen[None]):
    """Read-only and silent; typing `unlock` opens the board with its acts for five minutes.

    The quit key leads back to the board, or ends a dashboard that was started with `--wall`.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    WallScreen { background: $bg; }
    WallScreen #wall { width: 1fr; height: 1fr; }
    """

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._dashboard = dashboard
        self._model = dashboard.model
        self._check = FileCheck(_CHECKED)
        self._typed = ""
        self._quit: tuple[str, ...] = ()
        self._lines: list[WallLine] = []
        self._lines_key: Hashable = None
        self._lines_due = 0.0
        self._hour = Hour((), (), ())
        self._hour_key: Hashable = None
        self._drawn: list[Strip] = []
        self._drawn_key: Hashable = None

    def compose(self) -> ComposeResult:
        """One picture."""
        yield Canvas(id="wall")
        yield Toasts()

    def on_mount(self) -> None:
        """Update once a second."""
        self._dashboard.walled = True
        self._quit = next(c.keys for c in self._dashboard.commands if c.id == "quit")
        self.set_interval(1.0, self.tick)
        self.call_after_refresh(self.tick)

    def on_unmount(self) -> None:
        """Let the alerts ring again."""
        self._dashboard.walled = False

    def on_resize(self) -> None:
        """Fit the picture into the new size."""
        self.call_after_refresh(self.tick)

    def tick(self) -> None:
        """Show the board as it is now."""
        source = self._dashboard.source
        self._check.ask(source.open_board, source.health)
        columns, rows = self.size
        picture, inks = self._picture(columns), inks_of(self.app)
        key = (picture._replace(clock=""), columns, rows, self.app.theme)
        if key != self._drawn_key:
            in_ascii = self._dashboard.is_ascii
            self._drawn_key = key
            self._drawn = drawn(picture, inks, columns, rows, in_ascii=in_ascii)
        top = first_row(picture, inks, columns)  # the clock, which is all that most ticks change
        self.query_one("#wall", Canvas).put([top, *self._drawn[1:]])

    def _picture(self, columns: int) -> WallPicture:
        model, source = self._model, self._dashboard.source
        why = trouble_of(source.health, source.label, time.monotonic())
        lines = self._found_lines((source.health.trouble or "no answer") if why else "", why)
        now, at = model.now.fs / 1e9, model.clock.fs / 1e9
        alarmed = bool(why or model.storage.why or model.storage.full or model.count("stale"))
        known = source.health.fresh > 0
        mode, mode_ink = self._mode()
        rates = model.rates
        least = "" if rates.complete else "≥"
        return WallPicture(
            path=clean(source.label),
            mode=mode,
            mode_ink=mode_ink,
            clock=f"{model.age_prefix}{clock(at)}" if at else "--:--:--",
            ground="alarm" if alarmed else "pause" if model.pauses else "bar",
            counts={s: model.count(s) if model.knows(s) else None for s in COUNTED},
            known=known and not why,
            under={s: under(model, lines, s) if known else "" for s in COUNTED},
            lines=lines,
            ages=[line.age(model) for line in lines],
            clear=self._clear_words(),
            backlog=f"{model.backlog():,}" if model.knows(*WAITING) else UNREAD,
            goes_on=drain_text(model),
            done=f"{least}{rate(rates.per_minute('dones', now))}" if model.knows() else UNREAD,
            failed=f"{least}{rate(rates.per_minute('fails', now))}" if model.knows() else UNREAD,
            hour=self._known_hour(buckets(columns)),
            left="read-only",
            right="   ".join(self._keys()),
        )

    def _found_lines(self, word: str, why: str) -> list[WallLine]:
        """The causes; looking for them costs more than a second's tick may."""
        model = self._model
        key = (
            word,
            why,
            tuple(model.counts.items()),
            tuple(model.stale),
            model.pauses,
            model.waiters,
            tuple(model.late_holders.back),
            tuple(model.questions),
            len(self._check.findings),
            len(model.holders),
            tuple(model.gone()),
        )
        if key != self._lines_key or time.monotonic() >= self._lines_due:
            self._lines_key, self._lines_due = key, time.monotonic() + _EVERY
            self._lines = wall_lines(
                model, self._dashboard.config, self._check.findings, trouble=(word, why)
            )
        return self._lines

    def _known_hour(self, buckets: int) -> Hour:
        """The last hour; it is counted again when a bucket ends or a count changes."""
        model = self._model
        key = hour_key(model, buckets)
        if key != self._hour_key:
            self._hour, self._hour_key = hour(model, buckets), key
        return self._hour

    def _clear_words(self) -> str:
        if not self._model.knows() or self._check.trouble:
            return ""
        if parked := self._model.count("failed"):  # no more than that: anything else is a line
            return f"{counted(parked, 'failed task')} parked"
        longest = short(self._dashboard.config.waiting_too_long)
        return f"no stale claim, no question, nothing late, no backlog of {longest} that grows"

    def _mode(self) -> tuple[str, str]:
        """How the board is watched, and its ink."""
        health = self._dashboard.source.health
        if health.trouble:
            return f"✗ {health.trouble}", "alarm"
        owed = health.lag(time.monotonic())
        if owed and health.fresh:
            return f"… waiting {short(owed)}", "alarm"
        if health.live:
            return "● live", "ok-text"
        return ("↻ polling", "late") if self._model.knows() else ("… reading", "muted")

    def _keys(self) -> list[str]:
        """The keys that work here."""
        keys = [spelled(key) for key in self._quit[:1]]
        if self._model.gone():
            leaves = ["Esc hides hosts that are gone"]
        elif came_back(self._model):
            leaves = ["Esc hides late holders"]
        else:
            leaves = [] if self._dashboard.wall else ["Esc leaves"]
        if self._dashboard.wall:
            leaves += [f"{key} quits" for key in keys]
            opens = "open the board" if self._dashboard.config.read_only else "act for 5 min"
            leaves.append(f"type {WORD} to {opens}")
        return ["? help", *leaves]

    def on_key(self, event: Key) -> None:
        """Open the board on the typed word; Esc hides late holders, then leads back."""
        event.stop()
        pasted = self._dashboard.operator.keys.together
        self._typed = (self._typed + (event.character or ""))[-len(WORD) :]
        if self._typed == WORD:
            self.app.pop_screen()
            if self._dashboard.wall:
                if not self._dashboard.config.read_only:
                    self._dashboard.unlock()
                self.app.set_timer(_UNLOCKED, partial(_lock_again, self.app, self._dashboard))
        elif event.key == "question_mark":
            from dibs_tui.screens.help import HelpScreen

            self.app.push_screen(HelpScreen(self._dashboard.commands))
        elif event.key == "escape" and (gone := self._model.gone()):
            self._model.hosts_gone.see(gone)
            self.tick()
        elif event.key == "escape" and came_back(self._model):
            self._model.late_holders.clear()
            self.tick()
        elif event.key in ("escape", *self._quit) and not self._dashboard.wall:
            self.app.pop_screen()
        elif event.key in self._quit and not WORD.startswith(self._typed) and not pasted:
            self.app.exit()


def _lock_again(app: App[object], dashboard: Dashboard) -> None:
    if not isinstance(app.screen, WallScreen):
        app.push_screen(WallScreen(dashboard))
