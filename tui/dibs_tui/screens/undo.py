"""Taking back the last act: what it would restore, or why it cannot."""

from __future__ import annotations

from typing import ClassVar

from dibs import Board, Event
from dibs_tui.acting.plan import line
from dibs_tui.ages import clock
from dibs_tui.screens.ask import Ask
from dibs_tui.text import clean


class UndoScreen(Ask):
    """Shows the act of the journal that would be taken back; `y` takes exactly that one back."""

    HEADING: ClassVar[str] = "undo"
    YES: ClassVar[str] = "take it back"

    def __init__(self) -> None:
        super().__init__()
        self._event: Event | None = None

    def found(self, board: Board) -> str:
        """The last act, and what it would become again."""
        event = self._event = board.undoable()
        if event is None:
            return "There is no act to take back."
        words = ("dibs", "-d", self.dibs.reader.path, "undo")
        self.line = line(words, event.dst, event.src)
        reason = clean(event.reason.removeprefix(f"{event.by.partition(' ')[0]}:").strip())
        return (
            f"{clock(event.at)} {clean(event.verb)} of {clean(event.id)} by {clean(event.by)}"
            f"{f': {reason}' if reason else ''}\n\n"
            f"{clean(event.dst)}\n  becomes again\n{clean(event.src)}"
        )

    def done(self, board: Board) -> str:
        """Take it back, if nothing has moved since."""
        task = board.undo(self._event, by=self.dibs.by)
        return f"{clean(task.id)} is {task.state} again."
