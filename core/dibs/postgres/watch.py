"""The thread that follows one board: it asks for the events that are new since its last look.

A look is one statement, ten times a second. The names of a task follow from its events, so what a
transaction that is open elsewhere hides is reported as soon as it commits, and nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dibs.host import this_host
from dibs.model import names
from dibs.model.delta import Delta, parts
from dibs.model.errors import (
    BadSettings,
    BoardMissing,
    DibsError,
    NewerFormat,
    NotABoard,
    OlderFormat,
    ReadOnly,
    StorageError,
)
from dibs.model.events import NOTHING_MOVED, Cursor, Event
from dibs.model.evidence import Verdict
from dibs.model.health import Health, Trouble
from dibs.model.questions import decode_question
from dibs.model.reasons import ATTEMPTS_ENDED, PAST, ReasonSearch, may_have_reason
from dibs.model.sample import SECOND, Sample
from dibs.model.task import ASKED, DONE, FAILED, FREE, Task
from dibs.postgres import pausing, reading, reaping
from dibs.postgres.addresses import shown
from dibs.postgres.log import HERE, NEW, PostgresLog, cursor_at, event_of, position_of
from dibs.postgres.sessions import Session
from dibs.process_exits import ProcessExits

if TYPE_CHECKING:
    from dibs.model.holder import Holder
    from dibs.model.pauses import Pause
    from dibs.model.questions import Question
    from dibs.model.waiters import Waiter
    from dibs.postgres.engine import PostgresBoard

EVERY = 0.1
"""Seconds between two looks for events."""
_BEATS = 1.0
"""Seconds between two looks at the claims, whose heartbeats are no events."""
_OLDEST, _OLDEST_EVERY = 1000, 60.0
_BACK = 5 * SECOND
"""A heartbeat may be committed that long after the time that it has."""
_HISTORY = 1800.0
_REPORTED = 5000
"""So many past events are reported at most; the rates count all of them, and why tasks are not
done is searched for in the complete log."""
_SEARCH = 0.02
"""Seconds for which the log is searched beside a look; a page more is read at most."""
_FEW = 200
_RETRY = (0.1, 0.5, 1.0, 2.0)
"""Seconds until the server is asked again after trouble: less and less often."""
_TROUBLES: tuple[tuple[type[DibsError], Trouble], ...] = (
    (BoardMissing, Trouble.MISSING),
    (NewerFormat, Trouble.NEWER_FORMAT),
    (OlderFormat, Trouble.OLDER_FORMAT),
    (BadSettings, Trouble.BAD_SETTINGS),
    (NotABoard, Trouble.NOT_A_BOARD),
    (ReadOnly, Trouble.DENIED),
)
_APART = frozenset((DONE, FAILED, FREE))
_CLAIMS = f"SELECT {reading.HOLDER}, c.doubted FROM dibs.claim c"
_LOOK = f"""
SELECT {HERE}, dibs.clock(), n.*
FROM (SELECT 1) one LEFT JOIN ({NEW}) n ON true ORDER BY n.seq
"""


_RIGHTS = """
SELECT current_user, bool_and(CASE WHEN proname = 'pause' THEN may END),
  bool_and(CASE WHEN proname = 'move' THEN may END)
FROM (SELECT proname, has_function_privilege(oid, 'EXECUTE')
    AND (prosecdef OR has_table_privilege('dibs.task', 'UPDATE')) AS may
  FROM pg_proc WHERE pronamespace = 'dibs'::regnamespace AND proname IN ('pause', 'move')) f
"""
"""Whether this login may do what operators do, and what workers do."""


class PostgresWatch(Thread):
    """Follows one board and calls `report` in this thread with each difference."""

    def __init__(
        self,
        where: str,
        report: Callable[[Delta], object],
        open_board: Callable[..., PostgresBoard],
    ) -> None:
        super().__init__(name="dibs-reader", daemon=True)
        self.health = Health()
        """The state of the watch; always replaced, never changed, so any thread may read it."""
        self._where = where
        self._report = report
        self._open = open_board
        self._inbox: SimpleQueue[tuple[str, tuple[str, ...]]] = SimpleQueue()
        self._ended = False
        self._tries = 0
        self._session: Session | None = None
        self._tasks: dict[str, Task] = {}
        """The tasks as they were reported, by their ids."""
        self._live: set[str] = set()
        self._cursor: Cursor | None = None
        """How far the events were reported; None until the recent past was."""
        self._holders: dict[str, Holder] = {}
        self._doubted: dict[str, int] = {}
        """When the leases of some of them were seen to be over without a proof."""
        self._stale: dict[str, Verdict] = {}
        self._exits = ProcessExits(this_host(), reap_dead=True)
        self._pauses: tuple[Pause, ...] | None = None
        self._new_pauses: tuple[Pause, ...] | None = None
        self._waiters: tuple[Waiter, ...] = ()
        self._now = Sample(0, 0)
        self._beats_at = self._oldest_at = 0.0
        self._latest = 0
        self._complete = False
        self._search: ReasonSearch | None = None
        """What is still to be found in the log; the board is shown before it ends."""
        self._reasons_read = False

    # Called from any thread

    def ask_since(self, names: Iterable[str]) -> None:
        """Report when these tasks became available or ended."""
        self._inbox.put(("since", tuple(names)))

    def refresh(self) -> None:
        """Look again now."""
        self._inbox.put(("refresh", ()))

    def open(self, *, read_only: bool = False) -> PostgresBoard:
        """The board for another thread."""
        return self._open(self._where, create=False, read_only=read_only)

    def stop(self, wait: float = 0.0) -> bool:
        """Stop, and wait so long for the end; False if the server has not answered by then."""
        self._ended = True
        self._inbox.put(("stop", ()))
        if self.is_alive():
            self.join(wait)
        return not self.is_alive()

    # The thread

    def run(self) -> None:
        """Follow the board until stopped."""
        while not self._ended:
            self._tries += 1
            try:
                self._follow()
            except DibsError as error:
                self._note_trouble(error)
            except Exception as error:  # no reader may end the watch
                self._note_trouble(StorageError(f"{shown(self._where)}: {error!r}"))
            if self._session is not None:
                self._session.close()
                self._session = None
            if not self._ended:
                self._rest(_RETRY[min(self._tries, len(_RETRY) - 1)])

    def _follow(self) -> None:
        """Connect, and follow the board until that fails."""
        self._busy(True)
        session = self._session = Session(self._where, this_host(), read_only=True)
        session.patience = 0
        session.connect()
        self._exits = ProcessExits(session.host, reap_dead=session.settings.reap_dead)
        self._begin(session)
        self._busy(False)
        while not self._ended:
            self._attend(session)
            self._busy(True)
            self._look(session)
            self._tries = 0
            self._busy(False)

    def _begin(self, session: Session) -> None:
        """Report the complete board, or what differs from what was reported before."""
        log = PostgresLog(session)
        self._now = session.now()
        self._look_at_rights(session)
        if self._cursor is None:
            new, cursor = list[Event](), log.end()
        else:
            new, cursor = log.since(self._cursor)
        self._look_for_pauses(session)
        if not self._complete:
            self._report_difference(session, self._listed(session, ended=False), ended=False)
        more: dict[str, Any] = {"events": tuple(new)}
        if self._cursor is None:
            since = self._now.fs / SECOND - _HISTORY
            more["rates"] = log.rates(since - _HISTORY, cursor, owners=True)
            more["events"] = tuple(log.recent(since, _REPORTED, cursor))
            self._reasons_read = False
        if not self._reasons_read:
            more["reasons_read"] = False
        self._complete = True
        self._report_difference(session, self._listed(session), **more)
        self._cursor = cursor
        if not self._reasons_read:
            ended = log.newest_first(verbs=ATTEMPTS_ENDED, until=cursor)
            failed = (task.id for task in self._tasks.values() if may_have_reason(task))
            self._search = ReasonSearch(ended, failed, self._now.fs / SECOND - PAST)

    def _look_at_rights(self, session: Session) -> None:
        """Find out whether this server, and this login, take changes."""
        (standby,) = session.row("SELECT pg_is_in_recovery()")
        why = "a standby takes no changes" if standby else _no_operator(session)
        found = self.health._replace(why_read_only=why, storage_read_only=bool(standby))
        self._set_health(found)  # before the first task is shown

    def _listed(self, session: Session, *, ended: bool = True) -> dict[str, Task]:
        found = reading.listed(session, () if ended else reading.APART)
        return {task.id: task for task in found}

    def _report_difference(
        self, session: Session, now: Mapping[str, Task], *, ended: bool = True, **more: Any
    ) -> None:
        """Report what differs from what was reported; without `ended` only what is not over."""
        before = self._tasks
        came = [task for ident, task in now.items() if before.get(ident) != task]
        went = [task for ident, task in before.items() if now.get(ident) != task]
        if not ended:
            went = [task for task in went if task.state not in _APART]
        self._report_names(session, came, went, ended=ended, **more)

    def _report_names(
        self,
        session: Session,
        came: Iterable[Task],
        went: Iterable[Task],
        *,
        ended: bool = True,
        since: Mapping[str, int] | None = None,
        **more: Any,
    ) -> None:
        """Report these names, in parts if they are many; the last part has everything else."""
        for new, old, follows in parts(tuple(came), tuple(went)):
            for task in old:
                self._holders.pop(task.name, None)
                self._doubted.pop(task.name, None)
                self._stale.pop(task.name, None)
                self._exits.forget(task.name)
                self._live.discard(task.name)
            live = [task.name for task in new if task.live]
            self._live.update(live)
            holders = self._holders_of(session, live)
            asked = self._questions_of(session, [task for task in new if task.state == ASKED])
            self._publish(
                added=new,
                removed=old,
                holders=holders,
                questions=asked,
                since=since or {},
                more=follows,
                complete=self._complete and ended and not follows,
                **({} if follows else more),
            )
            for task in old:
                if self._tasks.get(task.id) == task:
                    del self._tasks[task.id]
            self._tasks.update({task.id: task for task in new})

    def _publish(self, **found: Any) -> None:
        for key in ("holders", "questions", "since", "stale"):
            found[key] = MappingProxyType(dict(found.get(key, {})))
        found.setdefault("complete", self._complete)
        pauses, self._new_pauses = self._new_pauses, None
        self._report(Delta(now=self._now, pauses=pauses, **found))

    # One look

    def _look(self, session: Session) -> None:
        """Report what is new."""
        assert self._cursor is not None
        boot = session.boottime()
        rows = session.rows(_LOOK, position_of(self._cursor).new)
        self._now = session.sample(rows[0][1], boot)
        events = tuple(event_of(row[2:]) for row in rows if row[2] is not None)
        start = time.monotonic()
        due = start - self._beats_at >= _BEATS
        if due or any(not event.id for event in events):
            self._look_for_pauses(session)
        if events or self._new_pauses is not None:
            self._report_events(session, events)
        self._cursor = cursor_at(rows[0][0])
        if due:
            self._beats_at = start
            self._look_at_claims(session)
            self._look_for_waiters(session)
        if start - self._oldest_at >= _OLDEST_EVERY:
            self._oldest_at = start
            self._look_for_oldest(session)
        if self._search is not None:
            self._look_for_reasons(self._search)

    def _report_events(self, session: Session, events: tuple[Event, ...]) -> None:
        """Report events, and the last name that they gave to each id."""
        last: dict[str, Event] = {}
        for event in events:
            if event.id and event.verb not in NOTHING_MOVED and (event.src or event.dst):
                last[event.id] = event
        came: list[Task] = []
        went: list[Task] = []
        since: dict[str, int] = {}
        for ident, event in last.items():
            task, before = event.after, self._tasks.get(ident)
            if task == before:
                continue
            if before is not None:
                went.append(before)
            if task is not None:
                came.append(task)
                if not task.live and len(last) < _FEW:
                    since[task.name] = int(event.at * SECOND)
        if any(event.verb == "prioritize" or event.reason == "of prioritize" for event in events):
            since |= reading.since_of(session, list(since))
        self._report_names(session, came, went, since=since, events=events)

    def _look_for_reasons(self, search: ReasonSearch) -> None:
        """Report the next slice of what the log says about tasks that are not done."""
        found = search.read(_SEARCH)
        if found or search.done:
            self._publish(past=found, reasons_read=True if search.done else None)
        self._reasons_read = search.done
        self._search = None if search.done else search

    def _look_for_pauses(self, session: Session) -> None:
        pauses = pausing.in_force(session, self._now.fs)
        if pauses != self._pauses:
            self._pauses = self._new_pauses = pauses

    # Claims

    def _holders_of(self, session: Session, wanted: list[str]) -> dict[str, Holder]:
        """The holders of these claims now."""
        if not wanted:
            return {}
        return self._known(
            session.rows(f"{_CLAIMS} WHERE c.name = ANY (%s)", (wanted,)),
            {*wanted},
        )

    def _known(self, rows: Iterable[Any], live: Iterable[str]) -> dict[str, Holder]:
        """The holders of these rows that are new, or have beaten or noted."""
        assert self._session is not None
        found: dict[str, Holder] = {}
        for *row, doubted in rows:
            holder = reading.holder_of(self._session, tuple(row))
            if holder is None or holder.task.name not in live:
                continue
            name = holder.task.name
            if self._holders.get(name) != holder:
                found[name] = self._holders[name] = holder
                self._exits.note(name, holder.process)
            self._doubted[name] = doubted
            self._latest = max(self._latest, holder.beat, holder.noted, doubted)
        return found

    def _look_at_claims(self, session: Session) -> None:
        """Report the claims that have beaten or noted, and those that became stale."""
        self._exits.look()
        after = min(self._latest, self._now.fs) - _BACK  # the clock may have been ahead
        rows = session.rows(
            f"{_CLAIMS} WHERE c.beat > %s OR c.noted > %s OR c.doubted > %s",
            (after, after, after),
        )
        found = self._known(rows, self._live)
        now = self._verdicts(session)
        new: dict[str, Verdict | None] = {
            name: verdict for name, verdict in now.items() if self._stale.get(name) != verdict
        }
        new |= {name: None for name in self._stale if name not in now}
        if found or new:
            self._publish(holders=found, stale=new)
        self._stale = now

    def _verdicts(self, session: Session) -> dict[str, Verdict]:
        """Why claims are stale, of those that are."""
        ended, now = self._exits.ended, self._now
        found = {
            name: reaping.verdict(session, reaping.Suspect(holder, self._doubted[name]), now)
            for name, holder in self._holders.items()
            if holder.expired(now)
        }
        return found | {name: Verdict.DEAD for name in ended if name in self._holders}

    def _questions_of(self, session: Session, tasks: list[Task]) -> dict[str, Question]:
        """What asked tasks wait with; a person reads only a few."""
        found = {}
        for task in tasks[:_FEW]:
            rows = session.rows(
                "SELECT data FROM dibs.question WHERE eid = %s AND fence = %s AND answer = 0",
                (names.escape(task.id), task.fence),
            )
            if rows:
                found[task.name] = decode_question(task.fence, rows[0][0])[0]
        return found

    def _look_for_waiters(self, session: Session) -> None:
        found = reading.waiters(session, self._now.fs)
        if found != self._waiters:
            self._publish(waiters=found)
            self._waiters = found

    def _look_for_oldest(self, session: Session) -> None:
        rows = session.rows(
            "SELECT name, since FROM dibs.task WHERE state = 'available' ORDER BY since LIMIT %s",
            (_OLDEST,),
        )
        if rows:
            self._publish(since=dict(rows))

    # Health and requests

    def _attend(self, session: Session) -> None:
        """Handle requests until the next look is due."""
        until = time.monotonic() + EVERY
        while not self._ended:
            try:
                what, wanted = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return
            if what == "refresh":
                self._beats_at = 0.0
                return
            if what == "since":
                self._busy(True)
                self._publish(since=reading.since_of(session, wanted))
                self._busy(False)

    def _busy(self, busy: bool) -> None:
        """Note that the server is asked, or that it has answered and the board was seen."""
        now = time.monotonic()
        if busy:
            self.health = self.health._replace(busy=now)
            return
        session = self._session
        traits = ()
        if session is not None:
            pooled = ("behind a pooler",) if session.server.pooled else ()
            traits = (session.server.durability, *pooled)
        before = self.health
        found = Health(
            fresh=now,
            live=True,
            every=_BEATS,
            traits=traits,
            why_read_only=before.why_read_only,
            storage_read_only=before.storage_read_only,
        )
        self._set_health(found)

    def _note_trouble(self, error: DibsError) -> None:
        trouble = next(
            (each for kind, each in _TROUBLES if isinstance(error, kind)), Trouble.FAILED
        )
        found = self.health._replace(busy=0.0, live=False, trouble=trouble, cause=str(error))
        with suppress(Exception):  # a reader that fails must not hide why
            self._set_health(found)

    def _set_health(self, health: Health) -> None:
        """Replace the health; if more than its times has changed, report an empty delta."""
        changed = health.kind != self.health.kind
        self.health = health
        if changed:
            self._report(Delta(complete=self._complete))

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with suppress(Empty):
            while not self._ended:
                what, _ = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
                if what == "refresh":
                    return


def _no_operator(session: Session) -> str:
    """Why this login does no operator's act; empty if it may."""
    user, operates, works = session.row(_RIGHTS)
    if operates:
        return ""
    rights = "is a worker" if works else "may only look"
    return f"{user} {rights}: connect as an operator"
