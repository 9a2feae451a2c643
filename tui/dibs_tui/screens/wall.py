"""The wall display: large counts, what is wrong, a big clock; nothing moves for its own sake."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Digits, Static

from dibs_tui.ages import clock
from dibs_tui.cards import trouble_of
from dibs_tui.model.line import GLYPHS
from dibs_tui.screens.own import Own
from dibs_tui.widgets.head import Head
from dibs_tui.widgets.problems import Problems

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

STATES = ("stale", "failed", "claimed", "available", "held", "done")
WORD = "unlock"
_UNLOCKED = 300.0


class WallScreen(Own, Screen[None]):
    """Read-only; typing `unlock` opens the board for five minutes, acts and all."""

    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    WallScreen { layout: vertical; background: $background; }
    WallScreen #wall-clock { width: auto; min-width: 26; text-align: right; color: $foreground; }
    WallScreen #wall-top { height: 3; }
    WallScreen Head { width: 1fr; height: 3; }
    WallScreen #wall-counts { height: 5; margin: 1 0; }
    WallScreen .count { width: 1fr; height: 5; padding: 0 1; }
    WallScreen .count Digits { width: auto; }
    WallScreen #wall-banner { height: auto; text-style: bold; padding: 0 1; }
    WallScreen #wall-banner.-bad { background: $state-failed; color: $background; }
    WallScreen Problems { height: 1fr; border: round $panel; }
    WallScreen.-troubled #wall-counts, WallScreen.-troubled Problems { opacity: 45%; }
    """

    def __init__(self, model: BoardModel) -> None:
        super().__init__()
        self._model = model
        self._typed = ""

    def compose(self) -> ComposeResult:
        """Head and clock, counts, problems."""
        app = self.dibs
        with Horizontal(id="wall-top"):
            yield Head(app.reader.path, app.where, self._model, read_only=True)
            yield Digits(id="wall-clock")
        yield Static(id="wall-banner", markup=False)
        with Horizontal(id="wall-counts"):
            for state in STATES:
                with Vertical(classes="count"):
                    yield Digits(id=f"count-{state}")
                    yield Static(Content(f"{GLYPHS[state]} {state}"), id=f"word-{state}")
        problems = Problems(self._model, app.config)
        problems.can_focus = False
        yield problems

    def on_mount(self) -> None:
        """Once a second is often enough for a wall."""
        self.set_interval(1.0, self.tick)
        self.tick()

    def tick(self) -> None:
        """Show how things are."""
        app = self.dibs
        status = app.reader.status
        self.query_one(Head).tell(status)
        self.query_one("#wall-clock", Digits).update(clock(self._model.now.fs / 1e9))
        variables = app.theme_variables
        for state in STATES:
            count = self._model.count(state)
            colour = variables.get(f"state-{state}" if count else "state-gone")
            digits = self.query_one(f"#count-{state}", Digits)
            digits.update(f"{count:,}")
            digits.styles.color = colour
            word = Text(f"{GLYPHS[state]} {state}", Style(color=colour, bold=True))
            self.query_one(f"#word-{state}", Static).update(word)
        trouble = trouble_of(status, app.reader.path, time.monotonic())
        banner = self.query_one("#wall-banner", Static)
        banner.set_class(bool(trouble), "-bad")
        banner.update(Content(trouble or "\n".join(self._model.warnings())))
        self.set_class(bool(trouble), "-troubled")
        self.query_one(Problems).show()

    def on_key(self, event: Key) -> None:
        """Only the word opens it; q leaves where the wall was opened from the board."""
        event.stop()
        self._typed = (self._typed + (event.character or ""))[-len(WORD) :]
        if self._typed == WORD:
            app = self.dibs
            app.pop_screen()
            if app.wall:
                if not app.config.read_only:
                    app.unlock()
                app.set_timer(_UNLOCKED, self._lock_again)
        elif event.key == "escape" and not self.dibs.wall:
            self.dibs.pop_screen()

    def _lock_again(self) -> None:
        app = self.dibs
        if not isinstance(app.screen, WallScreen):
            app.push_screen(WallScreen(self._model))
