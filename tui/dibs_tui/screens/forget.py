"""Forgetting an id: it is free again, and what is added under it begins above the old fences."""

from __future__ import annotations

from typing import ClassVar

from dibs import Board, Changed
from dibs.store import tell
from dibs_tui.acting.plan import line
from dibs_tui.ages import clock
from dibs_tui.screens.ask import Ask
from dibs_tui.text import clean


class ForgetScreen(Ask):
    """Frees the id of a task that is gone."""

    HEADING: ClassVar[str] = "forget"
    YES: ClassVar[str] = "forget it"

    def __init__(self, ident: str) -> None:
        super().__init__()
        self._ident = ident

    def found(self, board: Board) -> str:
        """What the journal tells of it; a task that is still there cannot be forgotten."""
        now = board.find(self._ident)
        if now:
            raise Changed(
                f"{self._ident!a} is still on the board, and only what is gone can be forgotten; "
                f"{tell(now)}",
                now[0].name,
                now,
            )
        self.line = line(("dibs", "-d", self.dibs.reader.path, "forget"), self._ident)
        last = [f"{clock(e.at)} {e.verb} by {e.by}" for e in board.history(self._ident, 3)]
        lines = [
            f"Forget {clean(self._ident)}?",
            "",
            *map(clean, last or ["the journal tells nothing of it"]),
            "",
            "Its id can be added again, with fences above all that it ever had.",
            "It cannot be undone, and what an earlier run has done elsewhere stays done.",
        ]
        return "\n".join(lines)

    def done(self, board: Board) -> str:
        """Forget it; the core looks twice, which takes a moment."""
        board.forget(self._ident)
        return f"{clean(self._ident)} is forgotten: the id is free."
