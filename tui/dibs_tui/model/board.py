"""The board as the dashboard knows it, corrected by what the reader tells."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from dibs import Entry, Event, Facts, Rates, Sample, Task, Verdict
from dibs.entries import entry
from dibs.journal import INTENT, REFUSED
from dibs.rates import silent
from dibs_tui.model.aftermath import Aftermath
from dibs_tui.model.brake import Brake
from dibs_tui.model.causes import silence
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.line import Line
from dibs_tui.model.oldest import Oldest
from dibs_tui.model.owners import held
from dibs_tui.model.panels import PANELS
from dibs_tui.model.rhythm import Rhythm
from dibs_tui.model.roll import Flipped, Roll
from dibs_tui.model.seen import Seen
from dibs_tui.model.waited import Waited
from dibs_tui.text import clean

_FEED = 2000
_REASONS = 5000
_FLASH = 1.2
_OVER = 2000
_AT_IT = 10.0
"""Seconds after which an act without an outcome is told as such."""
_MANY = 5000
"""From so many at once on, a roll is sorted anew instead of corrected."""

Test = Callable[[Entry], bool]


class Listing(NamedTuple):
    """One roll that somebody shows."""

    panel: str
    roll: Roll
    sort: str
    test: Test | None

    def may_list(self, task: Task) -> bool:
        """Whether a task of that name can stand in it, whatever is found out about it."""
        states = PANELS[self.panel].states
        return task.state in states or (task.live and "stale" in states)


class BoardModel:
    """Everything that is known of one board, and the sorted rolls that are shown of it."""

    def __init__(self, tasks: Mapping[str, Task] | None = None) -> None:
        self.tasks: Mapping[str, Task] = tasks if tasks is not None else {}
        """The reader's own picture: at most one message ahead of the rolls."""
        self.facts: dict[str, Facts] = {}
        self.stale: dict[str, Verdict] = {}
        self.since: dict[str, int] = {}
        self.rhythms: dict[str, Rhythm] = {}
        self.reasons: dict[str, str] = {}
        """Why an id failed or was parked last."""
        self.failing: dict[str, Task] = {}
        """What was tried before and is not done."""
        self.feed: deque[Event] = deque(maxlen=_FEED)
        self.rates = Rates()
        self.oldest = Oldest()
        self.counts: Counter[str] = Counter()
        """By the word of the name; stale ones are counted as claimed or held here."""
        self.boottime: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        """The board's own, once there is a board."""
        self.strangers = 0
        self.whole = False
        self._told = False
        self.exact = True
        self._listings: list[Listing] = []
        self._flashes: dict[str, float] = {}
        self._waited = Waited()
        self.aftermath = Aftermath()
        self.brake = Brake()
        self._stale_locks = 0
        self._over: dict[str, Facts] = {}
        self._intents: dict[tuple[str, str], Event] = {}
        self._sample = Sample(0, 0)

    # The clock

    @property
    def now(self) -> Sample:
        """The board's clock, reckoned from when it was last read."""
        passed = self.boottime() - self._sample.boot if self._sample.boot else 0
        return Sample(self._sample.fs + passed, self._sample.boot + passed)

    @property
    def least(self) -> str:
        """What stands before ages where the board's clock cannot be read."""
        return "" if self.exact else "≥"

    # What is shown

    def state_of(self, task: Task) -> str:
        """The state in the operator's words."""
        return "stale" if task.name in self.stale else task.state

    def count(self, state: str) -> int:
        """How many tasks and locks are in a state."""
        if state == "stale":
            return len(self.stale)
        if state == "held":
            return self.counts[state] - self._stale_locks
        stale = len(self.stale) - self._stale_locks if state == "claimed" else 0
        return self.counts[state] - stale

    def entry(self, task: Task, now: Sample | None = None) -> Entry:
        """A task's row as filters and cells read it."""
        row = entry(task, self.facts.get(task.name), now or self.now, self.since.get(task.name))
        state = self.state_of(task)
        return row if row.state == state else row._replace(state=state)

    def line(self, task: Task) -> Line:
        """What a table shows of a task now."""
        row = self.entry(task)
        state = row.state
        if task.name not in self.tasks:
            state = "gone"
        elif state in _LIVE and self.late(task.name):
            state = "late"
        return Line(
            task,
            row,
            state,
            clean(task.id),
            self.stale.get(task.name, ""),
            clean(self.reasons.get(task.id, "")),
            task.name in self._flashes,
            self.least,
        )

    def late(self, name: str) -> bool:
        """Whether a claim misses its own cadence, though its lease still runs."""
        rhythm = self.rhythms.get(name)
        return rhythm is not None and rhythm.late(self.now.fs)

    def cadence(self, name: str) -> float:
        """The usual seconds between two beats of a claim; 0 where too few were seen."""
        rhythm = self.rhythms.get(name)
        return rhythm.cadence / 1e9 if rhythm is not None and rhythm.due() else 0.0

    # The rolls

    def listing(
        self, panel: str, sort: str, test: Test | None = None, descending: bool = False
    ) -> Listing:
        """A roll of a panel's tasks that is kept true from now on; `close` it when it goes."""
        states = PANELS[panel].states
        column = COLUMNS[sort]
        value = partial(column.sort, self)

        def flipped(task: Task) -> Flipped:
            return Flipped(value(task))

        tasks = self._fitting(states, test)
        roll = Roll(flipped if descending else value, tasks, moving=column.moving)
        listing = Listing(panel, roll, sort, test)
        self._listings.append(listing)
        return listing

    def close(self, listing: Listing) -> None:
        """Nobody shows it any more."""
        self._listings = [kept for kept in self._listings if kept is not listing]

    def _fitting(self, states: frozenset[str], test: Test | None) -> list[Task]:
        if not any(self.counts[state] for state in (*states, *(_LIVE if self.stale else ()))):
            return []  # or the reader's first listing is still going on
        tasks: Iterable[Task] = list(self.tasks.values())
        if self.stale:
            found = [t for t in tasks if self.state_of(t) in states]
        else:
            found = [t for t in tasks if t.state in states]
        now = self.now
        return found if test is None else [t for t in found if test(self.entry(t, now))]

    def _wanted(self, listing: Listing, task: Task) -> bool:
        if self.state_of(task) not in PANELS[listing.panel].states:
            return False
        return listing.test is None or listing.test(self.entry(task))

    def _place(self, task: Task) -> None:
        """Let a task stand in every roll where it belongs now."""
        for listing in self._listings:
            if not listing.may_list(task):
                continue
            if self._wanted(listing, task):
                listing.roll.put(task)
            else:
                listing.roll.drop(task)

    # What the reader tells

    def apply(self, seen: Seen) -> bool:
        """Take over what was found; whether any roll has to be made anew."""
        if seen.now is not None:
            self._sample, self.exact = seen.now, seen.exact
            if seen.exact:
                self.brake.sampled(seen.now.fs, seen.now.boot, seen.probe, time.monotonic())
        self.brake.probed(seen.probe, time.monotonic())
        was_whole, self.whole = self.whole, seen.whole
        self.strangers = seen.strangers
        self._waited.went(seen.went, self.since)
        since = {**self._waited.corrected(seen.since), **self._waited.came(seen.came)}.items()
        aged = {n: at for n, at in since if n in self.tasks and self.since.get(n) != at}
        self.since.update(aged)
        for name, at in aged.items():
            self.oldest.note(name, at)
        for name, facts in seen.facts.items():
            if name in self.tasks:
                self.facts[name] = facts
                self.rhythms[name] = self.rhythms.get(name, _NEW).heard(facts.beat)
        fell = [name for name, verdict in seen.stale.items() if self._judge(name, verdict)]
        if fell and self._told:
            self._fell_silent(fell)
        self.counts.update(map(_state, seen.came))
        self.counts.subtract(map(_state, seen.went))
        anew = len(seen.came) + len(seen.went) > _MANY or not self._told
        self._told = True
        self._move(seen, aged, rolls=not anew, flash=was_whole)
        self.failing.update({t.name: t for t in seen.came if t.attempts and t.state != "done"})
        if seen.rates is not None:  # another board, perhaps: what was told of the last is over
            self.feed.clear()
            self._intents.clear()
        for event in seen.events:
            self.note(event)
        self.rates = seen.rates or self.rates
        for stem in seen.ghosts:
            self.aftermath.heard(stem, self.now.fs / 1e9, self.held())
        return anew

    def silent(self) -> int:
        """How many stale claims expired so lately that they count in the rates."""
        stale = [facts for name in self.stale if (facts := self.facts.get(name)) is not None]
        return silent(stale, self.now.fs)

    def held(self) -> Iterable[Task]:
        """What is held now."""
        return (facts.task for facts in self.facts.values())

    def _judge(self, name: str, verdict: Verdict | None) -> bool:
        """Take over what was found of a claim; whether it became stale just now."""
        was = self.stale.pop(name, None) is not None
        if verdict is not None:
            self.stale[name] = verdict
        if name.endswith(".held"):
            self._stale_locks += (verdict is not None) - was
        return verdict is not None and not was

    def _fell_silent(self, names: Iterable[str]) -> None:
        found = [claim for claim in held(self, names=names) if claim.host]
        live = sum(self.counts[state] for state in _LIVE)
        self.brake.fell_silent(map(silence, found), live, time.monotonic())

    def _move(self, seen: Seen, aged: Iterable[str], *, rolls: bool, flash: bool) -> None:
        until = time.monotonic() + _FLASH
        for task in seen.went:
            if rolls:
                for listing in self._listings:
                    if listing.may_list(task):
                        listing.roll.drop(task)
            self._forget(task)
        if not rolls:
            return
        for task in seen.came:
            if flash:
                self._flashes[task.name] = until
            self._place(task)
        placed = {task.name for task in seen.came}
        for name in {*seen.facts, *seen.stale, *aged} - placed:
            task_now = self.tasks.get(name)
            if task_now is not None:
                self._place(task_now)

    def _forget(self, task: Task) -> None:
        name = task.name
        if name not in self.tasks:
            self.since.pop(name, None)
            self.failing.pop(name, None)
            if task.live:
                self._keep(name, self.facts.pop(name, None))
                self.rhythms.pop(name, None)
                self._judge(name, None)

    def _keep(self, name: str, facts: Facts | None) -> None:
        """Remember a claim that is over until the journal has told how it ended."""
        if facts is not None:
            self._over[name] = facts
            while len(self._over) > _OVER:
                del self._over[next(iter(self._over))]

    def note(self, event: Event) -> None:
        """Something that happened, by the journal or as it was seen."""
        if event.verb == INTENT:  # told once it is clear that no outcome follows
            self._intents[event.src, event.by] = event
            return
        if event.verb != REFUSED:
            self._intents.pop((event.src, event.by), None)
        self.feed.appendleft(event)
        self.rates.note(event.verb, event.at)
        self._begin_earlier(event.dst, self._waited.heard(event, self.since))
        known = self.facts.get(event.src) or self._over.get(event.src)
        self.aftermath.note(event, known, self.held())
        if event.verb in ("fail", "park", "reap") and event.reason:
            while len(self.reasons) >= _REASONS:
                del self.reasons[next(iter(self.reasons))]
            self.reasons[event.id] = event.reason

    def _begin_earlier(self, name: str, at: int | None) -> None:
        """A task that waits for longer than its name does."""
        task = self.tasks.get(name)
        if at is not None and task is not None and at < self.since.get(name, at + 1):
            self.since[name] = at
            self.oldest.note(name, at)
            self._place(task)

    def tell_crashes(self) -> None:
        """Tell of acts that were begun and of which no outcome came."""
        before = self.now.fs / 1e9 - _AT_IT
        for key, event in list(self._intents.items()):
            if event.at < before:
                del self._intents[key]
                self.feed.appendleft(event)

    def fade(self) -> bool:
        """End the flashes that are over; whether there were any."""
        now = time.monotonic()
        over = [name for name, until in self._flashes.items() if until <= now]
        for name in over:
            del self._flashes[name]
        return bool(over)


_LIVE = ("claimed", "held")
_state = attrgetter("state")
_NEW = Rhythm()
