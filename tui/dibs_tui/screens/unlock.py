"""The dialog that unlocks acts when a word is typed."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Input

from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.screens.dialog import Dialog, field


class UnlockScreen(Dialog[None]):
    """Asks for a word, and calls `unlock` when it is typed."""

    def __init__(self, title: str, word: str, effect: str, unlock: Callable[[], object]) -> None:
        """`effect` says what the typed word does: "allow acts for five minutes"."""
        super().__init__()
        self._title = title
        self._word = word
        self._unlock = unlock
        then = lines_of(f"Enter after the word does it: {effect}.")
        self.brief = Brief("LOCKED", "muted", f"type `{word}` to {effect}", (), (), then)

    def heading(self) -> str:
        """What is locked."""
        return self._title[:1].upper() + self._title[1:]

    def fields(self) -> ComposeResult:
        """The word."""
        yield field("word", "unlock-word")

    def first_focus(self) -> Widget:
        """The field: nothing else can be done here."""
        return self.query_one(Input)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Unlock on Enter; without Enter, keys typed after the word would reach the board."""
        event.prevent_default()
        if event.value.split()[:1] == [self._word]:
            self._unlock()
            self.dismiss()
