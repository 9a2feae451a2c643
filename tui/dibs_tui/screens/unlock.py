"""Leaving the read-only mode for a while, by a typed word."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

WORD = "unlock"


class UnlockScreen(ModalScreen[None]):
    """Asks for the word; nothing else unlocks."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "leave")]
    DEFAULT_CSS = """
    UnlockScreen { align: center middle; background: $background 60%; }
    UnlockScreen > Vertical { width: 60; height: auto; border: round $state-stale;
        background: $surface; padding: 0 2; }
    UnlockScreen Input { border: none; height: 1; background: $panel; }
    """

    def compose(self) -> ComposeResult:
        """The question and a line."""
        with Vertical() as box:
            box.border_title = Content("read-only")
            yield Static(Content(f"Type `{WORD}` to act on tasks for five minutes."))
            yield Input(compact=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """The word is enough."""
        if event.value == WORD:
            from dibs_tui.app import DibsApp

            assert isinstance(self.app, DibsApp)
            self.app.unlock()
            self.dismiss()
