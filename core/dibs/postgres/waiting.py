"""Wait for the board to change, at the price of one small question now and then."""

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
from dibs.model.waiters import AFTER, EVERY, IDLE, Waiter, spell
from dibs.postgres.log import PostgresLog

if TYPE_CHECKING:
    from dibs.postgres.sessions import Session

AGAIN = int(0.8 * SECOND)
"""Between two attempts if nothing seems to change."""
_SHARE = 100
"""Attempts take at most a hundredth of the time, however often the board changes."""
_CHANGED = "SELECT last_value, (SELECT count(*) FROM dibs.pause) FROM dibs.event_seq_seq"


class PostgresRetry:
    """Decides when to try again: soon after any event of the board, and about once a second."""

    every = 0.2
    """Seconds between two checks for a change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._start = self._soon = self._again = 0
        self._seen: object = None

    def begin(self) -> None:
        """An attempt starts."""
        self._start, self._seen = self._session.boottime(), self._changed()
        self._soon = self._again = 0

    def held(self, error: Held) -> None:
        """The attempt met a holder; any event may be its end."""

    def missed(self) -> None:
        """The attempt found nothing."""
        now = self._session.boottime()
        self._soon = now + min(_SHARE * (now - self._start), AGAIN)
        self._again = now + AGAIN

    def due(self) -> bool:
        """Whether to try again now."""
        now = self._session.boottime()
        if now < self._soon:
            return False
        return now >= self._again or self._changed() != self._seen

    def _changed(self) -> object:
        try:
            return self._session.row(_CHANGED)
        except DibsError:
            return None  # the attempt finds out


def pause(session: Session, seconds: float) -> None:
    """Sleep until the board has changed, but for about a second at most."""
    retry = PostgresRetry(session)
    end = session.boottime() + min(int(seconds * SECOND), AGAIN)
    retry.begin()
    retry.missed()
    while not retry.due() and (left := end - session.boottime()) > 0:
        session.sleep(min(retry.every, left / SECOND))


class PostgresPresence:
    """The presence of one worker that waits; `dibs.protocols.Presence` documents it."""

    def __init__(self, session: Session, owner: str | None = None) -> None:
        self._session = session
        self._owner = owner if owner is not None else session.host.name
        self._folded = names.fold_owner(self._owner)
        self._waiter: Waiter | None = None
        """What the row says; None while there is no row."""
        self._begun = self._due = 0

    def keep(self, state: str = IDLE) -> None:
        now = self._session.boottime()
        if not self._begun:
            self._begun, self._due = now, now + AFTER
        if self._waiter is not None and self._waiter.state != state:
            self._remove()
            self._due = 0
        if now >= self._due:
            self._due = now + EVERY
            self._touch(state)

    def end(self) -> None:
        self._begun = 0
        self._remove()

    def _touch(self, state: str) -> None:
        session = self._session
        if self._waiter is None:
            name = f"{self._folded}-{session.nonce()}"
            since = session.about() - (session.boottime() - self._begun) / SECOND
            self._waiter = Waiter(name, self._owner, session.host.name, state, since)
        self._call("SELECT dibs.wait(%s, %s)", (self._waiter.name, spell(self._waiter)))

    def _remove(self) -> None:
        if self._waiter is not None:
            self._call("SELECT dibs.wait(%s, NULL)", (self._waiter.name,))
            self._waiter = None

    def _call(self, sql: str, params: tuple[object, ...]) -> None:
        """A failure is ignored: the wait does not depend on its presence."""
        if not self._session.read_only:
            try:
                self._session.rows(sql, params)
            except DibsError:
                return


def wait_ended(
    session: Session,
    tasks: Iterable[Task],
    seconds: float = inf,
    ended: Callable[[Task], object] | None = None,
) -> list[Task | None]:
    """Wait until all of these tasks have ended, or the time is up; what each of them is now."""
    look = partial(_look, session)
    return ends.wait_ended(PostgresRetry(session), session, look, tasks, seconds, ended)


def _look(session: Session, before: dict[str, Task | None]) -> dict[str, Task | None]:
    """What these ids are now; None if one is gone and the log does not say how it ended."""
    eids = {names.escape(ident): ident for ident in before}
    rows = session.rows(
        "SELECT eid, name FROM dibs.task WHERE eid = ANY (%s) AND name IS NOT NULL", (list(eids),)
    )
    found: dict[str, Task | None] = {eids[eid]: names.read_any(name) for eid, name in rows}
    gone = {i: task for i, task in before.items() if i not in found}
    for ident, task in gone.items():
        found[ident] = task if task is None or _over(task) else _last_seen(session, ident)
    return {ident: found[ident] for ident in before}


def _last_seen(session: Session, ident: str) -> Task | None:
    """How a task ended whose name is gone, by the log."""
    for event in reversed(PostgresLog(session).of(ident, 20)):
        for task in (event.after, event.before):
            if task is not None and task.id == ident and _over(task):
                return task
    return None


def _over(task: Task) -> bool:
    return task.state in (DONE, FAILED)
