"""Wait for a served board to change: its server says so over a stream of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from dibs import waiting as ends
from dibs.model import names
from dibs.model.errors import DibsError, Held
from dibs.model.sample import SECOND
from dibs.model.task import DONE, FAILED, Task
from dibs.model.waiters import AFTER, EVERY, IDLE
from dibs.remote import reading
from dibs.remote.wire import NoAnswer, NoServer

if TYPE_CHECKING:
    from dibs.remote.sessions import RemoteSession
    from dibs.remote.wire import HttpConnection

AGAIN = int(0.8 * SECOND)
"""Between two attempts if nothing seems to change."""
_SHARE = 100
"""Attempts take at most a hundredth of the time, however often the board changes."""
_BEGIN = 2.0


class RemoteRetry:
    """Decides when to try again: soon after any event of the board, and about once a second."""

    every = 0.05
    """Seconds between two looks at what the stream has brought, which cost the server nothing."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session
        self._start = self._soon = self._again = 0
        self._stream: HttpConnection | None = None
        self._dead_until = 0
        self._changed = False

    def __del__(self) -> None:
        self._drop()

    def begin(self) -> None:
        """An attempt starts."""
        self._start, self._changed = self._session.boottime(), False
        self._look()  # what happened before is no news after it
        self._changed, self._soon, self._again = False, 0, 0

    def held(self, error: Held) -> None:
        """The attempt met a holder; any event may be its end."""

    def missed(self) -> None:
        """The attempt found nothing."""
        now = self._session.boottime()
        self._soon = now + min(_SHARE * (now - self._start), AGAIN)
        self._again = now + AGAIN
        if self._stream is None:
            self._open(now)
            self._again = now  # what happened before the stream began is not in it

    def due(self) -> bool:
        """Whether to try again now."""
        now = self._session.boottime()
        self._look()
        return now >= self._again or (self._changed and now >= self._soon)

    def _open(self, now: int) -> None:
        """Follow the events; without a stream there is an attempt each second."""
        if self._session.away or now < self._dead_until:
            return
        try:
            self._stream = self._session.stream("/v1/events?snapshot=false", _BEGIN)
        except (DibsError, NoServer):
            self._dead_until = now + 2 * AGAIN

    def _look(self) -> None:
        try:
            while self._stream is not None and (data := self._stream.more(0)):
                self._changed = self._changed or b"data:" in data
        except (NoServer, NoAnswer):
            self._drop()
            self._changed = True

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def pause(session: RemoteSession, seconds: float) -> None:
    """Sleep until the board has changed, but for about a second at most."""
    retry, until = RemoteRetry(session), session.boottime() + int(min(seconds, 1) * SECOND)
    retry.missed()
    while not retry.due() and (left := until - session.boottime()) > 0:
        session.sleep(min(retry.every, left / SECOND))


class RemotePresence:
    """The presence of one worker that waits; `dibs.protocols.Presence` documents it."""

    def __init__(self, session: RemoteSession, owner: str | None = None) -> None:
        self._session = session
        self._owner = owner if owner is not None else session.host.name
        names.fold_owner(self._owner)
        self._key = ""
        """By which the server knows this wait; empty before it knows of it."""
        self._state = ""
        self._due = 0

    def keep(self, state: str = IDLE) -> None:
        now = self._session.boottime()
        if not self._key or now >= self._due or state != self._state:
            first = not self._key
            self._key, self._state = self._key or self._session.nonce(), state
            self._due = now + (AFTER if first else EVERY)
            self._tell(state)

    def end(self) -> None:
        if self._key:
            self._tell("")
            self._key = ""

    def _tell(self, state: str) -> None:
        """A failure is ignored: the wait does not depend on its presence."""
        session = self._session
        if session.read_only:
            return
        try:
            session.ask(
                "/v1/presence",
                key=self._key,
                owner=self._owner,
                host=session.host.name,
                state=state or None,
            )
        except DibsError:
            return


def wait_ended(
    session: RemoteSession,
    tasks: Iterable[Task],
    seconds: float = inf,
    ended: Callable[[Task], object] | None = None,
) -> list[Task | None]:
    """Wait until all of these tasks have ended, or the time is up; what each of them is now."""
    look = partial(_look, session)
    return ends.wait_ended(RemoteRetry(session), session, look, tasks, seconds, ended)


def _look(session: RemoteSession, before: dict[str, Task | None]) -> dict[str, Task | None]:
    """What these ids are now; None if one is gone and the log does not say how it ended."""
    found: dict[str, Task | None] = {}
    there = reading.find_each(session, before)
    for ident, task in before.items():
        now = there.get(ident, [])
        if now:
            found[ident] = next((each for each in now if not _over(each)), now[0])
        else:
            known = task is None or _over(task)
            found[ident] = task if known else _last_seen(session, ident)
    return found


def _last_seen(session: RemoteSession, ident: str) -> Task | None:
    """How a task ended whose name is gone, by the log."""
    for event in reversed(reading.log_of(session).of(ident, 20)):
        for task in (event.after, event.before):
            if task is not None and task.id == ident and _over(task):
                return task
    return None


def _over(task: Task) -> bool:
    return task.state in (DONE, FAILED)
