"""Letting acts through that were locked, by a typed word."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from dibs_tui.widgets.toasts import Toasts


class UnlockScreen(ModalScreen[None]):
    """Asks for the word; nothing else unlocks."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "leave")]
    DEFAULT_CSS = """
    UnlockScreen { align: center middle; background: $background 60%; }
    UnlockScreen > Vertical { width: 60; height: auto; border: round $state-stale;
        background: $surface; padding: 0 2; }
    UnlockScreen Input { border: none; height: 1; background: $panel; }
    """

    def __init__(self, word: str, unlock: Callable[[], object]) -> None:
        super().__init__()
        self._word = word
        self._unlock = unlock

    def compose(self) -> ComposeResult:
        """The question and a line."""
        with Vertical() as box:
            box.border_title = Content("locked")
            yield Static(
                Content(f"Type `{self._word}` and press Enter to go on; Esc leaves it locked.")
            )
            yield Input(compact=True)
        yield Toasts()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What comes behind the word is harmless here; without Enter it would go to the board."""
        if event.value.split()[:1] == [self._word]:
            self._unlock()
            self.dismiss()
