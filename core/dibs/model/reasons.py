"""Why tasks failed, as the log has it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.model.events import Event
    from dibs.model.task import Task
    from dibs.model.undoing import Backwards

FAILURES = ("fail", "reap", "park")
"""The verbs whose reasons say why a task is not done."""
ATTEMPTS_ENDED = (*FAILURES, "done")
"""The verbs after which the reason of an earlier attempt no longer applies."""


_SLICE = 500
"""So many events are found at once at most, because a screen sorts them in."""
PAST = 1800.0
"""The seconds for which a reap is reported to a watch that begins later."""
_find_lost = re.compile(
    r"^(?:by an operator: )?no heartbeat for (\d{1,12}) s, ttl [0-9.e+]{1,20} s, "
    r"host ([^\s;]{1,255})"
).search


class LostHost(NamedTuple):
    """The host of a reaped claim whose lease had expired."""

    host: str
    beat: float
    """When the claim was beaten last, in seconds of the board's clock."""


def expired(age: float, ttl: float, host: str = "") -> str:
    """Why an expired claim is reaped; a host that `lost_host` could not read is left out."""
    text = f"no heartbeat for {age:.0f} s, ttl {ttl:g} s"
    named = f"{text}, host {host}"
    found = _find_lost(named)
    return named if found is not None and found[2] == host else text


def lost_host(event: Event) -> LostHost | None:
    """The host that a reap names; None if its claim had not expired or has no host."""
    found = _find_lost(event.reason) if event.verb == "reap" else None
    return LostHost(found[2], event.at - int(found[1])) if found is not None else None


def last_reasons(log: Backwards, idents: Iterable[str]) -> dict[str, str]:
    """Why the last attempt of each id failed, expired or was parked; empty if it was done."""
    wanted, found = set(idents), dict[str, str]()
    for event in log.newest_first(verbs=ATTEMPTS_ENDED) if wanted else ():
        if event.id in wanted:
            wanted.discard(event.id)
            found[event.id] = event.reason if event.verb in FAILURES else ""
            if not wanted:
                break
    return found


def may_have_reason(task: Task) -> bool:
    """Whether the log can say why a task is not done: it failed, expired or was parked."""
    return task.state != DONE and (task.attempts > 0 or task.state == FAILED)


class ReasonSearch:
    """Reads a log backwards, a slice at a time: why tasks are not done, and what was reaped."""

    def __init__(self, newest_first: Iterator[Event], idents: Iterable[str], since: float) -> None:
        """`newest_first` has at least the events of `ATTEMPTS_ENDED`; `since` ends the reaps."""
        self._events = newest_first
        self._wanted = set(idents)
        self._since = since
        self.done = False
        """Whether nothing is left to find."""

    def read(self, seconds: float) -> tuple[Event, ...]:
        """What was found within about so many seconds, newest first."""
        until = time.monotonic() + seconds
        found: list[Event] = []
        for event in self._events:
            if not self._wanted and event.at < self._since:
                break
            if event.id in self._wanted and event.verb in ATTEMPTS_ENDED:
                self._wanted.discard(event.id)
                found.append(event)
            elif event.verb == "reap" and event.at >= self._since:
                found.append(event)
            if len(found) >= _SLICE or time.monotonic() >= until:
                return tuple(found)
        self.done = True
        return tuple(found)
