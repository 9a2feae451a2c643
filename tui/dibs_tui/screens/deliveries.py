"""The dialog with what `dibs serve` could not send to the hooks of the board."""

from __future__ import annotations

from typing import ClassVar

from dibs import Board
from dibs.serve.deliveries import Failed
from dibs.serve.delivery_access import SEND, HookSummary, access
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line
from dibs_tui.model.rows import Row, row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.text.ages import clock, counted
from dibs_tui.text.safe import clean, fit

_ABOUT = 28
"""The cells of the event, so that the reasons are one column."""


class DeliveriesScreen(Ask):
    """Shows the failed deliveries, and sends exactly these again."""

    HEADING: ClassVar[str] = "Deliveries that failed"
    YES: ClassVar[str] = "send again"

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self._failed: list[Failed] = []

    def found(self, board: Board) -> Brief:
        """The failed deliveries of all hooks."""
        kept = access(board)
        self._failed = kept.failed()
        facts = [text for one in kept.hooks() if (text := _counts(one))]
        rows = tuple(row(text, "muted") for text in facts)
        if not self._failed:
            return Brief("NONE", "muted", "no delivery has failed", rows)
        words = ("dibs", "-d", self.operator.path, "deliveries", "send")
        self.line = line(words, *(each.id for each in self._failed))
        fact = f"{counted(len(self._failed), 'event')} could not be sent"
        then = "Each is sent again, with all its tries, by the server of the board."
        return Brief("FAILED", "late", fact, rows, _listed(self._failed), lines_of(then))

    def done(self, board: Board) -> Brief:
        """Send again what was listed; what failed since then waits for another look."""
        sent = access(board).act(SEND, (each.id for each in self._failed), self.operator.by)
        gone = len(self._failed) - len(sent)
        more = f" {counted(gone, 'other')} had been sent again or removed." if gone else ""
        return done(f"{counted(len(sent), 'event')} queued.{more}")


def _counts(one: HookSummary) -> str:
    """What else an operator must know of a hook; empty if there is nothing."""
    parts = [f"{one.waiting:,} waiting"] if one.waiting else []
    losses = one._replace(failed=0).losses
    parts += [losses] if losses else []
    return f"{clean(one.hook, 32)}: {', '.join(parts)}" if parts else ""


def _listed(failed: list[Failed]) -> tuple[Row, ...]:
    """A line for each delivery."""
    found = []
    for each in failed:
        about = fit(clean(f"{each.verb} {each.task}", 400), _ABOUT, cut="middle")
        reason = f"  {clean(each.reason, 200)}"
        when = (f"{clock(each.at)}  ", "muted")
        hook = (f"{clean(each.hook, 32)}  ", "text")
        found.append((when, hook, (about, "text"), (reason, "muted")))
    return tuple(found)
