"""A list of ids, pasted: each resolved to the exact name that will be acted on, or named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from dibs import DibsError
from dibs.names import read_any
from dibs_tui.acting.plan import Sight
from dibs_tui.aside import aside
from dibs_tui.screens.own import Own
from dibs_tui.text import clean
from dibs_tui.widgets.toasts import Toasts

_SHOWN = 5
_UNSHOWN = "\ufffd"


class Pasted(TextArea):
    """The list as it was pasted; what a terminal would act on is kept, but stands as one sign."""

    def get_line(self, line_index: int) -> Text:
        """A line as it is shown, with as many characters as it has."""
        line = super().get_line(line_index)
        told = "".join(c if c == "\t" or clean(c) == c else _UNSHOWN for c in line.plain)
        return Text(told, end="", no_wrap=True)


class RequeueScreen(Own, ModalScreen[tuple[Sight, ...]]):
    """Takes the list and hands on what it found; nothing is done here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "leave"),
        ("ctrl+g", "look", "look them up"),
    ]
    DEFAULT_CSS = """
    RequeueScreen { align: center middle; background: $background 60%; }
    RequeueScreen > Vertical { width: 90; max-width: 98%; height: 80%; border: round $primary;
        background: $surface; padding: 0 2; }
    RequeueScreen TextArea, RequeueScreen TextArea:focus { height: 1fr; border: none;
        background: $panel; }
    RequeueScreen #requeue-words { height: auto; max-height: 60%; margin: 1 0; }
    """

    class Found(Message):
        """What the lines mean."""

        def __init__(
            self, sights: tuple[Sight, ...], names: Sequence[str], missing: Sequence[str]
        ) -> None:
            super().__init__()
            self.sights = sights
            self.names = names
            """Each line that was found, with the exact name that it stands for."""
            self.missing = missing

    def __init__(self) -> None:
        super().__init__()
        self._sights: tuple[Sight, ...] = ()

    def compose(self) -> ComposeResult:
        """A place to paste into, and what was found."""
        with Vertical() as box:
            box.border_title = Content("requeue a list")
            yield Pasted(show_line_numbers=False, soft_wrap=False)
            words = (
                "Paste ids or exact names, one a line. ctrl+g looks them up; nothing is done yet."
            )
            yield Static(Content(words), id="requeue-words")
        yield Toasts()

    def action_look(self) -> None:
        """Look the lines up; the second time, hand on what was found."""
        if self._sights:
            self.dismiss(self._sights)
        else:
            text = self.query_one(TextArea).text
            aside(lambda: self._look(text))

    def _look(self, text: str) -> None:
        try:
            found = self.dibs.reader.open_board().resolve(text)
        except DibsError as error:
            self.post_message(self.Found((), (), [clean(str(error))]))
            return
        sights, names, missing = [], [], []
        for line in found:
            task = read_any(line.name) if line.name else None
            if task is None:
                missing.append(clean(f"{line.given}: {line.why or 'no exact name'}", 200))
            else:
                sights.append(Sight(task, line.name, task.state, task.owner, None))
                names.append(clean(f"{line.given} → {line.name}", 200))
        self.post_message(self.Found(tuple(sights), names, missing))

    def on_requeue_screen_found(self, event: Found) -> None:
        """Say what was found and what was not."""
        self._sights = event.sights
        lines = [f"{len(event.sights):,} found, {len(event.missing):,} not:"]
        for part in (event.names, event.missing):
            lines += [f"  {line}" for line in part[:_SHOWN]]
            more = len(part) - _SHOWN
            lines += [f"  … and {more:,} more"] if more > 0 else []
        if event.sights:
            lines.append("ctrl+g goes on with those that were found; Esc leaves.")
        self.query_one("#requeue-words", Static).update(Content("\n".join(lines)))

    def on_text_area_changed(self) -> None:
        """Another list."""
        self._sights = ()

    def action_leave(self) -> None:
        """Nothing is done."""
        self.dismiss(())
