"""The thread that follows a served board: the server's own watch, over a stream of events.

After a cut the server begins again with the complete board. What was reported before is compared
with that, so nothing is reported twice and nothing is missed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dibs.host import boottime, this_host
from dibs.model.delta import Delta, parts
from dibs.model.errors import BoardMissing, DibsError, StorageError
from dibs.model.health import Health, Trouble
from dibs.model.sample import SECOND, Sample
from dibs.remote import reading
from dibs.remote.sessions import RemoteSession
from dibs.remote.wire import MOST, NoAnswer, NoServer

if TYPE_CHECKING:
    from dibs.model.events import Event
    from dibs.model.evidence import Verdict
    from dibs.model.task import Task
    from dibs.remote.engine import RemoteBoard
    from dibs.remote.wire import HttpConnection

_RETRY = (0.1, 0.5, 1.0, 2.0)
"""Seconds until the server is asked again after trouble: less and less often."""
_LOOK = 0.1
"""Seconds between two looks at what other threads ask."""
_SILENCE = 10.0
"""Seconds without a word of the server, which says each second how it is, until it counts as
gone."""
_CONNECT = 10.0
_FEW = 500


class RemoteWatch(Thread):
    """Follows one board and calls `report` in this thread with each difference."""

    def __init__(
        self,
        where: str,
        report: Callable[[Delta], object],
        open_board: Callable[..., RemoteBoard],
    ) -> None:
        super().__init__(name="dibs-reader", daemon=True)
        self.health = Health()
        """The state of the watch; always replaced, never changed, so any thread may read it."""
        self._why = ""
        """Why the token does no operator's act; empty if it may."""
        self._where = where
        self._report = report
        self._open = open_board
        self._inbox: SimpleQueue[tuple[str, tuple[str, ...]]] = SimpleQueue()
        self._ended = False
        self._tries = 0
        self._tasks: dict[str, Task] = {}
        """The tasks as they were reported, by their exact names."""
        self._stale: dict[str, Verdict | None] = {}
        self._last: Event | None = None
        """The last event that was reported."""
        self._again: list[Delta] | None = None
        """The beginning of the complete board, after a cut."""
        self._begun = False
        """Whether the complete board was reported once."""
        self._now = Sample(0, 0)

    # Called from any thread

    def ask_since(self, names: Iterable[str]) -> None:
        """Report when these tasks became available or ended."""
        self._inbox.put(("since", tuple(names)))

    def refresh(self) -> None:
        """Read the complete board again now."""
        self._inbox.put(("refresh", ()))

    def open(self, *, read_only: bool = False) -> RemoteBoard:
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
            except NoServer as error:
                self._note_trouble(StorageError(f"{self._where}: {error}: start the server"))
            except Exception as error:  # no reader may end the watch
                self._note_trouble(StorageError(f"{self._where}: {error!r}"))
            if not self._ended:
                self._rest(_RETRY[min(self._tries, len(_RETRY) - 1)])

    def _follow(self) -> None:
        """Connect, and follow the board until that fails."""
        self.health = self.health._replace(busy=time.monotonic())
        session = RemoteSession(self._where, this_host(), read_only=True)
        stream = session.stream("/v1/watch", _CONNECT)
        try:
            self._why = _no_operator(session)
            session.close()  # a watch that is idle has only its stream
            self._again = [] if self._begun or self._tasks else None
            self._listen(session, stream)
        except NoAnswer as error:
            raise session.foreign(str(error)) from None
        finally:
            stream.close()
            session.close()

    def _listen(self, session: RemoteSession, stream: HttpConnection) -> None:
        data, heard = b"", time.monotonic()
        while not self._ended:
            more = stream.more(_LOOK)
            now = time.monotonic()
            if more:
                *lines, data = (data + more).split(b"\n")
                heard = now
                for line in lines:
                    if line.startswith(b"data:"):
                        self._take(session, line[5:])
                        heard = time.monotonic()
            elif now - heard > _SILENCE:
                raise NoServer("the server has not said anything for a while")
            if len(data) > MOST:
                raise NoAnswer("an event is too long")
            if not self._attend(session):
                return

    def _take(self, session: RemoteSession, data: bytes) -> None:
        """One event: what has changed, or only how the server's own watch is."""
        try:
            row = json.loads(data)
        except (ValueError, RecursionError):
            raise session.foreign("an event is not JSON") from None
        if not isinstance(row, dict):
            raise session.foreign("an event is no object")
        before = self.health
        if (health := row.pop("health", None)) is not None:
            self._note_health(session.read(Health, health))
        if "added" in row:
            self._tries = 0
            self._publish(session.read(Delta, row))
        elif self.health.kind != before.kind:
            self._report(Delta(complete=self._begun))

    def _note_health(self, health: Health) -> None:
        """The server's times are ages, because its clock is not this host's."""
        now = time.monotonic()
        fresh, busy, touching = (
            now - age if age >= 0 else 0.0 for age in (health.fresh, health.busy, health.touching)
        )
        why = health.why_read_only or self._why
        self.health = health._replace(
            fresh=fresh, busy=busy, touching=touching, every=2.0, why_read_only=why
        )

    def _publish(self, delta: Delta) -> None:
        if self._again is not None:
            self._again.append(delta)
            if delta.complete and not delta.more:
                found, self._again = self._again, None
                self._compare(found)
            return
        self._report(delta)
        self._note(delta)

    def _note(self, delta: Delta) -> None:
        self._now = delta.now or self._now
        for task in delta.removed:
            self._tasks.pop(task.name, None)
            self._stale.pop(task.name, None)
        self._tasks.update((task.name, task) for task in delta.added)
        self._stale.update(delta.stale)
        if delta.events:
            self._last = delta.events[-1]
        self._begun = self._begun or (delta.complete and not delta.more)

    def _compare(self, found: list[Delta]) -> None:
        """Report what differs from what was reported before the cut."""
        now: dict[str, Task] = {}
        more: dict[str, Any] = {key: {} for key in ("holders", "stale", "questions", "since")}
        for delta in found:
            for task in delta.removed:
                now.pop(task.name, None)
            now.update((task.name, task) for task in delta.added)
            for key, values in more.items():
                values.update(getattr(delta, key))
        last = found[-1]
        gone = [name for name, verdict in self._stale.items() if verdict is not None]
        more["stale"] = dict.fromkeys(gone) | more["stale"]
        more = {key: MappingProxyType(values) for key, values in more.items()}
        events = tuple(event for delta in found for event in delta.events)
        rates = next((delta.rates for delta in found if delta.rates is not None), None)
        if self._last is not None and self._last in events:  # the feed goes on where it was
            at = len(events) - events[::-1].index(self._last)
            events, rates = events[at:], None
        late = tuple(name for delta in found for name in delta.late_beats)
        more |= {"events": events, "rates": rates, "late_beats": late}
        more["past"] = tuple(event for delta in found for event in delta.past)
        read = (delta.reasons_read for delta in found[::-1])
        more["reasons_read"] = next((each for each in read if each is not None), None)
        more |= {"pauses": last.pauses or (), "waiters": last.waiters or ()}
        for delta in found:
            more |= {"pauses": delta.pauses} if delta.pauses is not None else {}
            more |= {"waiters": delta.waiters} if delta.waiters is not None else {}
        came = tuple(task for name, task in now.items() if name not in self._tasks)
        went = tuple(task for name, task in self._tasks.items() if name not in now)
        for new, old, follows in parts(came, went):  # those that went come first
            given = {} if follows else more
            part = last._replace(added=new, removed=old, more=follows, complete=True, **given)
            if follows:
                part = Delta(new, old, now=last.now, more=True)
            self._report(part)
            self._note(part)

    # What other threads ask, and trouble

    def _attend(self, session: RemoteSession) -> bool:
        """Do what other threads ask; False if the board has to be read again."""
        while True:
            try:
                what, wanted = self._inbox.get_nowait()
            except Empty:
                return True
            if what == "refresh":
                return False
            if what == "since":
                self._look_since(session, wanted)

    def _look_since(self, session: RemoteSession, wanted: tuple[str, ...]) -> None:
        known = [self._tasks[name] for name in wanted if name in self._tasks][:_FEW]
        since: dict[str, int] = {}
        last = self._now
        now = Sample(last.fs + boottime() - last.boot, boottime())
        for task, row in zip(known, reading.entries_of(session, known), strict=False):
            if row.age is not None and row.held is None:
                since[task.name] = now.fs - int(row.age * SECOND)
        self._report(Delta(since=MappingProxyType(since), now=now, complete=self._begun))

    def _note_trouble(self, error: DibsError) -> None:
        trouble = Trouble.MISSING if isinstance(error, BoardMissing) else Trouble.FAILED
        before = self.health
        self.health = before._replace(trouble=trouble, cause=str(error), busy=0.0, live=False)
        if before.kind != self.health.kind:
            with suppress(Exception):  # a reader that fails must not hide why
                self._report(Delta(complete=self._begun))

    def _rest(self, seconds: float) -> None:
        """Wait before the next try, unless asked for more."""
        end = boottime() + int(seconds * SECOND)
        while not self._ended and (left := end - boottime()) > 0:
            try:
                what, _ = self._inbox.get(timeout=left / SECOND)
            except Empty:
                return
            if what != "since":
                return


def _no_operator(session: RemoteSession) -> str:
    """Why the caller's token does no operator's act; empty if it may."""
    if session.role == "operator":
        return ""
    return f"{session.token_name} is the token of a {session.role}: ask for that of an operator"
