"""One board followed: what was heard is looked at, and everything else now and then.

Changes of names are told at once. Beats, which only move a bar, are gathered and told once a pass.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import heapify, heappop, heappush, nsmallest
from typing import Any

from dibs import Board, Event, Facts, Rates, Sample, Task, Verdict, View
from dibs.clock import SECOND
from dibs.names import read_any
from dibs.probing.fitness import grain
from dibs_tui.model.aftermath import BROKEN
from dibs_tui.model.seen import Seen
from dibs_tui.watching.events import FOLDERS
from dibs_tui.watching.processes import Processes

_RECORDS = ".dibs/records/"
_JOURNAL = ".dibs/journal/"
_AGAIN = 10.0
"""Seconds between two looks at every claim, whatever was heard."""
_SPARE = 25
"""A pass over everything may take one part in so many of a core."""
_OLDEST = 1000
_SLICE = 2000
_HISTORY = 1800.0
_TOLD = 5000
"""So many of the events before are told; the rates count them all."""
_QUICK = 0.1
_WATCHED = 200
"""So many claims that were broken are looked for in each pass where nothing is heard of them."""


class Follower:
    """What one thread knows of one open board, and what it has told."""

    def __init__(
        self,
        board: Board,
        report: Callable[[Seen], None],
        view: View,
        read_upto: dict[str, int] | None = None,
    ) -> None:
        self.live = False
        """Whether changes are heard; else every pass looks at everything."""
        self.exact = True
        self.local = False
        """Whether the board is on a disk of this kernel's own."""
        self.on_touch: Callable[[], None] = lambda: None
        """Called before the clock is read by touching the probe: the touch should be heard."""
        self.touching = 0.0
        """Since when a touch has had no answer, on the monotonic clock; 0 while none is made."""
        self.read_upto = read_upto
        """How far each journal was read and told; None before what happened lately was told."""
        self._board = board
        self._report = report
        self._view = view
        self._facts: dict[str, Facts] = {}
        self._stale: dict[str, Verdict] = {}
        self._ghosts: tuple[str, ...] = ()
        self._probe = 0.0
        self._untold_facts: dict[str, Facts] = {}
        self._untold_stale: dict[str, Verdict | None] = {}
        self._ends: list[tuple[int, str]] = []
        self._beaten: set[str] = set()
        self._broken: deque[str] = deque(maxlen=_WATCHED)
        self._news = True
        self._now = Sample(0, 0)
        self._clock_at = self._scan_at = self._claims_at = self._pass_at = 0.0
        self._oldest_at = self._rested = 0.0
        self._sweep: list[str] = []
        self._sweep_cost = 0.0
        self._ages: list[tuple[int, str]] = []
        self._grain = self._readings = 0
        self._processes = Processes(board)

    @property
    def whole_seconds(self) -> bool:
        """Whether the file system's clock has shown nothing finer, in more than one reading."""
        return self._readings > 1 and self._grain >= SECOND

    def begin(self) -> None:
        """Tell the board itself first."""
        change = self._view.scan()
        gc.freeze()  # what was listed stays: a collection need not go through it
        self._tell(change.came, change.went, whole=False)

    def complete(self) -> None:
        """Tell what has ended as well, and what happened before."""
        self._view.with_ended()
        change = self._view.scan()
        self._look_at(self._view.live.values())
        rates, events, upto = self._recent()
        self._tell(change.came, change.went, events=events, rates=rates)
        self.read_upto = upto
        self._scan_at = self._claims_at = time.monotonic()

    def due(self, every: float) -> float:
        """When the next pass is due, by the monotonic clock."""
        if self._beaten or self._news:
            return self._pass_at + min(every, 0.25 if self._news else every)
        return self._pass_at + every

    def forget_marks(self) -> None:
        """Let the next pass look at everything."""
        self._scan_at = self._claims_at = -1e9
        self._view.with_ended()

    def heard(self, paths: Iterable[str]) -> None:
        """These files changed, or their names came or went."""
        names = []
        for path in paths:
            if path in FOLDERS:  # not this or that name: anything in it may have changed
                self._scan_at = self._claims_at = 0.0
                self._news = True
            elif path.startswith(_RECORDS):
                self._beaten.add(path[len(_RECORDS) :])
            elif path.startswith(_JOURNAL):
                self._news = True
            elif path.endswith(".lock"):
                self._beaten.add(path[:-5])
            elif not path.startswith(".dibs"):
                names.append(path)
        if names:
            change = self._view.hint(names)
            if change:
                self._tell(change.came, change.went)

    def tell_since(self, names: Iterable[str]) -> None:
        """Since when these tasks wait."""
        self._report(self._seen(since=self._view.since(names)))

    def look(self) -> None:
        """One pass: whatever is due."""
        start = self._pass_at = time.monotonic()
        if start - self._clock_at > 2.0 or not self._now.boot:
            self._read_clock()
        self._scan_if_due(start)
        self._look_at(self._due_claims(start))
        events, upto = self._events() if self._news or not self.live else ((), self.read_upto)
        if events or self._untold_facts or self._untold_stale or self._ghosts:
            self._report(self._seen(events=events))
        self.read_upto = upto
        self._look_for_oldest(start)

    # Names

    def _scan_if_due(self, start: float) -> None:
        rest = max(self._view.rest, 5.0 if self.live else 0.0)
        if start < self._rested or start - self._scan_at < rest or self._view.unchanged():
            return
        change = self._view.scan()
        self._scan_at = time.monotonic()
        self._rested = self._scan_at + self._view.rest
        if change:
            self._tell(change.came, change.went)

    def _tell(
        self,
        came: tuple[Task, ...],
        went: tuple[Task, ...],
        *,
        events: tuple[Event, ...] = (),
        rates: Rates | None = None,
        whole: bool = True,
    ) -> None:
        for task in went:
            self._facts.pop(task.name, None)
            self._stale.pop(task.name, None)
            self._processes.forget(task.name)
        if not self._now.boot:
            self._read_clock()
        if self._view.live:
            self._look_at(task for task in came if task.live)
        since = self._view.since(t.name for t in came if not t.live) if len(came) < 200 else {}
        told = {"events": events, "rates": rates, "whole": whole}
        self._report(self._seen(since=since, came=came, went=went, **told))

    def _seen(self, **found: Any) -> Seen:
        """What was found, with all that was gathered and not yet told."""
        facts, self._untold_facts = self._untold_facts, {}
        stale, self._untold_stale = self._untold_stale, {}
        ghosts, self._ghosts = self._ghosts, ()
        return Seen(
            facts=facts,
            stale=stale,
            now=self._now,
            exact=self.exact,
            ghosts=ghosts,
            probe=self._probe,
            strangers=len(self._view.strangers),
            **found,
        )

    # Claims

    def _due_claims(self, start: float) -> list[Task]:
        """The claims to look at now: beaten, perhaps silent for too long, or all now and then."""
        live = self._view.live
        self._processes.look()
        if not self.live:
            self._beaten.update(self._broken)
        over = [
            stem for stem in self._beaten if not {f"{stem}.claimed", f"{stem}.held"} & live.keys()
        ]
        self._ghosts = tuple(self._view.lone(over))
        for stem in self._ghosts:
            with suppress(ValueError):  # it is told once
                self._broken.remove(stem)
        if start - self._claims_at >= (_AGAIN if self.live else 0.0):
            self._beaten.clear()
            return list(live.values())
        names = {f"{stem}.{word}" for stem in self._beaten for word in ("claimed", "held")}
        self._beaten.clear()
        while self._ends and self._ends[0][0] < self._now.fs:
            names.add(heappop(self._ends)[1])
        names.update(self._stale, self._processes.ended)
        return [live[name] for name in names if name in live]

    def _look_at(self, tasks: Iterable[Task]) -> None:
        tasks = list(tasks)
        start = time.thread_time()
        for name, facts in self._view.look(tasks).items():
            before = self._facts.get(name)
            if before is None or before.pulse != facts.pulse:
                self._untold_facts[name] = facts
                heappush(self._ends, (_end(facts), name))
            self._facts[name] = facts
            verdict = self._verdict(facts)
            if verdict != self._stale.get(name):
                self._untold_stale[name] = verdict
            if verdict is not None:
                self._stale[name] = verdict
            else:
                self._stale.pop(name, None)
        if len(self._ends) > 1000 + 4 * len(self._facts):  # most are of claims that are over
            self._ends = [(_end(facts), name) for name, facts in self._facts.items()]
            heapify(self._ends)
        if len(tasks) == len(self._view.live):
            self._claims_at = time.monotonic() + _SPARE * (time.thread_time() - start)

    def _verdict(self, facts: Facts) -> Verdict | None:
        """Whether a claim may be given back, and why; None where it may not."""
        self._processes.note(facts)
        if facts.task.name in self._processes.ended:
            return Verdict.DEAD
        return self._view.judge(facts, self._now, self.exact) if facts.expired(self._now) else None

    def _read_clock(self) -> None:
        self.on_touch()
        self.touching = start = time.monotonic()
        try:
            self._now, self.exact = self._at_least(*self._view.now(self._facts.values()))
        finally:
            self.touching = 0.0
        if self.exact:
            self._grain = grain((self._grain, self._now.fs))
            self._readings += 1
        self._clock_at = time.monotonic()
        self._probe = self._clock_at - start

    def _at_least(self, now: Sample, exact: bool) -> tuple[Sample, bool]:
        """The clock; where it cannot be read, the latest time that it must have reached by now.

        The newest time on the board may be last night's, so ages would begin at zero. A local disk
        has this kernel's clock; elsewhere it has gone on since it was read last.
        """
        if exact:
            return now, True
        before = self._now.fs + now.boot - self._now.boot if self._now.boot else 0
        own = time.time_ns() if self.local else 0
        return now._replace(fs=max(now.fs, before, own)), False

    # What happened

    def _recent(self) -> tuple[Rates | None, tuple[Event, ...], dict[str, int]]:
        """The last half hour, or what came since it was told; and how far that was read."""
        if self.read_upto is not None:
            return None, *self._events()
        self._news = False
        journal, since = self._board.journal, self._now.fs / 1e9 - _HISTORY
        upto = journal.ends()
        rates = journal.rates(since, upto)
        events = tuple(journal.recent(since, _TOLD, upto))
        self._watch(events)
        return rates, events, upto

    def _events(self) -> tuple[tuple[Event, ...], dict[str, int]]:
        """What happened since, and how far that was read: it is not told yet."""
        self._news = False
        upto = dict(self.read_upto or {})
        events = tuple(self._board.journal.follow(upto))
        self._watch(events)
        return events, upto

    def _watch(self, events: Iterable[Event]) -> None:
        """Note which claims were broken: a record of one that comes to be again is a beat."""
        for event in events:
            task = read_any(event.src) if event.verb in BROKEN else None
            if task is not None and task.live:
                self._broken.append(task.stem)

    # What has waited longest

    def _look_for_oldest(self, start: float) -> None:
        """A slice of the waiting tasks; the longest waiting are told when all were looked at."""
        if not self._sweep:
            if start < self._oldest_at:
                return
            self._sweep = [n for n in list(self._view.tasks) if n.endswith(".available")]
            self._ages, self._sweep_cost = [], 0.0
        before = time.thread_time()
        part, self._sweep = self._sweep[:_SLICE], self._sweep[_SLICE:]
        since = self._view.since(part)
        self._ages = nsmallest(_OLDEST, [*self._ages, *((at, name) for name, at in since.items())])
        self._sweep_cost += time.thread_time() - before
        if not self._sweep:
            self._oldest_at = time.monotonic() + max(60.0, 2 * _SPARE * self._sweep_cost)
            self._report(self._seen(since={name: at for at, name in self._ages}))


def _end(facts: Facts) -> int:
    """When a claim's lease ends unless it is beaten again."""
    return facts.beat + int(facts.ttl * 1e9)
