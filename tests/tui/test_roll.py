"""The roll: sorted whatever comes and goes, and still while it is held."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs import Task
from dibs_tui.model import roll as rolls
from dibs_tui.model.cursor import Cursor
from dibs_tui.model.roll import Flipped, Roll

Steps = list[tuple[str, int]]


def task(number: int) -> Task:
    """A waiting task."""
    return Task(f"t{number:04}.available", f"t{number:04}", "available", 0, 0, 5, "")


def by_name(found: Task) -> tuple[str]:
    return (found.name,)


def names(found: Roll) -> list[str]:
    return [t.name for t in found]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolls, "_PIECE", 4)


@settings(max_examples=200)
@given(
    start=st.sets(st.integers(0, 60)),
    steps=st.lists(st.tuples(st.sampled_from(("put", "drop")), st.integers(0, 60))),
)
def test_a_roll_is_the_sorted_set_of_what_was_put_and_not_dropped(
    start: set[int], steps: Steps
) -> None:
    roll = Roll(by_name, map(task, start))
    expected = {task(n).name for n in start}
    for what, number in steps:
        if what == "put":
            roll.put(task(number))
            expected.add(task(number).name)
        else:
            roll.drop(task(number))
            expected.discard(task(number).name)
    assert names(roll) == sorted(expected)
    assert len(roll) == len(expected)
    for line, name in enumerate(sorted(expected)):
        assert roll[line].name == name
        assert roll.index(roll[line]) == line
    for at in range(0, len(expected), 3):
        assert [t.name for t in roll.part(at, at + 5)] == sorted(expected)[at : at + 5]


@settings(max_examples=200)
@given(
    start=st.sets(st.integers(0, 30)),
    steps=st.lists(st.tuples(st.sampled_from(("put", "drop", "move")), st.integers(0, 30))),
    held=st.booleans(),
)
def test_a_key_that_changes_moves_its_task_and_loses_none(
    start: set[int], steps: Steps, held: bool
) -> None:
    places = {task(n).name: n for n in range(31)}
    roll = Roll(lambda t: (places[t.name], t.name), map(task, start), moving="all")
    expected = {task(n).name for n in start}
    if held:
        roll.hold("hand")
    for what, number in steps:
        name = task(number).name
        if what == "drop":
            roll.drop(task(number))
            expected.discard(name)
        elif what == "put" or name in expected:
            places[name] = (places[name] * 7 + 3) % 100
            roll.put(task(number))
            expected.add(name)
    roll.release("hand")
    assert names(roll) == sorted(expected, key=lambda name: (places[name], name))


def test_a_held_roll_stands_still_and_counts_what_comes_and_goes() -> None:
    roll = Roll(by_name, map(task, range(6)))
    roll.hold("marks")
    roll.hold("pause")
    before = names(roll)
    roll.put(task(9))
    roll.drop(task(2))
    roll.drop(task(40))
    roll.put(task(3))
    assert names(roll) == before
    assert roll.waiting == 2
    roll.release("pause")
    assert names(roll) == before
    roll.release("marks")
    assert names(roll) == [task(n).name for n in (0, 1, 3, 4, 5, 9)]
    assert roll.waiting == 0


def test_what_comes_and_goes_while_held_is_no_news() -> None:
    roll = Roll(by_name, map(task, range(3)))
    roll.hold("hand")
    roll.put(task(7))
    roll.drop(task(7))
    roll.drop(task(1))
    roll.put(task(1))
    assert roll.waiting == 0
    roll.release("hand")
    assert names(roll) == [task(n).name for n in range(3)]


def test_the_line_under_the_cursor_stays_until_the_cursor_leaves_it() -> None:
    roll = Roll(by_name, map(task, range(5)))
    cursor = Cursor(roll)
    cursor.move(2)
    roll.drop(task(2))
    assert cursor.line == 2
    assert roll[2] == task(2)
    cursor.move(3)
    assert names(roll) == [task(n).name for n in (0, 1, 3, 4)]
    assert cursor.task == task(3)
    assert cursor.line == 2


def test_the_cursor_follows_its_task_whatever_comes_above_it() -> None:
    roll = Roll(by_name, map(task, range(10, 20)))
    cursor = Cursor(roll)
    cursor.move(4)
    for number in range(10):
        roll.put(task(number))
    assert cursor.task == task(14)
    assert cursor.line == 14


def test_a_cursor_that_nobody_moved_stands_at_the_top() -> None:
    roll = Roll(by_name, map(task, range(5, 9)))
    cursor = Cursor(roll)
    assert cursor.task == task(5)
    roll.put(task(1))
    assert cursor.task == task(1)
    assert cursor.line == 0


def test_a_flipped_value_sorts_the_other_way_round() -> None:
    assert sorted([1, 3, 2], key=Flipped) == [3, 2, 1]
    assert Flipped("a") == Flipped("a") != Flipped("b")
