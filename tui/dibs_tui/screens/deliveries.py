"""The dialog with what `dibs serve` could not send to the hooks of the board."""

from __future__ import annotations

import time
from typing import ClassVar

from dibs import BadName, Board
from dibs.serve.deliveries import Failed
from dibs.serve.delivery_access import SEND, HookSummary, access
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line
from dibs_tui.model.rows import Row, row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.text.ages import clock, counted
from dibs_tui.text.safe import clean, fit, width

_WHEN, _ABOUT, _REASON = 8, 28, 20
"""The cells of the time, of the event, and of the reason at least."""
_DAY = 20 * 3600
_ELSEWHERE = (
    "the deliveries of this board are in a folder of its server: open the board over HTTP, "
    "or run `dibs deliveries --hooks DIR` there"
)


class DeliveriesScreen(Ask):
    """Shows the failed deliveries, and sends exactly these again."""

    HEADING: ClassVar[str] = "Deliveries that failed"
    YES: ClassVar[str] = "send again"

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator)
        self._failed: list[Failed] = []

    def found(self, board: Board) -> Brief:
        """The failed deliveries of all hooks."""
        try:
            kept = access(board)
        except BadName:
            raise BadName(_ELSEWHERE) from None
        self._failed = kept.failed()
        facts = [text for one in kept.hooks() if (text := _counts(one))]
        rows = tuple(row(text, "muted") for text in facts)
        if not self._failed:
            return Brief("NONE", "muted", "no delivery has failed", rows)
        words = ("dibs", "-d", self.operator.path, "deliveries", "send")
        self.line = line(words, *(each.id for each in self._failed))
        fact = f"{counted(len(self._failed), 'event')} could not be sent"
        then = "Each is sent again, with all its tries, by the server of the board."
        listed = _listed(self._failed, self.cells)
        return Brief("FAILED", "late", fact, rows, listed, lines_of(then))

    def done(self, board: Board) -> Brief:
        """Send again what was listed; what failed since then waits for another look."""
        sent = access(board).act(SEND, (each.id for each in self._failed), self.operator.by)
        gone = len(self._failed) - len(sent)
        more = f" {counted(gone, 'other')} had been sent again or removed." if gone else ""
        return done(f"{counted(len(sent), 'event')} queued.{more}")


def _counts(one: HookSummary) -> str:
    """What else an operator must know of a hook; empty if there is nothing."""
    parts = [f"{one.waiting:,} waiting"] if one.waiting else []
    problem = one._replace(failed=0).problem
    parts += [problem] if problem else []
    return f"{clean(one.hook, 32)}: {', '.join(parts)}" if parts else ""


def _listed(failed: list[Failed], cells: int) -> tuple[Row, ...]:
    """A line for each delivery, in columns."""
    names = [clean(each.hook, 32) for each in failed]
    hook = min(max(map(width, names)), cells // 4)
    room = cells - _WHEN - hook - _ABOUT - 6
    about, reason = (_ABOUT, room) if room >= _REASON else (_ABOUT - _REASON + room, _REASON)
    found = []
    for each, name in zip(failed, names, strict=True):
        what = fit(clean(f"{each.verb} {each.task}", 400), max(4, about), cut="middle")
        found.append(
            (
                (f"{fit(_when(each.at), _WHEN)}  ", "muted"),
                (f"{fit(name, hook)}  {what}  ", "text"),
                (fit(clean(each.reason, 400), reason).rstrip(), "muted"),
            )
        )
    return tuple(found)


def _when(at: float) -> str:
    """The time of an event of today, the day of an earlier one."""
    return clock(at) if time.time() - at < _DAY else time.strftime("%d %b", time.localtime(at))
