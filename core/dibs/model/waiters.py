"""Workers that wait for tasks, as they show themselves to others.

A worker that waits touches a file now and then. It is shown only: no decision depends on it. While
the board cannot be reached it waits on, and says so once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.entries import Entry
from dibs.model.errors import DibsError, Uncertain
from dibs.model.names import OWNER_CHARS
from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.model.pauses import Pause
    from dibs.model.sample import Sample

IDLE, PAUSED, BROKEN = "idle", "paused", "broken"
WAITER_STATES = (IDLE, PAUSED, BROKEN)
"""Why a worker waits: for a task, for the end of a pause, or after too many failures in a row."""
AFTER = 2 * SECOND
"""A worker that waits for a shorter time leaves no trace."""
EVERY = 10 * SECOND
IGNORED, REMOVED = 30 * SECOND, 60 * SECOND
"""Without a touch for this long a worker is not shown any more, and its file can be removed."""
QUIET = 10 * SECOND
"""For how long tasks must be available and no worker seen before that is a problem."""
WAITER_BYTES = 2048
_match_name = re.compile(r"([A-Za-z0-9_-]{1,40})-[0-9A-F]{10}").fullmatch


class Waiter(NamedTuple):
    """A worker that waits for a task; everything is as it wrote it.

    >>> [waiter.owner for waiter in board.waiters()]
    []
    """

    name: str
    """`<owner>-<nonce>`, unique to this wait."""
    owner: str
    host: str = ""
    state: str = IDLE
    since: float = 0.0
    """When it began to wait, in approximate seconds of the board's clock; 0 if not known."""

    def age(self, now: Sample) -> float | None:
        """For how many seconds it has waited; None if that is not known."""
        return max(0.0, now.fs / SECOND - self.since) if self.since else None


def waiter_entry(waiter: Waiter, now: Sample) -> Entry:
    """The row of a waiting worker, for filters and for the command line."""
    name, owner, host, state, _ = waiter
    return Entry("", "worker", state, name, owner, host, age=waiter.age(now))


def spell(waiter: Waiter) -> bytes:
    """The content of a waiter's file."""
    _, owner, host, state, since = waiter
    fields = {"v": 1, "owner": owner, "host": host, "state": state, "at": round(since, 3)}
    return f"{json.dumps(fields)}\n".encode()


def read_waiter(name: str, data: bytes) -> Waiter | None:
    """The waiter of a file; None if the name is not one. Content that cannot be read is ignored."""
    m = _match_name(name)
    if m is None:
        return None
    try:
        fields: Any = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return Waiter(name, m[1])
    owner, host, state = (fields.get(key) for key in ("owner", "host", "state"))
    since: Any = fields.get("at")
    number = isinstance(since, (int, float)) and not isinstance(since, bool)
    return Waiter(
        name,
        owner[:OWNER_CHARS] if isinstance(owner, str) and owner else m[1],
        host[:255] if isinstance(host, str) else "",
        state if state in WAITER_STATES else IDLE,
        float(since) if number and 0 <= since < 2**53 else 0.0,
    )


def untouched(mtime: int, now: Sample) -> int:
    """Seconds since a file was touched; a time in the future counts as equally long ago.

    A clock that was set back must not keep a waiter that has gone.
    """
    return abs(now.fs - mtime)


def untaken(available: int, hosts: Iterable[str], pauses: Collection[Pause] = ()) -> int:
    """The number of available tasks if no worker is there to take them: none holds or waits.

    `hosts` has the host of each such worker. A worker on a paused host takes no task. While every
    host is paused none is expected to, so nothing is reported.
    """
    if any(pause.covers_all for pause in pauses):
        return 0
    taking = (host for host in hosts if not any(pause.covers(host) for pause in pauses))
    return available if next(taking, None) is None else 0


class Outage:
    """Reports once that the board cannot be reached, and once that it can be reached again."""

    def __init__(self, report: Callable[..., object]) -> None:
        """`report` receives `unreachable` with its reason, and `reachable`."""
        self._report = report
        self.why = ""
        """Why the board cannot be reached; empty if it can."""

    def note(self, why: str) -> None:
        """What the last attempt found: why it could not reach the board, or nothing."""
        before, self.why = self.why, why
        if why and not before:
            self._report("unreachable", reason=why)
        elif before and not why:
            self._report("reachable")


def unreachable(error: DibsError) -> DibsError:
    """The error for a board that cannot be reached; others are raised.

    Who waits for a claim has nothing to lose: a request whose answer was lost counts as not done,
    and a disk that is full or fails for a moment is waited out as a server is.
    """
    if not (error.again or isinstance(error, Uncertain)):
        raise error
    cause = error.__cause__
    return cause if isinstance(cause, DibsError) else error
