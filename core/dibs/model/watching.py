"""What a watch of the board has to report: every transition, and what no transition shows.

`Observer` turns the deltas of a `Watch` into occurrences, each reported once. `SOURCES` lists where
they come from: a new kind of occurrence is one more function there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dibs.model.beat_history import BeatHistory
from dibs.model.entries import Entry, entry
from dibs.model.events import INTENT, LEDGER, NOT_DONE, REFUSED, ROTATED, Event
from dibs.model.evidence import Verdict
from dibs.model.names import read_any
from dibs.model.safe_text import age
from dibs.model.sample import SECOND, Sample
from dibs.model.task import FREE
from dibs.model.waiters import BROKEN, waiter_entry

if TYPE_CHECKING:
    from dibs.model.delta import Delta
    from dibs.model.filters import Test
    from dibs.model.health import Health
    from dibs.model.holder import Holder
    from dibs.model.task import Task
    from dibs.model.usual import Durations

STALE, LATE, LONG, BACK, MOVED = "stale", "late", "long", "back", "moved"
TROUBLE, RECOVERED = "trouble", "recovered"
GRACE = 3.0
"""Seconds to wait for the event of a name that came or went, before it counts as not logged."""
HANGS = 10.0
"""Seconds without an answer after which the storage is reported; a busy machine is not."""
_LOOKS = 3
"""So many looks must find it hanging: a process that was stopped did not read meanwhile."""
_FRESH = 2.0
"""Seconds by which a reading may be overdue for the heartbeats in it to count as the newest."""
_UNSEEN = (INTENT, NOT_DONE, ROTATED, LEDGER)
"""Verbs of lines that report no transition of their own."""
_KEPT = 10_000
K = TypeVar("K")
V = TypeVar("V")


class Occurrence(NamedTuple):
    """One thing that happened on a board, or that was noticed there."""

    at: float
    """Seconds on the board's clock, approximately."""
    what: str
    """The verb of a transition, or one of the constants above."""
    text: str
    """One line that says more; not made safe for a terminal."""
    entry: Entry | None = None
    """The task or lock; None if it concerns the board."""
    event: Event | None = None
    """The transition, if the log has it."""

    @property
    def id(self) -> str:
        """The id of the task or lock; empty if it concerns the board."""
        return self.entry.id if self.entry is not None else ""

    def fields(self) -> dict[str, object]:
        """The occurrence as JSON fields."""
        found: dict[str, object] = {"at": round(self.at, 3), "what": self.what, "text": self.text}
        if self.entry is not None:
            for key in ("id", "kind", "state", "claim", "owner", "host", "metadata"):
                found[key] = getattr(self.entry, key)
        if self.event is not None:
            found |= {key: getattr(self.event, key) for key in ("src", "dst", "by", "reason")}
        return found


class _NameChange(NamedTuple):
    """A name that came or went and that the log does not explain yet."""

    task: Task
    since: float


class Observer:
    """Keeps the sum of all deltas, and what was reported already."""

    def __init__(
        self,
        durations: Durations,
        test: Test | None = None,
        *,
        boottime: Callable[[], int],
    ) -> None:
        """With a `test`, tasks and locks that fail it are left out, but never the board's own.

        `boottime` is the clock that extrapolates the board's clock between two readings.
        """
        self.durations = durations
        self.tasks: dict[str, Task] = {}
        self.holders: dict[str, Holder] = {}
        self.histories: dict[str, BeatHistory] = {}
        self.stale: dict[str, Verdict] = {}
        self.complete = False
        """Whether the board was reported completely."""
        self._test = test
        self._boottime = boottime
        self._sample = Sample(0, 0)
        self._ended: dict[str, Holder] = {}
        self._said: set[tuple[str, str]] = set()
        """What was reported about live claims, by word and exact name."""
        self._came: dict[str, _NameChange] = {}
        self._went: dict[str, _NameChange] = {}
        self._explained: dict[tuple[bool, str], float] = {}
        self._moved: dict[str, float] = {}
        """Names that were reported as moved, because the log was late."""
        self._back: dict[str, bool] = {}
        self._broken: dict[str, bool] = {}
        """The owners that were reported as broken and have done nothing since."""
        self.hanging = 0
        """How many looks in a row found that the storage does not answer."""
        self.trouble = ""
        """The trouble with the storage as last reported; empty for none."""

    @property
    def now(self) -> Sample:
        """The board's clock now, extrapolated from its last reading."""
        passed = self._boottime() - self._sample.boot if self._sample.boot else 0
        return Sample(self._sample.fs + passed, self._sample.boot + passed)

    def note(self, delta: Delta, at: float) -> list[Occurrence]:
        """Apply a delta and return what it shows; `at` is now on the monotonic clock."""
        if delta.now is not None:
            self._sample = delta.now
        for task in delta.removed:
            self._forget(task, at)
        for task in delta.added:
            self.tasks[task.name] = task
            self._note_change(self._came, task, at)
        for name, holder in delta.holders.items():
            if name in self.tasks:
                self.holders[name] = holder
                self.histories[name] = self.histories.get(name, BeatHistory()).with_beat(
                    holder.beat
                )
        if delta.rates is not None:  # what happened before, perhaps on another board
            self._came, self._went, self._explained, self._broken = {}, {}, {}, {}
            self._back |= {event.src: True for event in delta.events if event.verb == REFUSED}
        self.complete = delta.complete
        found = [one for source in SOURCES for one in source(self, delta, at)]
        return [one for one in found if self._wanted(one)]

    def tick(self, health: Health, at: float) -> list[Occurrence]:
        """What the time alone has changed, and the health of the watch."""
        found = list(_health(self, health, at))
        fresh = at - health.fresh <= health.every + _FRESH
        if self.complete and not self.trouble and fresh:
            found += [one for source in TIMED for one in source(self, at)]
        return [one for one in found if self._wanted(one)]

    def row(self, task: Task, holder: Holder | None = None) -> Entry:
        """A task or lock as filters see it, with its holder also after the claim has ended."""
        known = self.holders.get(task.name)
        found = entry(task, known, self.now, dead=self.stale.get(task.name) is Verdict.DEAD)
        if known is None and holder is not None:
            found = found._replace(owner=holder.owner, host=holder.host, metadata=holder.metadata)
        return found

    def about(self, what: str, text: str, task: Task) -> Occurrence:
        """Something that is true of a task or lock now, as an occurrence."""
        return Occurrence(self.now.fs / SECOND, what, text, self.row(task))

    def once(self, what: str, name: str) -> bool:
        """Whether this was not reported about this claim yet; from now on it was."""
        fresh = (what, name) not in self._said
        self._said.add((what, name))
        return fresh

    def again(self, what: str, name: str) -> None:
        """Report this about this claim the next time that it happens."""
        self._said.discard((what, name))

    def former(self, name: str) -> Holder | None:
        """The holder of a claim, also of one that has ended lately."""
        return self.holders.get(name) or self._ended.get(name)

    def came_back(self, stem: str) -> bool:
        """Whether the holder of this lost claim is seen for the first time."""
        fresh = stem not in self._back
        _keep(self._back, stem, True)
        return fresh

    def broke(self, owner: str) -> bool:
        """Whether this owner was not reported as broken since it worked last."""
        fresh = owner not in self._broken
        _keep(self._broken, owner, True)
        return fresh

    def works(self, owner: str) -> None:
        """Note that a worker is not broken any more."""
        self._broken.pop(owner, None)

    def explain(self, event: Event, at: float) -> None:
        """Note that the log has these names: their changes need no report of their own."""
        for came, name, changes in ((False, event.src, self._went), (True, event.dst, self._came)):
            if name and changes.pop(name, None) is None:
                _keep(self._explained, (came, name), at)

    def late_line(self, event: Event) -> bool:
        """Whether the log reports a move only after it was reported without the log."""
        names = [name for name in (event.src, event.dst) if name]
        return bool(names) and all(self._moved.pop(name, None) is not None for name in names)

    def unexplained(self, at: float) -> Iterator[tuple[list[Task], list[Task]]]:
        """The names of each id that went and came, and that the log did not explain in time."""
        ids: dict[str, tuple[list[Task], list[Task]]] = {}
        for number, changes in enumerate((self._went, self._came)):
            for name, (task, since) in list(changes.items()):
                if at - since >= GRACE:
                    del changes[name]
                    _keep(self._moved, name, at)
                    ids.setdefault(task.id, ([], []))[number].append(task)
        yield from ids.values()

    def _wanted(self, found: Occurrence) -> bool:
        if self._test is None or found.entry is None:
            return True
        if self._test(found.entry):
            return True
        before = found.event.before if found.event is not None else None
        return before is not None and self._test(self.row(before, self.former(before.name)))

    def _forget(self, task: Task, at: float) -> None:
        name = task.name
        self.tasks.pop(name, None)
        holder = self.holders.pop(name, None)
        if holder is not None:
            _keep(self._ended, name, holder)
        self.histories.pop(name, None)
        self.stale.pop(name, None)
        for what in (STALE, LATE, LONG):
            self.again(what, name)
        self._note_change(self._went, task, at)

    def _note_change(self, changes: dict[str, _NameChange], task: Task, at: float) -> None:
        # Only dibs frees a lock or takes a shell claim over, and some of these names come late.
        if task.state == FREE or task.is_takeover:
            return
        explained = self._explained.pop((changes is self._came, task.name), None)
        if explained is None:
            changes[task.name] = _NameChange(task, at)


def _transitions(seen: Observer, delta: Delta, at: float) -> Iterator[Occurrence]:
    """What the log has of every act, and of holders that came back to a lost claim."""
    if delta.rates is not None:
        return
    for event in delta.events:
        if event.verb == REFUSED:
            yield from _refused(seen, event)
        elif event.verb not in _UNSEEN:
            seen.durations.note(event)
            if seen.late_line(event):
                continue
            seen.explain(event, at)
            task = event.after or event.before
            row = seen.row(task, seen.former(event.src)) if task is not None else None
            if row is None and event.id:
                row = Entry(event.id, "", "", "")
            yield Occurrence(event.at, event.verb, _words(event), row, event)


def _words(event: Event) -> str:
    names = f"{event.src or '-'} → {event.dst or '-'}  " if event.src or event.dst else ""
    return f"{names}{event.by}  {event.reason}".rstrip()


def _refused(seen: Observer, event: Event) -> Iterator[Occurrence]:
    if not seen.came_back(event.src):
        return
    cause = "lease expired" if event.dst else "claim was lost"
    text = f"{event.by or 'its former holder'} came back to {event.src}: {cause}"
    text += f" before its {event.reason}" if event.reason else ""
    yield Occurrence(event.at, BACK, text, _row_of_stem(seen, event.src, event.id), event)


def _breakers(seen: Observer, delta: Delta, at: float) -> Iterator[Occurrence]:
    """Workers that wait after many failures in a row, until a task of theirs is done."""
    for event in delta.events:
        if event.verb == "done":
            seen.works(event.by)
    for waiter in delta.waiters or ():
        if waiter.state == BROKEN and seen.broke(waiter.owner):
            where = f" on {waiter.host}" if waiter.host not in ("", waiter.owner) else ""
            text = f"{waiter.owner}{where} waits after many failures in a row"
            row = waiter_entry(waiter, seen.now)
            yield Occurrence(seen.now.fs / SECOND, BROKEN, text, row)


def _late_beats(seen: Observer, delta: Delta, at: float) -> Iterator[Occurrence]:
    """Holders of lost claims that still send heartbeats."""
    for stem in delta.late_beats:
        if seen.came_back(stem):
            text = f"a heartbeat for {stem}, which was lost: its holder is still at work"
            yield Occurrence(seen.now.fs / SECOND, BACK, text, _row_of_stem(seen, stem, stem))


def _row_of_stem(seen: Observer, stem: str, ident: str) -> Entry:
    task = read_any(f"{stem}.claimed") or read_any(stem)
    if task is None:
        return Entry(ident, "", "", stem)
    held = f"{stem}.held"
    name = held if seen.former(held) is not None else task.name
    return seen.row(read_any(name) or task, seen.former(name))


def _verdicts(seen: Observer, delta: Delta, at: float) -> Iterator[Occurrence]:
    """Claims that became stale, and stale ones that beat again."""
    for name, verdict in delta.stale.items():
        task = seen.tasks.get(name)
        if task is None:
            continue
        if verdict is None:
            if seen.stale.pop(name, None) is not None:
                seen.again(STALE, name)
                yield seen.about(BACK, "stale until now, a heartbeat came", task)
            continue
        seen.stale[name] = verdict
        if seen.once(STALE, name):
            yield seen.about(STALE, _why_stale(seen, name, verdict), task)


def _why_stale(seen: Observer, name: str, verdict: Verdict) -> str:
    holder = seen.holders.get(name)
    if verdict is Verdict.DEAD or holder is None:
        return f"{verdict.upper()}: its process has exited"
    past = holder.age(seen.now) - holder.ttl
    heard = f"no heartbeat for {age(holder.age(seen.now))}"
    return f"{verdict.upper()}: {heard}, lease expired {age(max(0.0, past))} ago"


def _late(seen: Observer, at: float) -> Iterator[Occurrence]:
    """Claims whose heartbeat is overdue by their own interval."""
    now = seen.now
    for name, history in seen.histories.items():
        if not history.late(now.fs):
            seen.again(LATE, name)
        elif name not in seen.stale and seen.once(LATE, name):
            holder = seen.holders[name]
            left = max(0.0, holder.ttl - holder.age(now))
            text = f"no heartbeat for {age(holder.age(now))}, usually every "
            text += f"{age(history.cadence / SECOND)}; lease expires in {age(left)}"
            yield seen.about(LATE, text, holder.task)


def _long(seen: Observer, at: float) -> Iterator[Occurrence]:
    """Claims that take unusually long for their kind of task."""
    now = seen.now
    for name, holder in seen.holders.items():
        held = (now.fs - holder.since) / SECOND
        usual = seen.durations.too_long(holder.task, held)
        if usual is not None and seen.once(LONG, name):
            yield seen.about(LONG, usual.words(held), holder.task)


def _moves(seen: Observer, at: float) -> Iterator[Occurrence]:
    """Changes of names that the log does not have, such as those that shells make with `mv`."""
    for went, came in seen.unexplained(at):
        src, dst = (names[-1].name if names else "" for names in (went[:1], came))
        event = Event(seen.now.fs / SECOND, MOVED, (came or went)[0].id, src, dst, "")
        row = seen.row((came or went)[-1], seen.former(src))
        text = f"{src or '-'} → {dst or '-'}  not in the log: by a shell, or by hand"
        yield Occurrence(event.at, MOVED, text, row, event)


def _health(seen: Observer, health: Health, at: float) -> Iterator[Occurrence]:
    """Trouble with the storage, and its end."""
    now = seen.now.fs / SECOND
    overdue = health.fresh and health.lag(at) > HANGS
    seen.hanging = seen.hanging + 1 if overdue else 0
    hangs = seen.hanging >= _LOOKS
    before, seen.trouble = seen.trouble, health.trouble or ("no answer" if hangs else "")
    if seen.trouble == before:
        return
    if seen.trouble:
        cause = f": {health.cause}" if health.trouble and health.cause else ""
        yield Occurrence(now, TROUBLE, f"storage: {seen.trouble}{cause}")
    else:
        yield Occurrence(now, RECOVERED, "storage: the board can be read again")


SOURCES: tuple[Callable[[Observer, Delta, float], Iterable[Occurrence]], ...] = (
    _transitions,
    _late_beats,
    _breakers,
    _verdicts,
)
"""What a delta shows. An event without an id, such as one about the complete board, is reported
by `_transitions` under its own verb, whatever the filter."""
TIMED: tuple[Callable[[Observer, float], Iterable[Occurrence]], ...] = (_late, _long, _moves)
"""What the passing of time shows."""


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _KEPT:
        del kept[next(iter(kept))]
