"""The dialog for a pasted list of ids: each is resolved to the exact name to requeue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from dibs import Board, DibsError
from dibs.model.names import read_any
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.plan import Target
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.model.rows import Row, row
from dibs_tui.screens.dialog import Dialog
from dibs_tui.text.ages import counted
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key

_FACT = "paste ids or exact names, one per line"
_REPLACED = "\ufffd"


class Pasted(TextArea):
    """The list as it was pasted; control characters are kept, but shown as one sign."""

    def get_line(self, line_index: int) -> Text:
        """A line as it is shown; each character takes one place, so the cursor stays right."""
        line = super().get_line(line_index)
        shown = "".join(c if c == "\t" or clean(c) == c else _REPLACED for c in line.plain)
        return Text(shown, end="", no_wrap=True)


class RequeueScreen(Dialog[tuple[Target, ...]]):
    """Takes the list and returns the targets that it found; nothing changes here."""

    BINDINGS: ClassVar[list[BindingType]] = [("ctrl+g", "look", "look them up")]
    HEADING: ClassVar[str] = "Requeue a list"

    class LinesResolved(Message):
        """Posted when the lines are looked up."""

        def __init__(
            self, targets: tuple[Target, ...], names: Sequence[str], missing: Sequence[str]
        ) -> None:
            super().__init__()
            self.targets = targets
            self.names = names
            """Each line that was found, with its exact name."""
            self.missing = missing

    def __init__(self, open_board: Callable[[], Board]) -> None:
        super().__init__(wide=True)
        self._open_board = open_board
        self._targets: tuple[Target, ...] = ()
        then = lines_of("ctrl+g looks them up; nothing changes yet.")
        self.brief = Brief("LIST", "accent", _FACT, (), (), then)

    def body(self) -> ComposeResult:
        """The list, and in its place what was found."""
        yield Pasted(show_line_numbers=False, soft_wrap=False)
        yield from super().body()

    def first_focus(self) -> Widget:
        """The list."""
        return self.query_one(TextArea)

    def show(self) -> None:
        """Draw what has changed; the list has the lines that are left."""
        if self.is_mounted:
            area = self.query_one(TextArea)
            area.styles.height = max(3, min(16, self._room(), area.document.line_count + 1))
        super().show()

    def _room(self) -> int:
        """The lines that the list may have beside what was found."""
        found = len(self.brief.reading) if self.brief is not None else 0
        return self.app.size.height - 14 - found

    def more_keys(self) -> Iterator[Key]:
        """Looking the list up, or going on to the plan."""
        count = len(self._targets)
        yield Key("ctrl+g", f"plan for {count:,}" if count else "look them up", "look")

    def action_look(self) -> None:
        """Look the lines up; once that is done, go on to the plan."""
        if self._targets:
            self.dismiss(self._targets)
        else:
            text = self.query_one(TextArea).text
            run_in_background(lambda: self._look(text))

    def _look(self, text: str) -> None:
        try:
            found = self._open_board().resolve(text)
        except DibsError as error:
            self.post_message(self.LinesResolved((), (), [clean(str(error))]))
            return
        targets, names, missing = [], [], []
        for line in found:
            task = read_any(line.name) if line.name else None
            if task is None:
                missing.append(clean(f"{line.given}: {line.why or 'no exact name'}", 200))
            else:
                targets.append(Target(task, line.name, task.state, task.owner, None))
                names.append(clean(f"{line.given} → {line.name}", 200))
        self.post_message(self.LinesResolved(tuple(targets), names, missing))

    def on_requeue_screen_lines_resolved(self, event: LinesResolved) -> None:
        """Show what was not found in full, then what was."""
        self._targets = event.targets
        found, missing = len(event.targets), len(event.missing)
        fact = f"{found:,} to requeue, {missing:,} left out"
        rows: list[Row] = [row(line, "late") for line in event.missing]
        rows += [row(line, "muted") for line in event.names]
        again = "Nothing to requeue: change the list, then ctrl+g."
        then = lines_of("ctrl+g shows the plan for those to requeue." if found else again)
        ink = "late" if missing else "ok-text"
        self.put(Brief("FOUND" if found else "NONE", ink, fact, (), rows, then))

    def on_text_area_changed(self) -> None:
        """Forget what was found: the list is another now; and count its lines."""
        self._targets = ()
        lines = sum(bool(line.strip()) for line in self.query_one(TextArea).document.lines)
        fact = f"{counted(lines, 'line')} to look up" if lines else _FACT
        if self.brief is None or self.brief.fact != fact:
            then = lines_of("ctrl+g looks them up; nothing changes yet.")
            self.put(Brief("LIST", "accent", fact, (), (), then))
        else:
            self.show()

    def action_leave(self) -> None:
        """Cancel."""
        self.dismiss(())
