"""Wait until an attempt succeeds: how every engine waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from dibs.model.errors import Held, Paused
from dibs.model.sample import SECOND
from dibs.model.waiters import IDLE, PAUSED

if TYPE_CHECKING:
    from dibs.protocols import Retry

Found = TypeVar("Found")


class Waits(Protocol):
    """The presence of a worker, as much as a wait needs of it."""

    def keep(self, state: str) -> None: ...

    def end(self) -> None: ...


class WaitClock(Protocol):
    """The clock of a wait, and how it sleeps."""

    @property
    def boottime(self) -> Callable[[], int]: ...

    @property
    def sleep(self) -> Callable[[float], object]: ...


def wait_for(
    retry: Retry,
    clock: WaitClock,
    attempt: Callable[[], Found | None],
    seconds: float,
    presence: Waits | None = None,
) -> Found | None:
    """Try now, after each change of the board, and about once a second; None at the end.

    `Held` and `Paused` count as finding nothing, but the last one is raised at the end.
    """
    if presence is None:
        return _wait_for(retry, clock, attempt, seconds)
    try:
        return _wait_for(retry, clock, attempt, seconds, presence)
    finally:
        presence.end()


def _wait_for(
    retry: Retry,
    clock: WaitClock,
    attempt: Callable[[], Found | None],
    seconds: float,
    presence: Waits | None = None,
) -> Found | None:
    end = clock.boottime() + min(seconds, 10**9) * SECOND
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
        if clock.boottime() >= end:
            if held is not None:
                raise held
            return None
        retry.missed()
        while not retry.due() and (left := end - clock.boottime()) > 0:
            if presence is not None:
                presence.keep(PAUSED if isinstance(held, Paused) else IDLE)
            clock.sleep(min(retry.every, left / SECOND))
