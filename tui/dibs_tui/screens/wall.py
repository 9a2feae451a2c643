"""The wall display: large counts, what is wrong, a big clock; nothing moves for its own sake."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Key
from textual.screen import Screen
from textual.strip import Strip

from dibs_tui.ages import clock
from dibs_tui.cards import trouble_of
from dibs_tui.commands import spelled
from dibs_tui.model.line import GLYPHS
from dibs_tui.screens.notices import standing
from dibs_tui.screens.own import Own
from dibs_tui.widgets.banner import Banner
from dibs_tui.widgets.big import Big, big, columns, number
from dibs_tui.widgets.canvas import Canvas
from dibs_tui.widgets.head import Head
from dibs_tui.widgets.problems import Problems
from dibs_tui.widgets.ribbon import Ribbon
from dibs_tui.widgets.toasts import Toasts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs_tui.model.board import BoardModel

STATES = ("stale", "failed", "claimed", "available", "held", "done")
WORD = "unlock"
_UNLOCKED = 300.0
_WIDE = 100
"""Columns from which the large clock has room beside the head; below, the head has a small one."""


class WallScreen(Own, Screen[None]):
    """Read-only, and never rings; typing `unlock` opens the board for five minutes, acts and all.

    The key that quits leads back to the board, or ends a dashboard that was begun as a wall.
    Each second only the cells that read differently are sent, and the board below paints nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    WallScreen { layout: vertical; background: $background; }
    WallScreen #wall-top { height: 3; }
    WallScreen Head { width: 1fr; height: 3; }
    WallScreen #wall-clock { width: 26; height: 3; color: $foreground; }
    WallScreen #wall-counts { height: 4; margin: 1 0; }
    WallScreen Problems { height: 1fr; border: round $panel; }
    WallScreen.-narrow #wall-clock { display: none; }
    """

    def __init__(self, model: BoardModel) -> None:
        super().__init__()
        self._model = model
        self._typed = ""
        self._quit: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Head and clock, counts, problems."""
        app = self.dibs
        with Horizontal(id="wall-top"):
            yield Head(app.reader.path, app.where, self._model, read_only=True, clock=False)
            yield Canvas(id="wall-clock")
        yield Banner(id="wall-banner")
        yield Canvas(id="wall-counts")
        problems = Problems(self._model, app.config)
        problems.can_focus = False
        yield problems
        yield Ribbon(id="wall-keys")
        yield Toasts()

    def on_mount(self) -> None:
        """Once a second is often enough for a wall."""
        self.dibs.walled = True
        self._quit = next(c.keys for c in self.dibs.commands if c.id == "quit")
        self.query_one(Head).muted = True
        self.set_interval(1.0, self.tick)
        self.call_after_refresh(self.tick)

    def on_unmount(self) -> None:
        """From now on there is somebody to hear a bell."""
        self.dibs.walled = False

    def on_resize(self) -> None:
        """Other numbers fit."""
        self.call_after_refresh(self.tick)

    def tick(self) -> None:
        """Show how things are."""
        app, status = self.dibs, self.dibs.reader.status
        trouble = trouble_of(status, app.reader.path, time.monotonic())
        narrow = self.size.width < _WIDE
        self.set_class(bool(trouble), "-troubled")
        self.set_class(narrow, "-narrow")
        self.query_one(Head).has_clock = narrow
        self.query_one(Head).tell(status)
        now = self._model.now.fs
        shown = big(clock(now / 1e9) if now else "--:--:--")
        self.query_one("#wall-clock", Canvas).put([Strip([Segment(line)]) for line in shown])
        counts = self.query_one("#wall-counts", Canvas)
        counts.put(columns(self._counts(troubled=bool(trouble)), self.size.width // len(STATES)))
        self.query_one(Banner).show(standing(self._model, trouble))
        self.query_one(Problems).show()
        self.query_one(Ribbon).put([tuple(self._keys())])

    def _keys(self) -> Iterator[tuple[str, str]]:
        """What the keys do here, as the footer of the board has it."""
        quits, back = [spelled(key) for key in self._quit[:1]], self._model.aftermath.back
        keys = [("Esc", "hide who came back")] if back else []
        if self.dibs.wall:
            keys += [(key, "quit") for key in quits]
            keys.append((f"type `{WORD}`", "the board, for five minutes"))
        else:
            keys.append((" or ".join([*([] if back else ["Esc"]), *quits]), "back to the board"))
        for key, words in keys:
            yield f" {key}", "heading"
            yield f" {words}  ", "muted"

    def _counts(self, *, troubled: bool) -> Iterator[Big]:
        """Every state in its colour; none while nothing is in it, or nothing is known of it."""
        variables, room = self.app.theme_variables, self.size.width // len(STATES) - 1
        for state in STATES:
            count = self._model.count(state)
            colour = variables.get(f"state-{state}" if count and not troubled else "faint")
            style = Style(color=colour, bold=bool(count) and not troubled)
            yield Big(number(count, room), f"{GLYPHS[state]} {state}", style)

    def on_key(self, event: Key) -> None:
        """Only the word opens a wall; Esc hides who came back, then leads back to the board."""
        event.stop()
        self._typed = (self._typed + (event.character or ""))[-len(WORD) :]
        if self._typed == WORD:
            app = self.dibs
            app.pop_screen()
            if app.wall:
                if not app.config.read_only:
                    app.unlock()
                app.set_timer(_UNLOCKED, self._lock_again)
        elif event.key == "escape" and self._model.aftermath.back:
            self._model.aftermath.clear()
            self.tick()
        elif event.key in ("escape", *self._quit) and not self.dibs.wall:
            self.dibs.pop_screen()
        elif event.key in self._quit and not WORD.startswith(self._typed):
            self.dibs.exit()

    def _lock_again(self) -> None:
        app = self.dibs
        if not isinstance(app.screen, WallScreen):
            app.push_screen(WallScreen(self._model))
