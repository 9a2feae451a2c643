"""The explorer reaches every state that it should, and reports correctly."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import engine, toys
from .actors import SimPort
from .scenario import Actor, Faults, History, Outcome, Scenario, Violation
from .simdisk import SimWorld
from .small import looks, program, scenario


def naive_pair(**options: Any) -> Scenario:
    def build(world: SimWorld) -> list[Actor]:
        return [Actor("ann", toys.naive), Actor("bob", toys.naive)]

    return Scenario("naive", build, toys.one_owner, **options)


# -- what it finds -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["merge", "bounded"])
def test_the_race_of_look_then_write_is_found(mode: Any) -> None:
    with pytest.raises(Violation, match="both own it"):
        engine.explore(naive_pair(mode=mode))


def test_walks_find_the_race_too() -> None:
    with pytest.raises(Violation, match="both own it"):
        engine.walk(naive_pair(), seed=1, runs=500)


def test_a_hunt_finds_the_shortest_trace() -> None:
    found = engine.hunt(naive_pair(faults=Faults(crashes=1, failed=1)), seconds=20)
    assert found is not None
    assert found.cost == 1
    assert found.trace.splitlines()[0].split() == ["1", "ann", "names('')", "->", "[]"]
    assert "preempts" in found.trace
    assert "left on the disk: owner" in found.trace


def test_a_violation_can_be_replayed_and_pickled() -> None:
    with pytest.raises(Violation) as first:
        engine.explore(naive_pair())
    sent: Violation = pickle.loads(pickle.dumps(first.value))
    assert str(sent) == str(first.value)
    with pytest.raises(Violation) as again:
        engine.replay(naive_pair(), sent)
    assert again.value.trace == first.value.trace
    assert engine.shorten(naive_pair(), sent).cost == 1


def test_a_sound_toy_passes_with_faults_and_its_mutant_does_not() -> None:
    assert engine.explore(toys.PAIR).exhausted
    assert engine.explore(toys.PAIR, merge=False, preemptions=3).exhausted
    with toys.trusted():
        assert engine.hunt(toys.PAIR, seconds=20) is not None
    assert engine.hunt(toys.PAIR, seconds=20) is None


def test_a_bug_in_an_actor_is_a_violation_that_names_its_line() -> None:
    def buggy(port: SimPort) -> None:
        port.names("")
        raise KeyError("oh")

    with pytest.raises(Violation, match="KeyError") as found:
        engine.explore(scenario(buggy))
    assert "in buggy" in found.value.message


def test_an_actor_that_does_not_depend_on_its_answers_alone_is_refused() -> None:
    calls = iter(range(10**6))

    def erratic(port: SimPort) -> None:
        port.stat(f"done{next(calls)}")

    with pytest.raises(RuntimeError, match="the same answers, another call"):
        engine.explore(scenario(lambda p: p.names(""), erratic, erratic, faults=Faults(failed=1)))


# -- how much it explores ------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 4), (1, 1), (2, 2, 3)])
def test_every_interleaving_runs_once_and_merging_covers_as_many(
    counts: tuple[int, ...],
) -> None:
    expected = math.factorial(sum(counts))
    for count in counts:
        expected //= math.factorial(count)
    crowd = scenario(*map(looks, counts))
    plain = engine.explore(crowd, merge=False)
    merged = engine.explore(crowd)
    assert (plain.schedules, plain.exhausted) == (expected, True)
    assert (merged.covers, merged.exhausted) == (expected, True)
    assert merged.schedules < max(plain.schedules, 3)


@pytest.mark.parametrize(("bound", "expected"), [(0, 2), (1, 2 + 2 * 3), (2, 2 + 2 * 3 + 2 * 9)])
def test_preemptions_are_limited(bound: int, expected: int) -> None:
    pair = scenario(looks(4), looks(4))
    assert engine.explore(pair, merge=False, preemptions=bound).schedules == expected


OPERATIONS = st.sampled_from(
    [
        ("rename", "x", "y"),
        ("rename", "y", "x"),
        ("rename", "x", "done/x", True),
        ("create", "x", b"1"),
        ("create", "y", b""),
        ("unlink", "x"),
        ("append", "y", b"2"),
        ("names", ""),
        ("read", "x", 9),
        ("touch", "x"),
        ("link", "x", "y"),
    ]
)
PROGRAM = st.lists(OPERATIONS, min_size=1, max_size=3)


@settings(max_examples=60)
@given(
    PROGRAM,
    PROGRAM,
    st.sampled_from([{}, {"crashes": 1}, {"lost": 1}, {"late": 1}, {"torn": 1}, {"failed": 1}]),
)
def test_merging_loses_no_outcome(one: list[Any], two: list[Any], faults: dict[str, Any]) -> None:
    merged: set[Any] = set()
    plain: set[Any] = set()
    for seen, merge in ((merged, True), (plain, False)):
        crowd = scenario(
            program(one), program(two), files=["x"], seen=seen, faults=Faults(**faults)
        )
        assert engine.explore(crowd, merge=merge).exhausted
    assert merged == plain


@settings(max_examples=40)
@given(PROGRAM, PROGRAM)
def test_merging_and_bounds_together_lose_no_outcome(one: list[Any], two: list[Any]) -> None:
    found: list[set[Any]] = [set(), set()]
    for seen, merge in zip(found, (True, False), strict=True):
        crowd = scenario(
            program(one), program(two), files=["x"], seen=seen, faults=Faults(lost=1, crashes=1)
        )
        engine.explore(crowd, merge=merge, preemptions=1)
    assert found[0] == found[1]


def test_the_memory_of_a_check_is_part_of_the_state() -> None:
    """Two orders of two reads differ only in that memory."""
    ordered = set()

    def noting(port: SimPort) -> None:
        port.stat("done")
        port.note("looked")

    def check(world: SimWorld, history: History) -> None:
        for who, _ in history.fresh:
            history.set("last", who)

    def final(world: SimWorld, history: History, results: Mapping[str, Outcome]) -> None:
        ordered.add(history.get("last"))

    crowd = dataclasses.replace(scenario(noting, noting), check=check, final=final)
    engine.explore(crowd)
    assert ordered == {"a", "b"}


def test_walks_are_the_same_for_the_same_seed() -> None:
    def stripped(seed: int) -> engine.Figures:
        return dataclasses.replace(engine.walk(toys.CROWD, seed=seed, runs=300), seconds=0)

    assert stripped(7) == stripped(7)
    assert stripped(7).schedules > 100
    assert stripped(7) != stripped(8)


def test_an_endless_run_is_cut_and_reported() -> None:
    def forever(port: SimPort) -> None:
        while True:
            port.stat("done")

    figures = engine.explore(scenario(forever, max_steps=50))
    assert (figures.cut, figures.exhausted) == (1, False)


# -- faults --------------------------------------------------------------------------------------
