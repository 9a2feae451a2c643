"""The dashboard's janitor: reaps stale claims, in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs import Board, DibsError, Refused
from dibs_tui.lifecycle.background import run_in_background

if TYPE_CHECKING:
    from dibs import Holder
    from dibs_tui.model.board import BoardModel

_CALM = 30.0
_AGAIN = 5.0
_ROUND = 200


class Janitor:
    """Reaps claims that have been stale for a beat period, unless acts are locked.

    If the storage or the clock stalls, many claims become stale within one beat period. By then
    the stall is known and locks the janitor, so no live worker loses its claim.
    """

    def __init__(self, open_board: Callable[[], Board], by: str) -> None:
        self.on = False
        self.why_not = ""
        """Why it is locked now; empty if it is not."""
        self.reaped = 0
        self._open = open_board
        self._by = by
        self._due: dict[str, float] = {}
        self._busy = False

    def tick(self, model: BoardModel, why_not: str) -> None:
        """Call this once a second on the main thread; a thread reaps what is due."""
        self.why_not = why_not
        if not self.on:
            self._due.clear()
            return
        now = time.monotonic()
        stale = [model.holders[name] for name in model.stale if name in model.holders]
        self._due = {f.task.name: self._due.get(f.task.name, now + _calm(f)) for f in stale}
        due = [holder for holder in stale if self._due[holder.task.name] <= now][:_ROUND]
        if due and not self.why_not and not self._busy:
            self._busy = True
            self._due.update((holder.task.name, now + _AGAIN) for holder in due)
            run_in_background(lambda: self._reap(due))

    def _reap(self, due: Sequence[Holder]) -> None:
        try:
            with suppress(DibsError):  # it is tried again, and the header shows the trouble
                board = self._open()
                for holder in due:
                    if self.why_not or not self.on:
                        return
                    with suppress(Refused):
                        why = "by the dashboard's janitor"
                        board.reap_claim(holder.act_name, why, by=self._by, asked=False)
                        self.reaped += 1
        finally:
            self._busy = False


def _calm(holder: Holder) -> float:
    """Seconds to wait: claims that stall together become stale within one beat period."""
    return min(_CALM, holder.ttl / 3)
