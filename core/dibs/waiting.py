"""Waiting for the board to change, at the price of one `stat` now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dibs.clock import SECOND
from dibs.errors import Held

if TYPE_CHECKING:
    from dibs.store import Store

Found = TypeVar("Found")
LOOK = 0.2
"""Seconds between two looks at whether something has changed."""
AGAIN = int(0.8 * SECOND)
"""Between two attempts where nothing seems to change."""
_SHARE = 100
"""Attempts take a hundredth of a core, however often the board changes, as far as that keeps no
one waiting for longer than about a second."""
_LONG, _LONGEST = 10, 8 * SECOND
"""On the longest boards they take a tenth."""


class Retry:
    """When the next attempt is worthwhile: soon after a change, and about once a second.

    A change of the directory's own time shortens the wait. It is not believed alone: a network
    mount may show it late, and an expiry changes nothing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._start = self._soon = self._again = 0
        self._seen = 0
        self._held = ""
        self._costs = [0, 0, 0]
        """Of the last attempts; the first ones look at all claims, as no later one does."""

    def begin(self) -> None:
        """An attempt begins."""
        self._start, self._seen, self._held = self._now(), self._changed(), ""
        self._soon = self._again = 0

    def held(self, error: Held) -> None:
        """It met a holder: until that exact name is gone, no change of the board matters."""
        self._held = error.task.name

    def missed(self) -> None:
        """It found nothing."""
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
        if now >= self._again:
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


def wait_for(store: Store, attempt: Callable[[], Found | None], seconds: float) -> Found | None:
    """Try now, when the board has changed, and about once a second; None at the end.

    While it is `Held` it is tried again as well; what held it to the end is raised.
    """
    port, retry = store.port, Retry(store)
    end = port.boottime() + min(seconds, 10**9) * SECOND
    while True:
        retry.begin()
        held: Held | None = None
        try:
            found = attempt()
        except Held as error:
            found, held = None, error
            retry.held(error)
        if found is not None:
            return found
        if port.boottime() >= end:
            if held is not None:
                raise held
            return None
        retry.missed()
        while not retry.due() and (left := end - port.boottime()) > 0:
            port.sleep(min(LOOK, left / SECOND))


def pause(store: Store, seconds: float) -> None:
    """Sleep until the directory has changed, for about a second at the most."""
    port, retry = store.port, Retry(store)
    end = port.boottime() + min(int(seconds * SECOND), AGAIN)
    retry.begin()
    retry.missed()
    while not retry.due() and (left := end - port.boottime()) > 0:
        port.sleep(min(LOOK, left / SECOND))
