"""The dashboard's own janitor: gives back, in a thread, what the board has shown as stale."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs import Board, DibsError, Refused
from dibs_tui.aside import aside

if TYPE_CHECKING:
    from dibs import Facts
    from dibs_tui.model.board import BoardModel

_CALM = 30.0
_AGAIN = 5.0
_ROUND = 200


class Janitor:
    """Reaps exactly what has been stale for a beat period, unless something speaks against it.

    When storage or clock stop, the claims of many fall silent within one beat period; by then
    that is known, and nothing has been taken from anybody.
    """

    def __init__(self, open_board: Callable[[], Board], by: str) -> None:
        self.on = False
        self.why_not = ""
        """Why it does nothing now; empty while it may."""
        self.reaped = 0
        self._open = open_board
        self._by = by
        self._due: dict[str, float] = {}
        self._busy = False

    def tick(self, model: BoardModel, why_not: str) -> None:
        """Once a second, on the main thread: see what is due, and let a thread do it."""
        self.why_not = why_not
        if not self.on:
            self._due.clear()
            return
        now = time.monotonic()
        stale = [model.facts[name] for name in model.stale if name in model.facts]
        self._due = {f.task.name: self._due.get(f.task.name, now + _calm(f)) for f in stale}
        due = [facts for facts in stale if self._due[facts.task.name] <= now][:_ROUND]
        if due and not self.why_not and not self._busy:
            self._busy = True
            self._due.update((facts.task.name, now + _AGAIN) for facts in due)
            aside(lambda: self._reap(due))

    def _reap(self, due: Sequence[Facts]) -> None:
        try:
            with suppress(DibsError):  # it will be tried again, and the head tells of trouble
                board = self._open()
                for facts in due:
                    if self.why_not or not self.on:
                        return
                    with suppress(Refused):
                        why = "by the dashboard's janitor"
                        board.reap_claim(facts.sight, why, by=self._by, asked=False)
                        self.reaped += 1
        finally:
            self._busy = False


def _calm(facts: Facts) -> float:
    """Seconds within which all others of a fleet that stopped with this claim fall silent too."""
    return min(_CALM, facts.ttl / 3)
