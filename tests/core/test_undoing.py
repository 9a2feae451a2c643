"""What can be undone is found backwards; here the same is reckoned forwards, as it happens."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from dibs import Event, undoing
from dibs.journal import BY_OPERATOR, LEDGER

Step = tuple[Event, ...]
WRITERS = ("ann@desk", "bob@desk")


class Story:
    """A journal in memory, of which it is known how far it was read."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.taken = 0

    def newest_first(
        self, ident: str | None = None, verbs: tuple[str, ...] = ()
    ) -> Iterator[Event]:
        for event in reversed(self.events):
            self.taken += 1
            if ident in (None, event.id) and event.verb in verbs:
                yield event


def steps(story: Story, ident: str | None = None) -> list[Step]:
    return list(undoing.undo_steps(story, ident))  # type: ignore[arg-type]


def told(seed: int) -> tuple[list[Event], list[Step]]:
    """A story, and the steps of it that are not undone, reckoned as it goes."""
    chance = random.Random(seed)
    events: list[Event] = []
    open_steps: list[list[Event]] = []

    def act(by: str, verb: str) -> Event:
        n = len(events)
        why = BY_OPERATOR + "silent" if verb == "reap" else ""
        name = f"src-{n}", f"dst-{n}"
        events.append(Event(float(n), verb, chance.choice("xyz"), *name, by, why))
        return events[-1]

    def swept(by: str) -> None:
        """A janitor's reap, by the same user as the acts."""
        n = float(len(events))
        events.append(Event(n, "reap", chance.choice("xyz"), f"src-{n}", f"dst-{n}", by, "silent"))

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
    return events, [tuple(step) for step in reversed(open_steps)]


@pytest.mark.parametrize("seed", range(300))
def test_the_steps_are_those_of_the_whole_story(seed: int) -> None:
    events, expected = told(seed)
    assert steps(Story(events)) == expected
    for ident in "xyz":
        alone = sorted((e for step in expected for e in step if e.id == ident), key=lambda e: -e.at)
        assert steps(Story(events), ident) == [(event,) for event in alone]


def test_the_last_act_is_found_without_reading_what_was_before_it() -> None:
    events, expected = told(7)
    acts = [Event(float(n), "park", "x", f"a-{n}", f"b-{n}", "ann@desk") for n in range(1000)]
    story = Story([*events, *acts])
    assert next(undoing.undo_steps(story)) == (acts[-1],)  # type: ignore[arg-type]
    assert story.taken == 1
    assert len(steps(story)) == 1000 + len(expected)


def test_what_was_done_before_an_id_was_added_again_is_over() -> None:
    park = Event(1.0, "park", "x", "a", "b", "ann@desk")
    again = Event(2.0, "add", "x", "", "c", "ann@desk")
    assert steps(Story([park, again]), "x") == []
    assert steps(Story([park, again])) == [(park,)]
