"""Everything that a filter lists, and which act to do to it; its plan comes next."""

from __future__ import annotations

import time
from collections import Counter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from dibs_tui.acting.operator import acts_of
from dibs_tui.acting.plan import Sight, fitting
from dibs_tui.commands import spelled
from dibs_tui.screens import ask
from dibs_tui.screens.own import Own
from dibs_tui.text import clean
from dibs_tui.widgets.toasts import Toasts

_ACTS = ("force-release", "requeue", "park", "raise", "lower")


class MatchesScreen(Own, ModalScreen[str]):
    """Hands on the command that was chosen; nothing is done here."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "leave")]

    def __init__(self, terms: str, sights: tuple[Sight, ...]) -> None:
        super().__init__(classes="ask")
        self._terms = terms
        self._sights = sights
        self._opened = time.monotonic()

    def compose(self) -> ComposeResult:
        """What is listed, and what can be done to how much of it."""
        states = Counter(sight.state for sight in self._sights)
        listed = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
        with Vertical(id="ask") as box:
            box.border_title = Content("act on all matches")
            words = f"{clean(self._terms, 200)} lists {len(self._sights):,} tasks: {listed}"
            yield Static(Content("\n".join([words, "", *self._lines()])), id="ask-text")
            hint = "A key shows the plan: exactly these, nothing that comes later. Esc leaves."
            yield Static(Content(hint), id="ask-hint")
            yield Button(Content("Cancel"), id="ask-cancel")
        yield Toasts()

    def _lines(self) -> list[str]:
        commands = {command.id: command for command in self.dibs.commands}
        lines = []
        for ident in _ACTS:
            keys = " ".join(map(spelled, commands[ident].keys))
            fits = next(filter(None, (len(fitting(a, self._sights)) for a in acts_of(ident))), 0)
            lines.append(f"  {keys:<4} {commands[ident].title:<10} {fits:>7,}")
        return lines

    def on_mount(self) -> None:
        """The keys of the acts, as they are configured."""
        self.query_one("#ask-cancel").focus()
        for command in self.dibs.commands:
            for key in command.keys if command.id in _ACTS else ():
                self._bindings.bind(key, f"choose('{command.id}')", command.title, show=False)

    def on_button_pressed(self) -> None:
        """Cancel."""
        self.dismiss()

    def action_choose(self, command: str) -> None:
        """Go on to the plan, if the key was meant."""
        if time.monotonic() - self._opened >= ask.DEAF and not self.dibs.hands.burst:
            self.dismiss(command)
