"""Wait for the board to change, at the price of one `stat` now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from dibs.model.errors import Held, Paused
from dibs.model.sample import SECOND
from dibs.model.waiters import IDLE, PAUSED

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles

Found = TypeVar("Found")
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


class Waits(Protocol):
    """The presence of a worker, as much as a wait needs of it."""

    def keep(self, state: str) -> None: ...

    def end(self) -> None: ...


def wait_for(
    store: BoardFiles,
    attempt: Callable[[], Found | None],
    seconds: float,
    presence: Waits | None = None,
) -> Found | None:
    """Try now, after each change of the board, and about once a second; None at the end.

    `Held` and `Paused` count as finding nothing, but the last one is raised at the end.
    """
    if presence is None:
        return _wait_for(store, attempt, seconds)
    try:
        return _wait_for(store, attempt, seconds, presence)
    finally:
        presence.end()


def _wait_for(
    store: BoardFiles,
    attempt: Callable[[], Found | None],
    seconds: float,
    presence: Waits | None = None,
) -> Found | None:
    port, retry = store.port, FilesRetry(store)
    end = port.boottime() + min(seconds, 10**9) * SECOND
    while True:
        retry.begin()
        held: Held | Paused | None = None
        try:
            found = attempt()
        except Held as error:
            found, held = None, error
            retry.held(error)
        except Paused as error:
            found, held = None, error
        if found is not None:
            return found
        if port.boottime() >= end:
            if held is not None:
                raise held
            return None
        retry.missed()
        while not retry.due() and (left := end - port.boottime()) > 0:
            if presence is not None:
                presence.keep(PAUSED if isinstance(held, Paused) else IDLE)
            port.sleep(min(retry.every, left / SECOND))


def pause(store: BoardFiles, seconds: float) -> None:
    """Sleep until the directory has changed, but for about a second at most."""
    port, retry = store.port, FilesRetry(store)
    end = port.boottime() + min(int(seconds * SECOND), AGAIN)
    retry.begin()
    retry.missed()
    while not retry.due() and (left := end - port.boottime()) > 0:
        port.sleep(min(retry.every, left / SECOND))
