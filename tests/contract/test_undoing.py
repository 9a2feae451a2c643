"""The undo steps, which are read backwards, match those counted forwards as acts happen."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator

import pytest

from dibs import Event
from dibs.model import undoing
from dibs.model.events import BY_OPERATOR, LEDGER

pytestmark = pytest.mark.fast("dibs.model")

Step = tuple[Event, ...]
WRITERS = ("ann@desk", "bob@desk")


class CountingLog:
    """A log in memory that counts how many events were read."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.taken = 0

    def newest_first(
        self, ident: str | None = None, verbs: Collection[str] = ()
    ) -> Iterator[Event]:
        for event in reversed(self.events):
            self.taken += 1
            if ident in (None, event.id) and event.verb in verbs:
                yield event


def steps(log: CountingLog, ident: str | None = None) -> list[Step]:
    return list(undoing.undo_steps(log, ident))


def random_log(seed: int) -> tuple[list[Event], list[Step]]:
    """A random log, and its steps that are not undone, counted as they happen."""
    chance = random.Random(seed)
    events: list[Event] = []
    open_steps: list[list[Event]] = []

    def act(by: str, verb: str) -> Event:
        n = len(events)
        why = BY_OPERATOR + "expired" if verb == "reap" else ""
        name = f"src-{n}", f"dst-{n}"
        events.append(Event(float(n), verb, chance.choice("xyz"), *name, by, why))
        return events[-1]

    def swept(by: str) -> None:
        """A janitor's reap, by the same user as the acts."""
        n = float(len(events))
        events.append(Event(n, "reap", chance.choice("xyz"), f"src-{n}", f"dst-{n}", by, "expired"))

    def undo() -> None:
        step = chance.choice(open_steps)
        done = step.pop(chance.randrange(len(step)))
        by = chance.choice(WRITERS)
        events.append(Event(float(len(events)), "undo", done.id, done.dst, done.src, by))
        if not step:
            open_steps.remove(step)

    for _ in range(chance.randrange(30)):
        kind = chance.randrange(5)
        verb = chance.choice((*undoing.UNDONE, "reap"))
        by, other = chance.sample(WRITERS, 2)
        if kind == 0:
            open_steps.append([act(by, verb)])
        elif kind == 1 and open_steps:
            undo()
        elif kind == 3:
            swept(by)
        elif kind == 2:
            step: list[Event] = []
            between: list[list[Event]] = []
            for _ in range(chance.randrange(1, 6)):
                step.append(act(by, verb))
                if chance.random() < 0.3:
                    swept(by)
                if chance.random() < 0.3:
                    between.append([act(other, verb)])
            last = step[-1]
            before = [one for one in between if one[0].at < last.at]
            after = [one for one in between if one[0].at > last.at]
            open_steps += [*before, *after, step]
            reason = f"{verb}: 1 changed, {len(step)} done; not done: q"
            events.append(Event(float(len(events)), LEDGER, "", "", "", by, reason))
        elif kind == 4:  # two at once by one user, each with its identity
            acts: list[list[Event]] = [[], []]
            for n in (0, 1, *(chance.randrange(2) for _ in range(chance.randrange(6)))):
                bulk = f"bulk-{n}-{chance.random()}" if not acts[n] else acts[n][0].bulk
                acts[n].append(act(by, verb)._replace(bulk=bulk))
                events[-1] = acts[n][-1]
            for both in acts:
                end = Event(float(len(events)), LEDGER, "", "", "", by, f"{verb}: {len(both)} done")
                events.append(end._replace(bulk=both[0].bulk))
            open_steps += acts
    return events, [tuple(step) for step in reversed(open_steps)]


@pytest.mark.parametrize("seed", range(300))
def test_the_steps_match_those_counted_forwards(seed: int) -> None:
    events, expected = random_log(seed)
    assert steps(CountingLog(events)) == expected
    for ident in "xyz":
        alone = sorted((e for step in expected for e in step if e.id == ident), key=lambda e: -e.at)
        assert steps(CountingLog(events), ident) == [(event,) for event in alone]


def test_the_last_act_is_found_without_reading_what_was_before_it() -> None:
    events, expected = random_log(7)
    acts = [Event(float(n), "park", "x", f"a-{n}", f"b-{n}", "ann@desk") for n in range(1000)]
    log = CountingLog([*events, *acts])
    assert next(undoing.undo_steps(log)) == (acts[-1],)
    assert log.taken == 1
    assert len(steps(log)) == 1000 + len(expected)


def test_lines_that_were_lost_do_not_make_the_complete_log_be_read() -> None:
    day = 86_400.0
    old = [Event(n, "park", "x", f"a-{n}", f"b-{n}", "ann@desk") for n in range(1000)]
    half = Event(day, "park", "x", "a", "b", "ann@desk", "", "", "one")
    ledgers = [
        Event(day + 1, LEDGER, "", "", "", "ann@desk", "park: 9 done", "", "one"),
        Event(day + 1, LEDGER, "", "", "", "ann@desk", "purge: 9 done", "", "two"),
        Event(day + 1, LEDGER, "", "", "", "ann@desk", "undo: 9 done", "", "three"),
    ]
    log = CountingLog([*old, half, *ledgers])
    assert next(undoing.undo_steps(log)) == (half,)
    assert log.taken < 10


def test_a_bulk_act_that_was_killed_is_one_step_of_what_it_has_done() -> None:
    def act(at: float, ident: str, bulk: str = "", by: str = "ann@desk") -> Event:
        return Event(at, "park", ident, f"a-{ident}", f"b-{ident}", by, "", "", bulk)

    events = [act(1, "p"), act(2, "a", "one"), act(3, "q"), act(4, "b", "one"), act(5, "r")]
    other = act(6, "c", "one", "bob@desk")
    found = ["".join(event.id for event in step) for step in steps(CountingLog([*events, other]))]
    assert found == ["c", "r", "ab", "q", "p"]
    for ident in "ab":
        assert [step[0].id for step in steps(CountingLog(events), ident)] == [ident]
    old = [act(float(n), f"{n}") for n in range(5000)]
    log = CountingLog([*old, *events])
    first, second, *_ = undoing.undo_steps(log)
    assert (first[0].id, [event.id for event in second]) == ("r", ["a", "b"])
    log.taken = 0
    found_steps = undoing.undo_steps(log)
    next(found_steps), next(found_steps)
    assert log.taken < 1100


def test_acts_before_an_id_was_added_again_do_not_count() -> None:
    park = Event(1.0, "park", "x", "a", "b", "ann@desk")
    again = Event(2.0, "add", "x", "", "c", "ann@desk")
    assert steps(CountingLog([park, again]), "x") == []
    assert steps(CountingLog([park, again])) == [(park,)]
