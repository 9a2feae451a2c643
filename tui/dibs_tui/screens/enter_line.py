"""The dialog that asks for one line: a name, or a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from dibs_tui.text.safe import clean
from dibs_tui.widgets.toasts import Toasts


class EnterLine(ModalScreen[None]):
    """Asks for a line, and stays open while the line cannot be used."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "cancel")]
    DEFAULT_CSS = """
    EnterLine { align: center middle; background: $background 60%; }
    EnterLine > Vertical { width: 94; max-width: 96%; height: auto; border: round $accent;
        background: $raise; padding: 0 2; }
    EnterLine Input { border: none; height: 1; background: $sel; }
    EnterLine #enter-hint { color: $muted; }
    EnterLine .-wrong { color: $alarm-on-sel; }
    """

    def __init__(
        self, title: str, words: str, line: str, hint: str, use: Callable[[str], str]
    ) -> None:
        """`use` takes the line when Enter is pressed, and returns what is wrong with it, or ""."""
        super().__init__()
        self._title = title
        self._words = words
        self._line = line
        self._hint = hint
        self._use = use

    def compose(self) -> ComposeResult:
        """The words, the line, and what is wrong with it."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            yield Static(Content(self._words))
            yield Input(self._line, compact=True, select_on_focus=False)
            yield Static(Content(self._hint), id="enter-hint")
        yield Toasts()

    def on_input_changed(self) -> None:
        """Show the hint again while the line is changed."""
        self._show(self._hint, wrong=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Use the line, or say why it cannot be used."""
        wrong = self._use(event.value)
        if wrong:
            self._show(clean(wrong), wrong=True)
        else:
            self.dismiss()

    def _show(self, words: str, *, wrong: bool) -> None:
        hint = self.query_one("#enter-hint", Static)
        hint.update(Content(words))
        hint.set_class(wrong, "-wrong")
