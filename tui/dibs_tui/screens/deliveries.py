"""The dialog with what `dibs serve` could not send to the hooks of the board."""

from __future__ import annotations

from typing import ClassVar

from dibs import Board
from dibs.serve.deliveries import Deliveries, Failed, hooks_in, place_of
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line
from dibs_tui.model.rows import Row, row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.text.ages import clock, counted
from dibs_tui.text.safe import clean, fit

_ABOUT = 28
"""The cells of the event, so that the reasons are one column."""
_NOTED = "hook"
"""The verb of the log's line about deliveries that were sent again."""


class DeliveriesScreen(Ask):
    """Shows the failed deliveries, and sends exactly these again."""

    HEADING: ClassVar[str] = "Deliveries that failed"
    YES: ClassVar[str] = "send again"

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self._failed: list[Failed] = []

    def found(self, board: Board) -> Brief:
        """The failed deliveries of all hooks."""
        place = place_of(board.location, None)
        kept = [Deliveries(place, name) for name in hooks_in(place)]
        self._failed = [each for one in kept for each in one.failed()]
        facts = [text for one in kept if (text := _counts(one))]
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
        place = place_of(board.location, None)
        sent = [each for each in self._failed if Deliveries(place, each.hook).send_again(each.id)]
        for hook in sorted({each.hook for each in sent}):
            count = sum(each.hook == hook for each in sent)
            board.log.note(_NOTED, f"{hook}: {count} failed deliveries queued", self.operator.by)
        gone = len(self._failed) - len(sent)
        more = f" {counted(gone, 'other')} had been sent again or removed." if gone else ""
        return done(f"{counted(len(sent), 'event')} queued.{more}")


def _counts(one: Deliveries) -> str:
    """What else an operator must know of a hook; empty if there is nothing."""
    state, waiting = one.state(), len(one.queued())
    parts = [f"{waiting:,} waiting"] if waiting else []
    parts += [f"{state.dropped:,} dropped"] if state.dropped else []
    parts += [f"log not read in time: {state.missed:,} times"] if state.missed else []
    return f"{one.hook}: {', '.join(parts)}" if parts else ""


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
