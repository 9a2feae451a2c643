"""The base of the dialogs that look something up, ask, and act; both happen in a thread."""

from __future__ import annotations

from shlex import quote
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from dibs import Board, DibsError
from dibs.board import locate
from dibs_tui.acting.brief import Brief
from dibs_tui.acting.operator import Operator
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.screens.dialog import Dialog
from dibs_tui.text.safe import clean


class Ask(Dialog[None]):
    """Shows what it found and acts on `y`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "confirm", "confirm"),
        ("c", "copy", "copy"),
    ]

    class Reported(Message):
        """What was found, or with `over` the result."""

        def __init__(self, brief: Brief, *, over: bool) -> None:
            super().__init__()
            self.brief = brief
            self.over = over

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.operator = operator
        self.line = ""
        """The command line that does the same; empty if there is nothing to do."""
        self.asked = False
        """Whether the question is shown and not answered yet."""

    # What each dialog defines

    def found(self, board: Board) -> Brief:
        """Look up what there is to do and return the question; runs in a thread."""
        raise NotImplementedError

    def done(self, board: Board) -> Brief:
        """Do it and return the result; runs in a thread."""
        raise NotImplementedError

    def begin(self) -> None:
        """Take what was confirmed; the fields may change while it is done."""

    def missing(self) -> str:
        """What is missing in the fields; empty if nothing is."""
        return "" if self.line else "nothing to do; Esc closes"

    # The screen

    def on_mount(self) -> None:
        """Look up what there is to do."""
        self.look_up()

    def look_up(self) -> None:
        """Look up what there is to do; until it is known, nothing can be confirmed."""
        self.asked = False
        run_in_background(self._look_up)

    def _look_up(self) -> None:
        try:
            self.post_message(self.Reported(self.found(self.operator.open_board()), over=False))
        except DibsError as error:
            self.post_message(self.Reported(self._refusal(error), over=True))

    def on_ask_reported(self, event: Reported) -> None:
        """Show what was found, or the result."""
        self.over = event.over
        self.asked = not event.over
        if event.over:
            self.line = ""
            for line in self.query(".line"):
                line.display = False
            self.query_one("#cancel").focus()
        self.put(event.brief)

    def why_not(self) -> str:
        """What is missing before `y` works; empty if nothing is."""
        if not self.asked:
            return "" if self.over else "working …"
        return self.missing()

    def yes(self) -> str:
        """The act in a word, if there is something to do."""
        return self.YES if self.line or self.query(".line") else ""

    def command(self) -> str:
        """The command as it is shown: the dialog says on which board."""
        return self.line.replace(f" -d {quote(self.operator.path)}", "", 1)

    # Keys

    def action_copy(self) -> None:
        """Copy the command that does the same."""
        if self.line:
            self.copied(clean(self.line))

    def action_confirm(self) -> None:
        """Do it, if the key was no accident and nothing is missing; else say what is."""
        if self.deaf or not self.asked or self.operator.keys.burst:
            return
        if why := self.why_not():
            self.not_yet(why)
            return
        self.begin()
        self.asked = False
        self.show()
        run_in_background(self._do)

    def _do(self) -> None:
        try:
            brief = self.done(self.operator.open_board())
        except DibsError as error:
            brief = self._refusal(error)._replace(badge="NOT DONE")
        self.post_message(self.Reported(brief, over=True))

    def _refusal(self, error: DibsError) -> Brief:
        """Why something was not done, and the command that helps."""
        text = locate(self.operator.path).runnable(str(error))
        return Brief("REFUSED", "late", clean(text))


def done(words: str) -> Brief:
    """What was done."""
    return Brief("DONE", "ok-text", words)
