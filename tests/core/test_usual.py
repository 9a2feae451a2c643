"""How long a kind of task usually takes, and what is unusually long."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.model.events import Event
from dibs.model.names import read
from dibs.model.task import Task
from dibs.model.usual import ENOUGH, KEPT, LEAST, READ, TIMES, Durations, kind_of, learn

pytestmark = pytest.mark.fast("dibs.model")


def claim_of(ident: str, at: float, verb: str = "claim") -> Event:
    return Event(at, verb, ident, f"{ident}.available", f"{ident}.f1.w-0123456789.claimed", "w")


def end_of(ident: str, at: float, verb: str = "done") -> Event:
    name = f"{ident}.f1.w-0123456789"
    return Event(at, verb, ident, f"{name}.claimed", f"done/{name}", "w")


def life(ident: str, seconds: float, start: float = 0.0) -> list[Event]:
    return [claim_of(ident, start), end_of(ident, start + seconds)]


def lives(seconds: Iterable[float], kind: str = "report") -> list[Event]:
    return [e for n, took in enumerate(seconds) for e in life(f"{kind}-{n}", took, 1000.0 * n)]


def learnt(events: Iterable[Event]) -> Durations:
    found = Durations()
    for event in events:
        found.note(event)
    return found


def task(ident: str, word: str = "claimed") -> Task:
    found = read(f"{ident}.f1.w-0123456789.{word}")
    assert found is not None
    return found


def test_the_kind_of_a_task_is_its_id_without_digits() -> None:
    assert kind_of("report-7") == kind_of("report-123") == "report-"
    assert kind_of("a1b2") == "ab"
    assert kind_of("42") == ""


def test_a_claim_past_three_times_the_95th_percentile_is_unusually_long() -> None:
    found = learnt(lives([float(n) for n in range(1, 101)]))
    usual = found.usual("report-7")
    assert usual is not None
    assert (usual.median, usual.p95, usual.limit) == (51.0, 95.0, TIMES * 95.0)
    assert found.too_long(task("report-999"), TIMES * 95.0) is None
    late = found.too_long(task("report-999"), TIMES * 95.0 + 1)
    assert late == usual
    assert usual.words(840.0) == "running 14m, usually 51s"


def test_too_few_finished_tasks_say_nothing() -> None:
    assert learnt(lives([1.0] * (ENOUGH - 1))).too_long(task("report-9"), 1e6) is None
    assert learnt(lives([1.0] * ENOUGH)).too_long(task("report-9"), 1e6) is not None


def test_nothing_is_unusually_long_within_a_minute() -> None:
    found = learnt(lives([0.1] * ENOUGH))
    assert found.too_long(task("report-9"), LEAST) is None
    assert found.too_long(task("report-9"), LEAST + 0.1) is not None


def test_other_kinds_and_locks_are_not_compared() -> None:
    found = learnt(lives([1.0] * ENOUGH))
    assert found.too_long(task("other-9"), 1e6) is None
    assert found.too_long(task("report-9", "held"), 1e6) is None


@pytest.mark.parametrize("verb", ["fail", "release", "reap", "force-release", "park"])
def test_only_finished_tasks_count(verb: str) -> None:
    events = [e for n in range(50) for e in (claim_of(f"r-{n}", n), end_of(f"r-{n}", n + 9, verb))]
    assert learnt(events).usual("r-1") is None
    assert learn(reversed(events)).usual("r-1") is None


def test_a_resumed_claim_counts_from_its_resumption() -> None:
    events = [e for n in range(ENOUGH) for e in life(f"r-{n}", 5.0)]
    events = [e._replace(verb="resume") if e.verb == "claim" else e for e in events]
    usual = learnt(events).usual("r-0")
    assert usual is not None
    assert usual.median == 5.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=KEPT))
def test_a_log_that_is_read_backwards_shows_the_same(seconds: list[float]) -> None:
    events = sorted(lives(seconds), key=lambda event: event.at)
    assert learn(reversed(events)).usual("report-1") == learnt(events).usual("report-1")


def test_the_newest_durations_replace_the_oldest() -> None:
    found = learnt(lives([1000.0] * KEPT + [1.0] * KEPT))
    usual = found.usual("report-1")
    assert usual is not None
    assert usual.p95 == 1.0
    backwards = learn(reversed(lives([1000.0] * KEPT + [1.0] * KEPT))).usual("report-1")
    assert backwards == usual


def test_learning_reads_no_more_than_it_needs() -> None:
    read_events = 0

    def counted(events: Iterable[Event]) -> Iterable[Event]:
        nonlocal read_events
        for event in events:
            read_events += 1
            yield event

    events = lives([1.0] * (2 * READ))
    learn(counted(reversed(events)), {"report-"})
    assert read_events <= 2 * KEPT + ENOUGH
    read_events = 0
    learn(counted(reversed(events)))
    assert read_events == READ


def test_a_clock_that_was_set_back_gives_no_negative_duration() -> None:
    found = learnt([e for n in range(ENOUGH) for e in life(f"r-{n}", -50.0)])
    usual = found.usual("r-1")
    assert usual is not None
    assert usual.median == 0.0
