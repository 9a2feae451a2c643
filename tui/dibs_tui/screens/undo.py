"""Taking back the last act: what it would restore, or why it cannot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from dibs import DibsError
from dibs_tui.ages import clock
from dibs_tui.aside import aside
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs import Event
    from dibs_tui.app import DibsApp

_DEAF = 0.4


class UndoScreen(ModalScreen[None]):
    """Shows the act of the journal that would be taken back; `y` takes it back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "leave"),
        ("y", "confirm", "confirm"),
    ]
    DEFAULT_CSS = """
    UndoScreen { align: center middle; background: $background 60%; }
    UndoScreen > Vertical { width: 84; max-width: 96%; height: auto; border: round $primary;
        background: $surface; padding: 0 2; }
    UndoScreen #undo-hint { text-style: bold; margin: 1 0; }
    UndoScreen Button { height: 1; min-width: 12; border: none; background: $panel; }
    """

    class Found(Message):
        """What there is to take back, or why there is nothing."""

        def __init__(self, event: Event | None, words: str) -> None:
            super().__init__()
            self.event = event
            self.words = words

    def __init__(self) -> None:
        super().__init__()
        self._event: Event | None = None
        self._opened = time.monotonic()

    @property
    def dibs(self) -> DibsApp:
        """The app, by its own type."""
        from dibs_tui.app import DibsApp

        assert isinstance(self.app, DibsApp)
        return self.app

    def compose(self) -> ComposeResult:
        """Words, hint, Cancel."""
        with Vertical() as box:
            box.border_title = Content("undo")
            yield Static(Content("looking into the journal …"), id="undo-text")
            yield Static(Content(""), id="undo-hint")
            yield Button(Content("Cancel"))

    def on_mount(self) -> None:
        """Look what there is."""
        self.query_one(Button).focus()
        aside(self._look)

    def _look(self) -> None:
        try:
            event = self.dibs.reader.open_board().undoable()
        except DibsError as error:
            self.post_message(self.Found(None, clean(str(error))))
            return
        if event is None:
            self.post_message(self.Found(None, "there is no act to take back"))
            return
        words = (
            f"{clock(event.at)} {event.verb} of {clean(event.id)} by {clean(event.by)}"
            f"\n\n{clean(event.dst)}\n  becomes again\n{clean(event.src)}"
        )
        self.post_message(self.Found(event, words))

    def on_undo_screen_found(self, event: Found) -> None:
        """Show it."""
        self._event = event.event
        self.query_one("#undo-text", Static).update(Content(event.words))
        hint = "y — take it back      Esc — leave it" if event.event else "Esc leaves"
        self.query_one("#undo-hint", Static).update(Content(hint))

    def on_button_pressed(self) -> None:
        """Cancel."""
        self.dismiss()

    def action_confirm(self) -> None:
        """Take exactly that one back."""
        if self._event is None or time.monotonic() - self._opened < _DEAF:
            return
        event, self._event = self._event, None
        aside(lambda: self._undo(event))

    def _undo(self, event: Event) -> None:
        try:
            task = self.dibs.reader.open_board().undo(event, by=self.dibs.by)
            words = f"{clean(task.id)} is {task.state} again"
        except DibsError as error:
            words = f"not undone: {clean(str(error))}"
        self.post_message(self.Found(None, words))
