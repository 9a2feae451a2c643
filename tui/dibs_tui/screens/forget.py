"""The forget dialog: it frees the id of a task that is gone, so that it can be added again."""

from __future__ import annotations

from typing import ClassVar

from dibs import Board, Changed
from dibs.model.task import describe
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line
from dibs_tui.screens.ask import Ask, done
from dibs_tui.text.ages import clock
from dibs_tui.text.safe import clean


class ForgetScreen(Ask):
    """Frees the id of a task that is gone."""

    YES: ClassVar[str] = "forget"

    def __init__(self, operator: Operator, ident: str) -> None:
        super().__init__(operator)
        self._ident = ident

    def heading(self) -> str:
        """The id."""
        return f"Forget {clean(self._ident, 60)}"

    def found(self, board: Board) -> Brief:
        """The last events of the id; raises `Changed` if the task is still on the board."""
        now = board.find(self._ident)
        if now:
            raise Changed(
                f"{self._ident!r} is still on the board; only the id of a task that is gone can be "
                f"forgotten; {describe(now)}",
                now[0].name,
                now,
            )
        self.line = line(("dibs", "-d", self.operator.path, "forget"), self._ident)
        events = [f"{clock(e.at)} {e.verb} by {e.by}" for e in board.log.of(self._ident, 3)]
        fact = clean(events[-1]) if events else "the log has no events for it"
        then = (
            "The id can be added again; its next fence is higher than every earlier one.\n"
            "Cannot be undone. Side effects of earlier runs are not undone either."
        )
        earlier = tuple(row for event in events[-2::-1] for row in lines_of(event))
        return Brief("GONE", "muted", fact, earlier, (), lines_of(then))

    def done(self, board: Board) -> Brief:
        """Forget it; the board is read twice, which takes a moment."""
        board.forget(self._ident)
        return done(f"{clean(self._ident)} is forgotten: the id is free.")
