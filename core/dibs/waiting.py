"""Wait until an attempt succeeds: how every engine waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from dibs.model.errors import DibsError, Held, Paused
from dibs.model.sample import SECOND
from dibs.model.task import DONE, FAILED
from dibs.model.waiters import IDLE, PAUSED, Outage, unreachable

if TYPE_CHECKING:
    from dibs.model.task import Task
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


def logged(event: str, reason: str = "") -> None:
    """Log that a worker waits, that a pause or an outage stops it, or that it goes on."""
    import logging

    level = logging.WARNING if event == "unreachable" else logging.INFO
    log = logging.getLogger("dibs")
    if not log.handlers:  # else Python prints what no one has asked for
        log.addHandler(logging.NullHandler())
    log.log(level, "%s: %s" if reason else "%s%s", event, reason)


def wait_for(
    retry: Retry,
    clock: WaitClock,
    attempt: Callable[[], Found | None],
    seconds: float,
    presence: Waits | None = None,
) -> Found | None:
    """Try now, after each change of the board, and about once a second; None at the end.

    `Held`, `Paused` and a board that cannot be reached count as finding nothing, but the last error
    is raised at the end.
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
    outage = Outage(logged)
    while True:
        retry.begin()
        found: Found | None = None
        held: DibsError | None = None
        why = ""
        try:
            found = attempt()
        except (Held, Paused) as error:
            held = error
            if isinstance(error, Held):
                retry.held(error)
        except DibsError as error:
            held = unreachable(error)
            why = str(held)
        outage.note(why)
        if found is not None:
            return found
        if clock.boottime() >= end:
            try:
                if held is not None:
                    raise held
            finally:  # an error that refers to itself would keep the board until it is collected
                held = None
            return None
        retry.missed()
        while not retry.due() and (left := end - clock.boottime()) > 0:
            if presence is not None:
                presence.keep(PAUSED if isinstance(held, Paused) else IDLE)
            clock.sleep(min(retry.every, left / SECOND))


def wait_ended(
    retry: Retry,
    clock: WaitClock,
    look: Callable[[dict[str, Task | None]], dict[str, Task | None]],
    tasks: Iterable[Task],
    seconds: float,
    ended: Callable[[Task], object] | None,
) -> list[Task | None]:
    """Wait until all of these tasks have ended, or the time is up; what each of them is now.

    `look` finds what these ids are now, from what they were before; None for one that is gone.
    """
    now: dict[str, Task | None] = {task.id: task for task in tasks}
    said: set[str] = set()

    def all_ended() -> bool | None:
        nonlocal now
        now = look(now)
        for ident, task in now.items():
            if task is None or task.state not in (DONE, FAILED):
                said.discard(ident)
            elif ident not in said:
                said.add(ident)
                if ended is not None:
                    ended(task)
        return all(task is None or ident in said for ident, task in now.items()) or None

    wait_for(retry, clock, all_ended, seconds)
    return list(now.values())
