"""Follow one board: hints are checked at once, and everything else now and then.

Changes of names are reported at once. Heartbeats are collected and reported once in a pass.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dibs.files.board_files import RECORDS, WATCHED
from dibs.files.board_index import BoardIndex
from dibs.files.probing.abilities import grain
from dibs.model.delta import Delta, DeltaPart, parts
from dibs.model.events import REVOKING
from dibs.model.evidence import Verdict
from dibs.model.names import PAUSED, read_any
from dibs.model.reasons import ATTEMPTS_ENDED, PAST, ReasonSearch, may_have_reason
from dibs.model.sample import SECOND, Sample
from dibs.model.task import ASKED
from dibs.process_exits import ProcessExits

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model.events import Cursor, Event
    from dibs.model.holder import Holder
    from dibs.model.pauses import Pause
    from dibs.model.rates import Rates
    from dibs.model.task import Task
    from dibs.model.waiters import Waiter

_RECORDS = f"{RECORDS}/"
_JOURNAL = ".dibs/journal/"
_AGAIN = 10.0
"""Seconds between two passes over every name and every claim, regardless of hints."""
_SPARE = 25
"""A pass over everything may take 1/25 of a core."""
_WAITERS = 2.0
"""Seconds between two looks at the workers that wait."""
_OLDEST = 1000
_SLICE = 4000
_HISTORY = 1800.0
_REPORTED = 5000
"""So many past events are reported at most; the rates count all of them, and why tasks are not
done is searched for in the complete log."""
_SEARCH = 0.05
"""Seconds for which the log is searched before hints and names have their turn."""
_ASKED = 200
"""So many questions of one part are read at most; a person reads fewer."""
_QUICK = 0.1
_WATCHED_FOR = 200
"""So many revoked claims are checked in each pass where no hints arrive."""


class BoardTracker:
    """What one thread knows of an open board, and what it has reported."""

    def __init__(
        self,
        store: BoardFiles,
        report: Callable[[Delta], object],
        before: BoardTracker | None = None,
        *,
        same_board: bool = True,
        local: bool = False,
        touching: Callable[[float], None] = lambda since: None,
    ) -> None:
        """With the tracker `before`, report only what differs from what that one has reported.

        `local`: the board is on a disk of this kernel. `touching` is called with the monotonic time
        before the probe is touched to read the clock, and with 0 afterwards.
        """
        self.exact = True
        self._log = store.journal
        self._report = report
        self._local = local
        self._touching = touching
        known = before.reported() if before is not None else None
        self._index = BoardIndex(store, ended=bool(known), known=known)
        self._read_to: Cursor | None = None
        """How far the log was read and reported; None until the recent past was reported."""
        if before is not None and same_board:
            self._read_to = before._read_to
        self._parts: deque[DeltaPart] = deque()
        """Changes in the index that were not reported yet."""
        self._facts: dict[str, Facts] = {}
        self._stale: dict[str, Verdict] = before._stale if before is not None else {}
        self._search: ReasonSearch | None = None
        """What is still to be found in the log; the board is shown before it ends."""
        self._reasons_read: bool = before is not None and same_board and before._reasons_read
        self._late_beats: tuple[str, ...] = ()
        self._pauses: tuple[Pause, ...] | None = None
        self._new_pauses: tuple[Pause, ...] | None = None
        self._probe = 0.0
        self._complete = False
        self._new_facts: dict[str, Facts] = {}
        self._new_stale: dict[str, Verdict | None] = before._new_stale if before is not None else {}
        self._notes: dict[str, int] = {}
        """When each claim's note was written that was reported last."""
        self._ends: list[tuple[int, str]] = []
        self._beaten: set[str] = set()
        self._revoked: deque[str] = deque(maxlen=_WATCHED_FOR)
        self._news = True
        self._now = Sample(0, 0)
        self._clock_at = self._scan_at = self._claims_at = self._pass_at = 0.0
        self._oldest_at = self._rested = self._waiters_at = 0.0
        self._waiters: tuple[Waiter, ...] = before._waiters if before is not None else ()
        """The workers that were reported to wait."""
        self._sweep: list[str] = []
        self._sweep_cost = 0.0
        self._ages: list[tuple[int, str]] = []
        self._grain = self._readings = 0
        self._exits = ProcessExits(store.host, reap_dead=store.settings.reap_dead)

    @property
    def ticks_in_seconds(self) -> bool:
        """Whether several readings of the file system's clock have shown only whole seconds."""
        return self._readings > 1 and self._grain >= SECOND

    def reported(self) -> dict[str, Task]:
        """The tasks as they were reported, which is behind the index if a report failed."""
        tasks = self._index.tasks.copy()
        for came, went, _ in self._parts:
            for task in came:
                tasks.pop(task.name, None)
            tasks.update({task.name: task for task in went})
        return tasks

    def begin(self) -> None:
        """Report the available and claimed tasks, which is the first part of a board."""
        change = self._index.scan()
        self._look_for_pauses()
        self._report_names(change.added, change.removed)

    def complete(self) -> None:
        """Report the ended tasks and the recent events, which completes the board."""
        self._index.with_ended()
        change = self._index.scan()
        self._look_at(self._index.live.values())
        rates, events, read_to = self._recent()
        self._report_names(change.added, change.removed, events=events, rates=rates, completes=True)
        self._read_to = read_to
        if not self._reasons_read:
            ended = self._log.newest_first(verbs=ATTEMPTS_ENDED, until=read_to)
            failed = (task.id for task in self._index.tasks.values() if may_have_reason(task))
            self._search = ReasonSearch(ended, failed, self._now.fs / 1e9 - PAST)
        self._scan_at = self._claims_at = time.monotonic()

    @property
    def searching(self) -> bool:
        """Whether the log is still searched for why tasks are not done."""
        return self._search is not None

    def search(self) -> None:
        """Report the next slice of what the log says about tasks that are not done."""
        if self._search is None:
            return
        found, done = self._search.read(_SEARCH), self._search.done
        self._reasons_read = done
        if found or done:
            self._report(self._delta(past=found, reasons_read=True if done else None))
        self._search = None if done else self._search

    def due(self, every: float) -> float:
        """When the next pass is due, on the monotonic clock."""
        if self._beaten or self._news:
            return self._pass_at + min(every, 0.25 if self._news else every)
        return self._pass_at + every

    def forget_marks(self) -> None:
        """Make the next pass read everything."""
        self._scan_at = self._claims_at = -1e9
        self._index.with_ended()

    def hinted(self, paths: Iterable[str]) -> None:
        """Check these files, which have changed, or whose names came or went."""
        names = []
        for path in paths:
            if path in WATCHED:  # a folder: anything in it may have changed
                self._scan_at = self._claims_at = 0.0
                self._news = True
            elif path.startswith(_RECORDS):
                self._beaten.add(path[len(_RECORDS) :])
            elif path.startswith((_JOURNAL, PAUSED)):
                self._news = True
            elif path.endswith(".lock"):
                self._beaten.add(path[:-5])
            elif not path.startswith(".dibs"):
                names.append(path)
        if names:
            change = self._index.hint(names)
            if change.added or change.removed:
                self._report_names(change.added, change.removed)

    def report_since(self, names: Iterable[str]) -> None:
        """Report when these tasks became available or ended."""
        self._report(self._delta(since=self._index.since(names)))

    def look(self, *, hinted: bool) -> None:
        """One pass over everything that is due; with hints that is less."""
        start = self._pass_at = time.monotonic()
        if start - self._clock_at > 2.0 or not self._now.boot:
            self._read_clock()
        self._scan_if_due(start, hinted)
        self._look_at(self._due_claims(start, hinted))
        if self._index.noted_since():
            self._look_for_notes()
        self._look_for_pauses()
        events, read_to = self._events() if self._news or not hinted else ((), self._read_to)
        found = events or self._new_facts or self._new_stale or self._late_beats
        if found or self._new_pauses is not None:
            self._report(self._delta(events=events))
        self._read_to = read_to
        self._look_for_waiters(start)
        self._look_for_oldest(start)

    def _look_for_pauses(self) -> None:
        """Find out which pauses are in force; without any this costs one call."""
        pauses = self._index.pauses()
        if pauses != self._pauses:
            self._pauses = self._new_pauses = pauses

    # Names

    def _scan_if_due(self, start: float, hinted: bool) -> None:
        rest = max(self._index.rest, _AGAIN if hinted else 0.0)
        if start < self._rested or start - self._scan_at < rest or self._index.unchanged():
            return
        change = self._index.scan()
        self._scan_at = time.monotonic()
        self._rested = self._scan_at + self._index.rest
        if change.added or change.removed:
            self._report_names(change.added, change.removed)

    def _report_names(
        self,
        came: tuple[Task, ...],
        went: tuple[Task, ...],
        *,
        events: tuple[Event, ...] = (),
        rates: Rates | None = None,
        completes: bool = False,
    ) -> None:
        """Report these names, in parts if they are many; the last part has everything else."""
        self._parts.extend(parts(came, went))
        if not self._now.boot:
            self._read_clock()
        while self._parts:
            new, old, more = self._parts[0]
            for task in old:
                self._facts.pop(task.name, None)
                self._stale.pop(task.name, None)
                self._exits.forget(task.name)
            if self._index.live:
                self._look_at(task for task in new if task.live)
            since = self._index.since(t.name for t in new if not t.live) if len(came) < 200 else {}
            self._complete = self._complete or (completes and not more)
            last: dict[str, Any] = {} if more else {"events": events, "rates": rates}
            if completes and not more and not self._reasons_read:  # with the events before it
                last["reasons_read"] = False
            if self._index.asked:
                asked = islice((task for task in new if task.state == ASKED), _ASKED)
                last["questions"] = MappingProxyType(self._index.questions(asked))
            self._report(self._delta(added=new, removed=old, since=since, more=more, **last))
            self._parts.popleft()

    def _delta(self, *, since: dict[str, int] | None = None, **found: Any) -> Delta:
        """What was found, with everything that was collected and not reported yet."""
        facts, self._new_facts = self._new_facts, {}
        stale, self._new_stale = self._new_stale, {}
        late_beats, self._late_beats = self._late_beats, ()
        pauses, self._new_pauses = self._new_pauses, None
        return Delta(
            holders=MappingProxyType(self._holders(facts)),
            stale=MappingProxyType(stale),
            since=MappingProxyType(since or {}),
            now=self._now,
            exact=self.exact,
            late_beats=late_beats,
            probe=self._probe,
            strangers=len(self._index.strangers),
            complete=self._complete,
            pauses=pauses,
            **found,
        )

    # Claims

    def _due_claims(self, start: float, hinted: bool) -> list[Task]:
        """The claims to read now: beaten, perhaps expired, or now and then all of them."""
        live = self._index.live
        self._exits.look()
        if not hinted:
            self._beaten.update(self._revoked)
        over = [
            stem for stem in self._beaten if not {f"{stem}.claimed", f"{stem}.held"} & live.keys()
        ]
        self._late_beats = tuple(self._index.lone(over))
        for stem in self._late_beats:
            with suppress(ValueError):  # report it once
                self._revoked.remove(stem)
        if start - self._claims_at >= (_AGAIN if hinted else 0.0):
            self._beaten.clear()
            return list(live.values())
        names = {f"{stem}.{word}" for stem in self._beaten for word in ("claimed", "held")}
        self._beaten.clear()
        while self._ends and self._ends[0][0] < self._now.fs:
            names.add(heappop(self._ends)[1])
        names.update(self._stale, self._exits.ended)
        return [live[name] for name in names if name in live]

    def _look_at(self, tasks: Iterable[Task]) -> None:
        tasks = list(tasks)
        start = time.thread_time()
        for name, facts in self._index.look(tasks).items():
            before = self._facts.get(name)
            if before is None or before.pulse != facts.pulse:
                self._new_facts[name] = facts
                heappush(self._ends, (_end(facts), name))
            self._facts[name] = facts
            verdict = self._verdict(facts)
            if verdict != self._stale.get(name):
                self._new_stale[name] = verdict
            if verdict is not None:
                self._stale[name] = verdict
            else:
                self._stale.pop(name, None)
        if len(self._ends) > 1000 + 4 * len(self._facts):  # most belong to ended claims
            self._ends = [(_end(facts), name) for name, facts in self._facts.items()]
            heapify(self._ends)
        if len(tasks) == len(self._index.live):
            self._claims_at = time.monotonic() + _SPARE * (time.thread_time() - start)

    def _holders(self, facts: dict[str, Facts]) -> dict[str, Holder]:
        """The holders of these claims with their last notes."""
        if not facts:
            return {}
        found = self._index.holders(facts)
        self._notes.update({name: holder.noted for name, holder in found.items() if holder.noted})
        return found

    def _look_for_notes(self) -> None:
        """Report the holders again that have noted something else."""
        self._notes = {n: at for n, at in self._notes.items() if n in self._facts}
        for name, holder in self._index.holders(self._facts).items():
            if holder.noted != self._notes.get(name, 0):
                self._notes[name] = holder.noted
                self._new_facts[name] = self._facts[name]

    def _verdict(self, facts: Facts) -> Verdict | None:
        """Why a claim is stale; None if it is not."""
        self._exits.note(facts.task.name, facts.process)
        if facts.task.name in self._exits.ended:
            return Verdict.DEAD
        return self._index.judge(facts, self._now, self.exact) if facts.expired(self._now) else None

    def _read_clock(self) -> None:
        start = time.monotonic()
        self._touching(start)
        try:
            self._now, self.exact = self._at_least(*self._index.now(self._facts.values()))
        finally:
            self._touching(0.0)
        if self.exact:
            self._grain = grain((self._grain, self._now.fs))
            self._readings += 1
        self._clock_at = time.monotonic()
        self._probe = self._clock_at - start

    def _at_least(self, now: Sample, exact: bool) -> tuple[Sample, bool]:
        """The time; if it cannot be read, the latest time that must have passed by now.

        The newest time on the board may be from last night, so ages would start at zero. A local
        disk has this kernel's clock; elsewhere the last reading is extrapolated.
        """
        if exact:
            return now, True
        before = self._now.fs + now.boot - self._now.boot if self._now.boot else 0
        own = time.time_ns() if self._local else 0
        return now._replace(fs=max(now.fs, before, own)), False

    # What happened

    def _recent(self) -> tuple[Rates | None, tuple[Event, ...], Cursor]:
        """The last half hour, or the events since the last report; and how far it was read."""
        if self._read_to is not None:
            return None, *self._events()
        self._news = False
        log, since = self._log, self._now.fs / 1e9 - _HISTORY
        read_to = log.end()
        rates = log.rates(since - _HISTORY, read_to, owners=True)
        events = tuple(log.recent(since, _REPORTED, read_to))
        self._note_revoked(events)
        return rates, events, read_to

    def _events(self) -> tuple[tuple[Event, ...], Cursor]:
        """The new events, and how far they were read; they are not reported yet."""
        self._news = False
        events, read_to = self._log.since(self._read_to)
        self._note_revoked(events)
        return tuple(events), read_to

    def _note_revoked(self, events: Iterable[Event]) -> None:
        """Remember revoked claims: if the record of one is written again, it was beaten late."""
        for event in events:
            task = read_any(event.src) if event.verb in REVOKING else None
            if task is not None and task.live:
                self._revoked.append(task.stem)

    def _look_for_waiters(self, start: float) -> None:
        """Report the workers that wait for tasks, if that has changed."""
        if start < self._waiters_at:
            return
        before = time.thread_time()
        found = self._index.waiters(lambda: self._now)
        cost = time.thread_time() - before
        self._waiters_at = time.monotonic() + max(_WAITERS, 2 * _SPARE * cost)
        if found != self._waiters:
            self._report(self._delta(waiters=found))
            self._waiters = found

    # The tasks that have been available longest

    def _look_for_oldest(self, start: float) -> None:
        """Read a slice of the available tasks, and report the oldest after the last slice."""
        if not self._sweep:
            tasks = self._index.tasks
            still = bool(self._ages) and all(name in tasks for _, name in self._ages)
            if start < self._oldest_at or still:  # what came since is younger than these
                return
            self._sweep = [n for n in tasks if n.endswith(".available")]
            self._ages, self._sweep_cost = [], 0.0
        before = time.thread_time()
        part, self._sweep = self._sweep[:_SLICE], self._sweep[_SLICE:]
        since = self._index.since(part)
        self._ages = sorted([*self._ages, *((at, name) for name, at in since.items())])[:_OLDEST]
        self._sweep_cost += time.thread_time() - before
        if not self._sweep:
            self._oldest_at = time.monotonic() + max(60.0, 2 * _SPARE * self._sweep_cost)
            self._report(self._delta(since={name: at for at, name in self._ages}))


def _end(facts: Facts) -> int:
    """When a claim's lease ends if it is not beaten again."""
    return facts.beat + int(facts.ttl * 1e9)
