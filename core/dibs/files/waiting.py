"""Wait for the board to change, at the price of one `stat` now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.errors import Held

AGAIN = int(0.8 * SECOND)
"""Between two attempts if nothing seems to change."""
_SHARE = 100
"""Attempts take at most a hundredth of a core, however often the board changes, unless that would
delay them by more than about a second."""
_LONG, _LONGEST = 10, 8 * SECOND
"""On the longest boards attempts take a tenth of a core."""


class FilesRetry:
    """Decides when to try again: soon after a change, and about once a second.

    A change of the directory's mtime shortens the wait. The mtime is not enough alone: a network
    mount may show it late, and an expiry does not change it.
    """

    every = 0.2
    """Seconds between two checks for a change."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._start = self._soon = self._again = 0
        self._seen = 0
        self._held = ""
        self._costs = [0, 0, 0]
        """The costs of the last attempts; the first ones read all claims, which is expensive."""

    def begin(self) -> None:
        """An attempt starts."""
        self._start, self._seen, self._held = self._now(), self._changed(), ""
        self._soon = self._again = 0

    def held(self, error: Held) -> None:
        """The attempt met a holder: until its exact name is gone, no change matters.

        Where several slots are held, any change of the board may be the end of one.
        """
        self._held = error.task.name if error.slots == 1 else ""

    def missed(self) -> None:
        """The attempt found nothing."""
        now = self._now()
        self._costs = [*self._costs[1:], now - self._start]
        spent = min(self._costs)
        self._soon = now + max(min(_SHARE * spent, AGAIN), min(_LONG * spent, _LONGEST))
        self._again = max(self._soon, now + max(AGAIN, _LONG * spent))

    def due(self) -> bool:
        """Whether to try again now."""
        now = self._now()
        if now < self._soon:
            return False
        if now >= self._again or 0 < self._store.due_at <= now:
            return True
        if self._held:
            return self._store.look(self._held) is False
        return self._changed() != self._seen

    def _now(self) -> int:
        return self._store.port.boottime()

    def _changed(self) -> int:
        try:
            return self._store.port.stat("").mtime
        except OSError:
            return 0


def pause(store: BoardFiles, seconds: float) -> None:
    """Sleep until the directory has changed, but for about a second at most."""
    port, retry = store.port, FilesRetry(store)
    end = port.boottime() + min(int(seconds * SECOND), AGAIN)
    retry.begin()
    retry.missed()
    while not retry.due() and (left := end - port.boottime()) > 0:
        port.sleep(min(retry.every, left / SECOND))
