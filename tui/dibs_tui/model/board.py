"""The board as the dashboard knows it: the sum of everything that its watch reported."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple, TypeVar

from dibs import Entry, Event, Health, Holder, Pause, Question, Rates, Sample, Task, Verdict, Waiter
from dibs.model.beat_history import BeatHistory
from dibs.model.delays import is_due, next_start
from dibs.model.delta import Delta
from dibs.model.entries import entry
from dibs.model.events import INTENT, REFUSED
from dibs.model.filters import FilterTerms, Test
from dibs.model.reasons import FAILURES
from dibs.model.task import CLAIMED, DONE, FAILED
from dibs.model.usual import Durations
from dibs.model.waiters import QUIET, untaken
from dibs_tui.model.brake import Brake
from dibs_tui.model.causes import missed_beat, silent_hosts
from dibs_tui.model.columns import COLUMNS, column_of, stale_since
from dibs_tui.model.due_times import DueTimes
from dibs_tui.model.folds import Fold, ListFolds, folds_of
from dibs_tui.model.hosts_gone import GoneHost, HostsGone
from dibs_tui.model.last_reasons import LastReasons
from dibs_tui.model.late_holders import LateHolders
from dibs_tui.model.oldest_waiting import OldestWaiting
from dibs_tui.model.owners import held
from dibs_tui.model.panels import PANELS
from dibs_tui.model.read_only_storage import ReadOnlyStorage
from dibs_tui.model.slot_lines import SlotLines
from dibs_tui.model.slow_storage import SlowStorage
from dibs_tui.model.sorted_tasks import Descending, Key, SortedTasks
from dibs_tui.model.task_line import TaskLine
from dibs_tui.model.wait_times import WaitTimes
from dibs_tui.text.ages import UNREAD, short
from dibs_tui.text.safe import clean

_FEED = 2000
REASON_UNREAD = f"reason {UNREAD}"
"""What a row shows whose reason is not read yet."""
_MOST_CHANGED = 5000
"""The most names that are kept to mark them as changed."""
_KEPT_CLAIMS = 2000
_INTENT_PATIENCE = 10.0
_AGED, _ASKED_AT_ONCE = 5000, 200
"""So many tasks that need attention have an age at most, and so many are asked for together."""
"""Seconds after which an act without an outcome is shown as unfinished."""
_PART = 500
"""The tasks that a list is filled with at once."""
_MANY = 100
"""More new names than this in one delta are not marked as changed, and are sorted in together."""


Kept = TypeVar("Kept")


class Rest:
    """The tasks that a list was not asked about yet."""

    def __init__(self, tasks: list[Task], whole: SortedTasks | None = None) -> None:
        """`tasks` are in reverse; or they are those of a list in the same order."""
        self._tasks = tasks
        self._whole = whole
        self.is_ordered = whole is not None
        """Whether the tasks come in the order of the list."""
        self._key: Key | None = None
        """The key of the last task taken from `whole`."""
        self.found: list[Task] = []
        """What belongs into the list of those from `whole`, in their order."""
        self.decided: dict[str, Task] = {}
        """The tasks that changed since by name, which are in the list if they belong there."""

    def __bool__(self) -> bool:
        return bool(self._tasks or self._whole is not None)

    def take(self, count: int) -> list[Task]:
        """The next tasks, which are no longer part of the rest."""
        if self._whole is None:
            part = self._tasks[: -count - 1 : -1]
            del self._tasks[-count:]
            return part
        part, self._key = self._whole.after(self._key, count)
        if self._key is None:
            self._whole = None
        return part


class Listing(NamedTuple):
    """One sorted list on the screen."""

    panel: str
    sorted_tasks: SortedTasks
    sort: str
    test: Test | None
    folds: ListFolds | None
    """Its folds; None for a list that has none."""
    value: Callable[[Task], object]
    """By what a task is sorted, without its fold."""
    rest: Rest

    def may_list(self, task: Task) -> bool:
        """Whether the list may hold this task now or once its claim is found to be stale."""
        states, state = PANELS[self.panel].states, task.state
        return state in states or (state in _LIVE and "stale" in states)


class BoardModel:
    """Everything that is known about one board, and the sorted lists on the screen."""

    def __init__(self, boottime: Callable[[], int] | None = None) -> None:
        """`boottime`: the clock that extrapolates the board's clock between two readings."""
        self.tasks: dict[str, Task] = {}
        self.holders: dict[str, Holder] = {}
        self.stale: dict[str, Verdict] = {}
        self.since: dict[str, int] = {}
        self.questions: dict[str, Question] = {}
        """What each asked task waits with, by name."""
        self.asked: dict[str, Task] = {}
        """The tasks that wait for an answer, by name."""
        self.beat_histories: dict[str, BeatHistory] = {}
        self.last_reasons = LastReasons()
        self.reasons = self.last_reasons.texts
        self.failures = self.last_reasons.failures
        self._folded_at = 0
        """The number of reasons when the lists were folded while the log was read."""
        self.failing: dict[str, Task] = {}
        """Unfinished tasks with at least one attempt, by name."""
        self._untried: dict[str, Task] = {}
        """Failed tasks without an attempt, by name: they were parked."""
        self._later: dict[str, Task] = {}
        """The later tasks, by name."""
        self.feed: deque[Event] = deque(maxlen=_FEED)
        self.rates = Rates()
        self.durations = Durations()
        """How long each kind of task usually takes; replaced when the log was read again."""
        self.waiters: tuple[Waiter, ...] = ()
        self._worker_seen = 0.0
        """When a worker had a live claim or waited last, in seconds of the board's clock."""
        self.causes_version = 0
        """Changes whenever tasks may share another cause."""
        self._hosts: Counter[str] = Counter()
        """The number of claims on each host, stale or not."""
        self._slot_lines = SlotLines()
        self._late = DueTimes()
        """When the next beat of each claim is overdue."""
        self._starts = DueTimes()
        """When each later task starts that was not due when it came."""
        self.oldest = OldestWaiting()
        self.counts: Counter[str] = Counter()
        """Tasks by the state in their name: stale claims count as claimed or held here."""
        self.strangers = 0
        self.pauses: tuple[Pause, ...] = ()
        """The pauses of new claims that are in force."""
        self.noted = False
        """Whether any holder had a note since the board was opened."""
        self.complete = False
        """Whether the watch has reported every task of the board."""
        self._boottime = boottime or _boottime
        self._opened = False
        self._begun = False
        """Whether the watch has reported every task that is not over."""
        self.exact = True
        self._listings: list[Listing] = []
        self._changed: dict[str, None] = {}
        """The names that came since the last key, the oldest first."""
        self._claimed_at: dict[str, float] = {}
        """When claims began, from the journal, by exact name."""
        self._took: dict[str, float] = {}
        """How many seconds the claims of done tasks took, by the name of the done task."""
        self.waiting_too_long = 900.0
        """The seconds of waiting after which an available task stands out."""
        self._wait_times = WaitTimes()
        self.late_holders = LateHolders()
        self.brake = Brake()
        self.check_command = ""
        """The command that tests the storage of this board; empty if there is none for it."""
        self.storage = ReadOnlyStorage()
        self._kind: tuple[object, ...] = ()
        """The health of the watch that the storage was last judged by, without its times."""
        self.hosts_gone = HostsGone()
        self._stale_locks = 0
        self._ended_claims: dict[str, Holder] = {}
        self._intents: dict[tuple[str, str], Event] = {}
        self._sample = Sample(0, 0)
        self.slow = SlowStorage()
        self._known_until: Sample | None = None
        """The time of the last look at a board that is not read now; None while it is."""

    # The clock

    @property
    def clock(self) -> Sample:
        """The board's clock now, extrapolated from its last reading."""
        passed = self._boottime() - self._sample.boot if self._sample.boot else 0
        return Sample(self._sample.fs + passed, self._sample.boot + passed)

    @property
    def now(self) -> Sample:
        """The time up to which the board is known, which every age and every lease counts to.

        It is that of the clock while the board is read, and stands still while it is not: a beat
        that could not be seen is not overdue.
        """
        return self.clock if self._known_until is None else self._known_until

    def note_health(self, health: Health, at: float) -> None:
        """Let the time stand still while the board is not read; `at` is the monotonic time.

        A storage that takes no changes stops workers: then bulk acts are locked as well.
        """
        self.slow.note(health, at)
        if self._opened and (health.storage_read_only or health.kind != self._kind):
            self._kind = health.kind
            self.storage.note(health, self)
            if self.storage.why:
                self.brake.note_read_only(self.storage.why, at)
        if not health.fresh or not (health.trouble or health.lag(at)):
            self._known_until = None
        elif self._known_until is None:
            unseen, clock = int((at - health.fresh) * 1e9), self.clock
            self._known_until = Sample(clock.fs - unseen, clock.boot - unseen)

    @property
    def age_prefix(self) -> str:
        """The prefix of ages that may be higher because the board's clock cannot be read."""
        return "" if self.exact else "≥"

    # What is shown

    def state_of(self, task: Task) -> str:
        """The state that operators see: the name's word, or `stale`."""
        return "stale" if task.name in self.stale else task.state

    def knows(self, *states: str) -> bool:
        """Whether every task in these states was reported; without states, in any.

        A watch reports tasks that are over, and free locks, after all others.
        """
        return self._opened or (self._begun and bool(states) and _LAST.isdisjoint(states))

    def count(self, state: str) -> int:
        """The number of tasks and locks in a state, as far as the model `knows` them."""
        if state == "stale":
            return len(self.stale)
        if state == "held":
            return self.counts[state] - self._stale_locks
        stale = len(self.stale) - self._stale_locks if state == "claimed" else 0
        return self.counts[state] - stale

    def backlog(self) -> int:
        """How many tasks have to be done: those that are available, and those that start later."""
        return self.count("available") + self.count("later")

    def next_start(self) -> float | None:
        """Seconds until the next later task is due, 0 if one is; None if none waits."""
        return next_start(self._later.values(), self.now.fs)

    def unfinished(self) -> Iterator[Task]:
        """The tasks that are not done after an attempt, and those that are failed without one."""
        return chain(self.failing.values(), self._untried.values())

    def untaken(self) -> int:
        """How many tasks are available while no worker works or waits, for some seconds.

        None are counted while the storage is suspect, which stops workers: another would stop too.
        """
        if self.brake.why(time.monotonic()):
            return 0
        first = self.oldest.first(self.tasks)
        if not self.complete or first is None:
            return 0
        since = max(int(self._worker_seen * 1e9), first[0])
        if self.now.fs - since < QUIET:
            return 0
        return untaken(self.count("available"), self._working_hosts(), self.pauses)

    def _working_hosts(self) -> Iterator[str]:
        """The host of each worker that waits or has a live claim of a task."""
        yield from (waiter.host for waiter in self.waiters)
        if not self.pauses:  # then the host does not matter, and every claim need not be read
            yield from [""] * bool(self.count("claimed"))
            return
        for name, holder in self.holders.items():
            if holder.task.state == CLAIMED and name not in self.stale:
                yield holder.host

    def _note_workers(self) -> None:
        if not untaken(1, self._working_hosts(), self.pauses):
            self._worker_seen = max(self._worker_seen, self.now.fs / 1e9)

    def entry(self, task: Task, now: Sample | None = None) -> Entry:
        """A task as filters and table cells read it."""
        row = entry(
            task,
            self.holders.get(task.name),
            now or self.now,
            self.since.get(task.name),
            question=self.questions.get(task.name) if self.asked else None,
        )
        state = self.state_of(task)
        if task.id in self.reasons and task.state != DONE:
            row = row._replace(reason=self.reasons[task.id])
        return row if row.state == state else row._replace(state=state)

    def line(self, task: Task) -> TaskLine:
        """A task as a table shows it now."""
        row = self.entry(task)
        state = row.state
        if task.name not in self.tasks:
            state = "gone"
        elif state in _LIVE and self.late(task.name):
            state = "late"
        return TaskLine(
            task,
            row,
            state,
            clean(self._slot_lines.title(task)),
            self.stale.get(task.name, ""),
            clean(self.reasons.get(task.id, "")) or self._why_no_reason(task),
            task.name in self._changed,
            self.age_prefix,
            self._usual(task, row),
            self._took.get(task.name),
            state == "available" and (row.age or 0) >= self.waiting_too_long,
        )

    def _why_no_reason(self, task: Task) -> str:
        return REASON_UNREAD if task.id in self.last_reasons.unread else ""

    def unread(self, states: Container[str]) -> int:
        """The number of tasks in these states whose last reasons are not read yet."""
        return sum(self.state_of(task) in states for task in self.last_reasons.unread.values())

    def fold_line(self, fold: Fold, *, is_open: bool) -> TaskLine:
        """The line of many tasks now, as a table shows it: the times are those of the first."""
        tasks = [task for name in fold.names if (task := self.tasks.get(name)) is not None]
        first = min(tasks, key=partial(_order, self), default=fold.head)
        row = self.entry(first)._replace(
            owner=fold.many, host=fold.host, note=fold.note, metadata="", question="", fence=0,
            attempts=0, reason=fold.note,
        )  # fmt: skip
        return TaskLine(
            fold.head, row, fold.head.state, fold.title, fold.verdict, fold.note,
            any(task.name in self._changed for task in tasks), self.age_prefix,
            fold="open" if is_open else "closed",
        )  # fmt: skip

    def _usual(self, task: Task, row: Entry) -> str:
        """How long its kind of task usually takes, if a claim takes unusually long."""
        if row.held is None or row.state == "stale":
            return ""
        usual = self.durations.too_long(task, row.held)
        return short(usual.median) if usual is not None else ""

    def is_late(self, name: str) -> bool:
        """Whether a claim is sorted as late; `fade` keeps that up to date."""
        return name in self._late

    def late(self, name: str) -> bool:
        """Whether a claim's beat is overdue by its own cadence."""
        history = self.beat_histories.get(name)
        return history is not None and history.late(self.now.fs)

    def cadence(self, name: str) -> float:
        """The usual seconds between two beats of a claim; 0 if too few were seen."""
        history = self.beat_histories.get(name)
        return history.cadence / 1e9 if history is not None and history.is_known else 0.0

    def ageless(self) -> list[str]:
        """Tasks that need attention and of which it is not known since when."""
        found = islice(chain(self.asked, self.failing), _AGED)
        missing = (name for name in found if name not in self.since and name not in self.holders)
        return list(islice(missing, _ASKED_AT_ONCE))

    # The lists

    def listing(
        self,
        panel: str,
        sort: str,
        test: Test | None = None,
        descending: bool = False,
        opened: set[str] | None = None,
        *,
        first: int | None = None,
        whole: Listing | None = None,
    ) -> Listing:
        """A panel's tasks, sorted and kept up to date until `close`.

        With `first`, only so many tasks of the board are looked at; `fill` does the rest. `whole`
        is the same list without a filter: what it has in order need not be sorted again.
        """
        states = PANELS[panel].states
        column = column_of(sort) or COLUMNS["id"]
        plain = partial(column.sort, self)

        def flipped(task: Task) -> Descending:
            return Descending(plain(task))

        value: Callable[[Task], object] = flipped if descending else plain
        rest = Rest([])
        if first is None or len(self.tasks) <= first:
            tasks = self._matching(states, test)
        elif whole is not None and not self._slot_lines and not (whole.folds and whole.folds.folds):
            rest, tasks = Rest([], whole.sorted_tasks), []
        else:
            rest = Rest(list(reversed(self.tasks.values())))
            tasks = self._matching(states, test, rest.take(first))
        if opened is None or not states & _FOLDABLE:
            found = SortedTasks(value, tasks, moving=column.moving)
            listing = Listing(panel, found, sort, test, None, value, rest)
        else:
            folds = ListFolds(opened)
            self._fold(folds, states, test, value)
            lines = [task for task in tasks if not folds.is_hidden(task.name)]
            lines += [fold.head for fold in folds.folds.values()]
            found = SortedTasks(
                lambda task: folds.value(task, value(task)),
                lines,
                moving=column.moving,
                stored=_FOLDABLE | frozenset(_LIVE),
            )
            listing = Listing(panel, found, sort, test, folds, value, rest)
        self._listings.append(listing)
        return listing

    def fill(self, listing: Listing, seconds: float) -> bool:
        """Look for about `seconds` at tasks that a list was not asked about; True if none is left.

        What changes in the meantime is put into the list as into any other.
        """
        rest, until = listing.rest, time.monotonic() + seconds
        while rest:
            self._fill_part(listing, rest.take(_PART))
            if time.monotonic() > until:
                break
        if not rest and rest.found:
            listing.sorted_tasks.merge(rest.found, without=rest.decided.values())
            rest.found = []
        return not rest

    def _fill_part(self, listing: Listing, part: list[Task]) -> None:
        rest, tasks, sorted_tasks = listing.rest, self.tasks, listing.sorted_tasks
        if rest.is_ordered:  # they are on the board, and in the states of the panel
            found = self._passing(part, listing.test)
        else:
            part = [t for t in part if t.name in tasks and t.name not in rest.decided]
            found = self._matching(PANELS[listing.panel].states, listing.test, part)
        if listing.folds is not None and listing.folds.folds:
            found = [task for task in found if not listing.folds.is_hidden(task.name)]
        if rest.is_ordered:
            still, found = sorted_tasks.parted(found)
            rest.found += still
            found = [task for task in found if task.name not in rest.decided]
        sorted_tasks.put_many(found)

    def _fold(
        self,
        folds: ListFolds,
        states: frozenset[str],
        test: Test | None,
        value: Callable[[Task], object],
    ) -> None:
        """Find the folds of a list again."""
        found = list(folds_of(self, states, test))
        tasks = self.tasks
        values = {f.head.name: min(value(tasks[n]) for n in f.names) for f in found}  # type: ignore[type-var]
        folds.replace(found, values)

    def refold(self, listing: Listing) -> None:
        """Fold a list by what is stale and failed now; only lines that belong elsewhere move."""
        folds = listing.folds
        if folds is None:
            return
        old, was = dict(folds.folds), {h: folds.head_value(f.head) for h, f in folds.folds.items()}
        self._fold(folds, PANELS[listing.panel].states, listing.test, listing.value)
        changed = {
            head
            for head in old.keys() | folds.folds.keys()
            if head not in old
            or head not in folds.folds
            or was[head] != folds.head_value(folds.folds[head].head)
        }
        moved = set[str]()
        for head in old.keys() | folds.folds.keys():
            before = set(old[head].names) if head in old else set[str]()
            after = set(folds.folds[head].names) if head in folds.folds else set[str]()
            moved |= before ^ after
            if head in changed and head in folds.opened:
                moved |= before | after
        for head in changed:
            if head in folds.folds:
                listing.sorted_tasks.put(folds.folds[head].head)
            else:
                listing.sorted_tasks.drop(old[head].head)
        for name in moved:
            task = self.tasks.get(name)
            if task is None:
                continue
            if self._belongs(listing, task):
                listing.sorted_tasks.put(task)
            else:
                listing.sorted_tasks.drop(task)

    def turn_fold(self, listing: Listing, fold: Fold) -> None:
        """Open a closed fold, or close an open one."""
        assert listing.folds is not None
        members = [task for name in fold.names if (task := self.tasks.get(name)) is not None]
        if fold.head.name in listing.folds.opened:
            listing.folds.opened.discard(fold.head.name)
            listing.sorted_tasks.force((), members)
        else:
            listing.folds.opened.add(fold.head.name)
            listing.sorted_tasks.force(members, ())

    def gone(self) -> list[GoneHost]:
        """The hosts that stopped, and whose claims were reaped, until that was seen."""
        alive = {*self._hosts, *(waiter.host for waiter in self.waiters)}
        return self.hosts_gone.gone(self.now.fs / 1e9, alive)

    def close(self, listing: Listing) -> None:
        """Stop updating a list."""
        self._listings = [kept for kept in self._listings if kept is not listing]

    def _matching(
        self, states: frozenset[str], test: Test | None, among: Iterable[Task] | None = None
    ) -> list[Task]:
        if not any(self.counts[state] for state in (*states, *(_LIVE if self.stale else ()))):
            return []
        tasks = self.tasks.values() if among is None else among
        if self.stale:
            found = [t for t in tasks if self.state_of(t) in states]
        else:
            found = [t for t in tasks if t.state in states]
        return self._passing(found, test)

    def _passing(self, tasks: list[Task], test: Test | None) -> list[Task]:
        """Those of the tasks that a list with this filter has lines for."""
        if test is None:
            return [t for t in tasks if not self._is_folded(t)] if self._slot_lines else tasks
        found = self._candidates(tasks, test)
        if isinstance(test, FilterTerms) and test.in_name:
            return found
        now = self.now
        return [t for t in found if test(self.entry(t, now))]

    def _candidates(self, tasks: list[Task], test: Test) -> list[Task]:
        """The tasks that can match; no row is made of the others, as there may be 100,000."""
        if not isinstance(test, FilterTerms):
            return tasks
        found = test.may_match(tasks)
        if test.may_match_unheld:
            return found
        reasons = self.reasons
        return [t for t in found if t.claim or t.state in _HOLDABLE or t.id in reasons]

    def _belongs(self, listing: Listing, task: Task) -> bool:
        if self.state_of(task) not in PANELS[listing.panel].states:
            return False
        if listing.folds is not None and listing.folds.is_hidden(task.name):
            return False
        if listing.test is None and self._is_folded(task):
            return False
        test = listing.test
        if isinstance(test, FilterTerms) and test.in_name:
            return bool(test.may_match((task,)))
        return test is None or test(self.entry(task))

    def _is_folded(self, task: Task) -> bool:
        """Whether the line of another slot stands for this one; a stale one has its own line."""
        return task.name not in self.stale and self._slot_lines.is_folded(task)

    def _update_lists(self, task: Task, listings: Sequence[Listing] | None = None) -> None:
        """Insert, move or remove a task in every list, or in these."""
        for listing in self._listings if listings is None else listings:
            if listing.rest:
                listing.rest.decided[task.name] = task
            if not listing.may_list(task):
                continue
            if self._belongs(listing, task):
                listing.sorted_tasks.put(task)
            else:
                listing.sorted_tasks.drop(task)

    # What the watch reports

    def apply(self, delta: Delta) -> None:
        """Apply one delta of the watch."""
        self._note_workers()
        if delta.now is not None:
            self._sample, self.exact = delta.now, delta.exact
            if delta.exact:
                self.brake.note_clock(delta.now.fs, delta.now.boot, delta.probe, time.monotonic())
        self.brake.note_probe(delta.probe, time.monotonic())
        was_complete, self.complete = self.complete, delta.complete
        self.strangers = delta.strangers
        if delta.pauses is not None:
            self.pauses = delta.pauses
        for task in delta.removed:
            self.tasks.pop(task.name, None)
            if self.last_reasons.unread:
                self.last_reasons.went(task)
            if self._later.pop(task.name, None) is not None:
                self._starts.drop(task.name)
        self.tasks.update([(task.name, task) for task in delta.added])
        if self.last_reasons.reading:
            for task in delta.added:
                self.last_reasons.came(task)
        if delta.reasons_read is False:
            self.last_reasons.begin(self.tasks)
            self.hosts_gone.begin()
        self.asked.update([(task.name, task) for task in delta.added if task.state == "asked"])
        self.questions.update(delta.questions)
        slots = self._slot_lines.apply(delta.removed, delta.added, self.tasks)
        self._wait_times.went(delta.removed, self.since)
        waiting = self._wait_times.corrected(delta.since) | self._wait_times.came(delta.added)
        aged = {n: at for n, at in waiting.items() if n in self.tasks and self.since.get(n) != at}
        self.since.update(aged)
        for name, at in aged.items():
            self.oldest.note(name, at)
        self.noted = self.noted or any(holder.noted for holder in delta.holders.values())
        for name, holder in delta.holders.items():
            if name in self.tasks:
                self._note_host(self.holders.get(name), holder)
                self.holders[name] = holder
                history = self.beat_histories.get(name, _NEW)
                ttl = 0.0 if holder.task.is_shell_claim else holder.ttl
                history = self.beat_histories[name] = history.with_beat(holder.beat, ttl)
                self._late.note(name, history.due())
        back = [n for n, v in delta.stale.items() if v is None and n in self.stale]
        found = [n for n, verdict in delta.stale.items() if self._set_verdict(n, verdict)]
        back = [name for name in back if name in self.tasks]
        was_open = self._opened
        self._opened = self._opened or (delta.complete and not delta.more)
        self._begun = self._begun or bool(delta.added and not delta.more)
        self.counts.update(map(_state, delta.added))
        self.counts.subtract(map(_state, delta.removed))
        if self._opened and (found or back or not was_open):
            self._judge_stale(back)
        self._update_all_lists(delta, aged, mark=was_complete)
        for slot in slots:
            self._update_lists(slot)
        later = [task for task in delta.added if task.not_before]
        self._later.update({task.name: task for task in later})
        for task in later:
            if not is_due(task, self.now.fs):
                self._starts.note(task.name, task.not_before * 10**9)
        self.causes_version += any(t.state == "failed" for t in (*delta.added, *delta.removed))
        self.failing.update({t.name: t for t in delta.added if t.attempts and t.state != "done"})
        self._untried.update(
            {t.name: t for t in delta.added if not t.attempts and t.state == FAILED}
        )
        if delta.rates is not None:  # this may be another board: forget the events of the last one
            self.feed.clear()
            self._intents.clear()
        known = set(self.late_holders.back)
        for event in delta.events:
            self.note(event)
        events = () if delta.reasons_read is False else delta.events  # they are searched for again
        for event in (*delta.past, *events):
            if event.verb == "reap":
                self.hosts_gone.note(event)
        if delta.past or delta.reasons_read:
            self._note_past(delta)
        if len(self.reasons) > self.last_reasons.prune_at:
            self.last_reasons.prune(self.tasks)
        if delta.rates is not None:  # these rates already count the events above
            self.rates = delta.rates.copy()
            self.late_holders.drop_ended(self.now.fs / 1e9, known)
        for stem in delta.late_beats:
            self.late_holders.note_beat(stem, self.now.fs / 1e9, self.held())
        if delta.waiters is not None:
            self.waiters = delta.waiters
            for waiter in delta.waiters:
                self.hosts_gone.note_sign(waiter.host, self.now.fs / 1e9)
        self._note_workers()

    def held(self) -> Iterable[Task]:
        """Every claimed task and held lock."""
        return (holder.task for holder in self.holders.values())

    def _note_host(self, before: Holder | None, now: Holder | None) -> None:
        """Count the claims of each host."""
        if before is not None:
            self._hosts[before.host] -= 1
            if not self._hosts[before.host]:
                del self._hosts[before.host]
        if now is not None:
            self._hosts[now.host] += 1
            self.hosts_gone.note_sign(now.host, now.beat / 1e9)

    def _set_verdict(self, name: str, verdict: Verdict | None) -> bool:
        """Apply the verdict on a claim; True if it was not stale before."""
        before = self.stale.pop(name, None)
        was = before is not None
        self.causes_version += before != verdict
        if verdict is not None:
            self.stale[name] = verdict
        if name.endswith(".held"):
            self._stale_locks += (verdict is not None) - was
        return verdict is not None and not was

    def _judge_stale(self, back: Collection[str] = ()) -> None:
        """Show the brake every stale claim whose process is not known to have exited.

        Once one is stale, it is shown those that missed their beats as well: the others of a
        storage that stopped expire in the next seconds.
        """
        doubted = [name for name, verdict in self.stale.items() if verdict is not Verdict.DEAD]
        found = [claim for claim in held(self, names=doubted) if claim.host]
        if found:
            found += silent_hosts(self)
        names = {claim.holder.task.name for claim in found}
        names.update(self.stale)
        back = {*back, *self.brake.returned(self.holders, names)}
        live = sum(self.counts[state] for state in _LIVE)
        self.brake.note_stale(map(missed_beat, found), live, time.monotonic(), back)

    def _update_all_lists(self, delta: Delta, aged: Iterable[str], *, mark: bool) -> None:
        """Apply a delta to every list."""
        for listing in self._listings:
            if listing.rest:
                listing.rest.decided.update({task.name: task for task in delta.removed})
            for task in delta.removed:
                if listing.may_list(task):
                    listing.sorted_tasks.drop(task)
        for task in delta.removed:
            self._forget(task)
        if len(delta.added) > _MANY:
            self._insert_many(delta.added)
        else:
            for task in delta.added:
                if mark and not delta.more:
                    _remember(self._changed, task.name, None)
                self._update_lists(task)
        placed = {task.name for task in delta.added}
        for name in {*delta.holders, *delta.stale, *aged} - placed:
            task_now = self.tasks.get(name)
            if task_now is not None:
                self._update_lists(task_now)

    def _insert_many(self, came: Iterable[Task]) -> None:
        """Insert names that are new on the board into every list where they belong."""
        now, in_state = self.now, dict[str, list[Task]]()
        for task in came:
            in_state.setdefault(self.state_of(task), []).append(task)
        for listing in self._listings:
            if listing.rest:
                listing.rest.decided.update({task.name: task for task in came})
            states, test = PANELS[listing.panel].states, listing.test
            found = [task for state in in_state.keys() & states for task in in_state[state]]
            if test is not None:
                if isinstance(test, FilterTerms):
                    found = test.may_match(found)
                if not (isinstance(test, FilterTerms) and test.in_name):
                    found = [task for task in found if test(self.entry(task, now))]
            elif self._slot_lines:
                found = [task for task in found if not self._is_folded(task)]
            if listing.folds is not None:
                found = [task for task in found if not listing.folds.is_hidden(task.name)]
            listing.sorted_tasks.put_many(found)

    def _forget(self, task: Task) -> None:
        name = task.name
        if name not in self.tasks:
            self._changed.pop(name, None)
            self._took.pop(name, None)
            self.since.pop(name, None)
            self.failing.pop(name, None)
            self._untried.pop(name, None)
            if self.asked.pop(name, None) is not None:
                self.questions.pop(name, None)
            if task.live:
                holder = self.holders.pop(name, None)
                self._note_host(holder, None)
                self._keep(name, holder)
                self.beat_histories.pop(name, None)
                self._late.drop(name)
                self._set_verdict(name, None)

    def _keep(self, name: str, holder: Holder | None) -> None:
        """Remember an ended claim until the log reports how it ended."""
        if holder is not None:
            self._ended_claims[name] = holder
            while len(self._ended_claims) > _KEPT_CLAIMS:
                del self._ended_claims[next(iter(self._ended_claims))]

    def note(self, event: Event) -> None:
        """Apply one event, from the log or as the watch saw it."""
        if event.verb == INTENT:  # shown only if no outcome follows
            self._intents[event.src, event.by] = event
            return
        if event.verb != REFUSED:
            self._intents.pop((event.src, event.by), None)
        self.feed.appendleft(event)
        self.rates.note(event.verb, event.at)
        self.rates.note_move(event.verb, event.src, event.dst, event.at)
        self.durations.note(event)
        if event.verb in ("claim", "done", "fail"):
            self._worker_seen = max(self._worker_seen, event.at)
        if event.verb in ("done", "fail"):
            self.rates.note_end(event.verb, event.by, event.at)
        self._correct_wait(event.dst, self._wait_times.note(event, self.since))
        self._note_end(event)
        known = self.holders.get(event.src) or self._ended_claims.get(event.src)
        self.late_holders.note(event, known, self.held())
        if event.verb in FAILURES or (event.verb == "done" and self.last_reasons.about(event.id)):
            self.causes_version += 1
            self.last_reasons.note(event, known)
        elif event.verb == "forget" or (
            event.verb == "undo" and (parked := event.before) and parked.state == FAILED
        ):
            self.causes_version += 1
            self.last_reasons.forget(event.id)

    def _note_end(self, event: Event) -> None:
        """Remember when a task ended and how long its claim took; lists show the newest first."""
        if event.verb in _STARTS:
            _remember(self._claimed_at, event.dst, event.at)
            return
        start = self._claimed_at.pop(event.src, None)
        task = self.tasks.get(event.dst)
        if task is None or task.state not in _ENDED:
            return
        if event.verb == "done" and start is not None:
            self._took[event.dst] = max(0.0, event.at - start)
        if event.dst not in self.since:
            self.since[event.dst] = int(event.at * 1e9)
            self._update_lists(task)

    def _note_past(self, delta: Delta) -> None:
        """Apply what the log says about the time before the board was opened."""
        last = self.last_reasons
        found = [task for task in map(last.note_past, delta.past) if task is not None]
        if delta.reasons_read:
            found += last.end()
        if delta.reasons_read or len(last.texts) > 2 * self._folded_at:  # folding reads all of them
            self._folded_at = len(last.texts)
            self.causes_version += 1
        shown = [one for one in self._listings if one.test or one.sort in _BY_REASON]
        for task in found:
            self._update_lists(task, shown)

    def _correct_wait(self, name: str, at: int | None) -> None:
        """Correct the waiting time of a task that waits for longer than its name exists."""
        task = self.tasks.get(name)
        if at is not None and task is not None and at < self.since.get(name, at + 1):
            self.since[name] = at
            self.oldest.note(name, at)
            self._update_lists(task)

    def report_unfinished_acts(self) -> None:
        """Add acts to the feed that began and have no outcome."""
        before = self.now.fs / 1e9 - _INTENT_PATIENCE
        for key, event in list(self._intents.items()):
            if event.at < before:
                del self._intents[key]
                self.feed.appendleft(event)

    def tick(self) -> None:
        """Sort again what is due since the last tick: beats that are overdue, and later tasks."""
        now = self.now.fs
        for name in (*self._late.came(now), *self._starts.came(now)):
            task = self.tasks.get(name)
            if task is not None:
                self._update_lists(task)
        if self._opened and (self.brake.stopped or (self.stale and self._late.any_came)):
            self._judge_stale()

    def seen(self) -> bool:
        """Forget what has changed, because the operator pressed a key; True if anything had."""
        had, self._changed = bool(self._changed), {}
        return had


def _order(model: BoardModel, task: Task) -> int:
    """The claim that is stale for longest, or the task that failed last, in front."""
    if task.name in model.holders:
        return stale_since(model, task)
    return -model.since.get(task.name, 0)


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _remember(kept: dict[str, Kept], name: str, value: Kept) -> None:
    """Keep a value by name; the oldest of too many go."""
    kept.pop(name, None)
    kept[name] = value
    while len(kept) > _MOST_CHANGED:
        del kept[next(iter(kept))]


_LIVE = ("claimed", "held")
_HOLDABLE = (*_LIVE, "asked")
"""The states in which a row can have an owner although the name has none."""
_ENDED = ("done", "failed")
_LAST = frozenset((*_ENDED, "free"))
"""The states that a watch reports last."""
_FOLDABLE = frozenset(("stale", "failed"))
_BY_REASON = ("reason", "note")
"""The columns whose order depends on reasons."""
_STARTS = ("claim", "resume")
_state = attrgetter("state")
_NEW = BeatHistory()
