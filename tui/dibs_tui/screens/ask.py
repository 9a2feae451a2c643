"""A question with its evidence: looked up and answered in a thread, asked with Cancel focused."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from dibs import Board, DibsError
from dibs_tui.aside import aside
from dibs_tui.screens.own import Own
from dibs_tui.text import clean
from dibs_tui.widgets.toasts import Toasts

DEAF = 0.2
"""Seconds after it opened in which no key confirms: the keys of a burst were meant elsewhere."""


def go_on(yes: str, focused: Widget | None) -> str:
    """The hint where nothing is missing: in a field `y` is a letter, and Enter leads out of it."""
    first = "Enter, then " if isinstance(focused, Input) else ""
    return f"{first}y — {yes}      Esc — leave everything as it is"


class Ask(Own, ModalScreen[None]):
    """Shows what it found, and does it on `y`; Enter never confirms."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "leave"),
        ("y", "confirm", "confirm"),
        ("c", "copy", "copy"),
    ]
    HEADING: ClassVar[str] = ""
    YES: ClassVar[str] = ""
    """What `y` does, in the words of the hint."""

    class Said(Message):
        """What was found, or what became of it."""

        def __init__(self, words: str, *, over: bool) -> None:
            super().__init__()
            self.words = words
            self.over = over

    def __init__(self) -> None:
        super().__init__()
        self.line = ""
        """The command line that does the same; empty where there is nothing to be done."""
        self.over = False
        self.asked = False
        """Whether it was found out what there is to be done, and nothing was done yet."""
        self._opened = time.monotonic()

    # What a question gives

    def fields(self) -> ComposeResult:
        """What has to be filled in."""
        yield from ()

    def found(self, board: Board) -> str:
        """What there is to be done, in words; in a thread."""
        raise NotImplementedError

    def done(self, board: Board) -> str:
        """Do it, and tell what became of it; in a thread."""
        raise NotImplementedError

    def begin(self) -> None:
        """It was confirmed, and is done from now on."""
        self.hint("at it …")

    def why_not(self) -> str:
        """What is missing before `y` does it; empty where nothing is."""
        return "" if self.line else "there is nothing to do; Esc leaves"

    # The screen

    def compose(self) -> ComposeResult:
        """Words, fields, the line that does the same, hint, Cancel."""
        with Vertical(id="ask") as box:
            box.border_title = Content(self.HEADING)
            with VerticalScroll(can_focus=False):
                yield Static(Content("looking …"), id="ask-text")
            yield from self.fields()
            yield Static(Content(""), id="ask-line")
            yield Static(Content(""), id="ask-hint")
            yield Button(Content("Cancel"), id="ask-cancel")
        yield Toasts()

    def on_mount(self) -> None:
        """Look what there is."""
        self.query_one("#ask-cancel").focus()
        self.look()

    def look(self) -> None:
        """Find out what there is to be done; until it is known nothing can be confirmed."""
        self.asked = False
        aside(self._look)

    def _look(self) -> None:
        try:
            self.post_message(self.Said(self.found(self.dibs.reader.open_board()), over=False))
        except DibsError as error:
            self.post_message(self.Said(clean(str(error)), over=True))

    def on_ask_said(self, event: Said) -> None:
        """Show it."""
        self.query_one("#ask-text", Static).update(Content(event.words))
        self.over = event.over
        self.asked = not event.over
        if event.over:
            self.add_class("-over")
            self.line = ""
            self.query_one("#ask-cancel", Button).label = Content("Close")
        self.show()
        for part in self.query(Static):
            # A layout that was still owed when the words came takes the old ones' height.
            self.call_after_refresh(part.refresh, layout=True)

    def show(self) -> None:
        """The hint and the line, as they are by now."""
        if not self.asked and not self.over:
            return
        why = "Esc leaves" if self.over else self.why_not()
        hint = why or go_on(self.YES, self.focused)
        same = f"the same on the command line (c copies it):\n{clean(self.line)}"
        self.set_class(not why, "-sure")
        self.query_one("#ask-line", Static).update(Content(same if self.line else ""))
        self.hint(hint)

    def hint(self, words: str) -> None:
        """The line above Cancel."""
        self.query_one("#ask-hint", Static).update(Content(words))

    # The hand

    def on_descendant_focus(self) -> None:
        """The hint says where to type."""
        self.show()

    def on_input_submitted(self) -> None:
        """Enter goes on to Cancel; it never confirms."""
        self.query_one("#ask-cancel").focus()

    def on_button_pressed(self) -> None:
        """Cancel."""
        self.dismiss()

    def action_copy(self) -> None:
        """The line that does the same."""
        if self.line:
            self.app.copy_to_clipboard(clean(self.line))
            self.notify("copied", timeout=2)

    def action_confirm(self) -> None:
        """Do it, if nothing is missing and the key was meant."""
        early = time.monotonic() - self._opened < DEAF
        if early or not self.asked or self.dibs.hands.burst or self.why_not():
            return
        self.asked = False
        self.begin()
        aside(self._do)

    def _do(self) -> None:
        try:
            words = self.done(self.dibs.reader.open_board())
        except DibsError as error:
            words = f"not done: {clean(str(error))}"
        self.post_message(self.Said(words, over=True))
