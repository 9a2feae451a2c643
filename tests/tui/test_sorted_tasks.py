"""A list of tasks stays sorted through all changes, and still while it is held."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs import Task
from dibs_tui.model import sorted_tasks as module
from dibs_tui.model.cursor import TaskCursor
from dibs_tui.model.sorted_tasks import Descending, SortedTasks

pytestmark = pytest.mark.fast("dibs_tui.model")

Steps = list[tuple[str, int]]


def task(number: int) -> Task:
    """An available task."""
    return Task(f"t{number:04}.available", f"t{number:04}", "available", 0, 0, 5, "")


def by_name(found: Task) -> tuple[str]:
    return (found.name,)


def names(found: SortedTasks) -> list[str]:
    return [t.name for t in found]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 4)


@settings(max_examples=200)
@given(
    start=st.sets(st.integers(0, 60)),
    steps=st.lists(st.tuples(st.sampled_from(("put", "many", "drop")), st.integers(0, 60))),
)
def test_the_list_is_the_sorted_set_of_what_was_put_and_not_dropped(
    start: set[int], steps: Steps
) -> None:
    sorted_tasks = SortedTasks(by_name, map(task, start))
    expected = {task(n).name for n in start}
    for what, number in steps:
        if what == "put":
            sorted_tasks.put(task(number))
            expected.add(task(number).name)
        elif what == "many":
            new = [
                task(n) for n in range(number % 7, 61, 1 + number) if task(n).name not in expected
            ]
            sorted_tasks.put_many(new)
            expected.update(each.name for each in new)
        else:
            sorted_tasks.drop(task(number))
            expected.discard(task(number).name)
    assert names(sorted_tasks) == sorted(expected)
    assert len(sorted_tasks) == len(expected)
    for line, name in enumerate(sorted(expected)):
        assert sorted_tasks[line].name == name
        assert sorted_tasks.index(sorted_tasks[line]) == line
    for at in range(0, len(expected), 3):
        assert [t.name for t in sorted_tasks.part(at, at + 5)] == sorted(expected)[at : at + 5]


@settings(max_examples=200)
@given(
    start=st.sets(st.integers(0, 30)),
    steps=st.lists(st.tuples(st.sampled_from(("put", "drop", "move")), st.integers(0, 30))),
    held=st.booleans(),
)
def test_a_changed_sort_key_moves_its_task_and_loses_none(
    start: set[int], steps: Steps, held: bool
) -> None:
    places = {task(n).name: n for n in range(31)}
    sorted_tasks = SortedTasks(lambda t: (places[t.name], t.name), map(task, start), moving="all")
    expected = {task(n).name for n in start}
    if held:
        sorted_tasks.hold("keys")
    for what, number in steps:
        name = task(number).name
        if what == "drop":
            sorted_tasks.drop(task(number))
            expected.discard(name)
        elif what == "put" or name in expected:
            places[name] = (places[name] * 7 + 3) % 100
            sorted_tasks.put(task(number))
            expected.add(name)
    sorted_tasks.release("keys")
    assert names(sorted_tasks) == sorted(expected, key=lambda name: (places[name], name))


def test_a_held_list_stays_still_and_counts_changes() -> None:
    sorted_tasks = SortedTasks(by_name, map(task, range(6)))
    sorted_tasks.hold("marks")
    sorted_tasks.hold("pause")
    before = names(sorted_tasks)
    sorted_tasks.put(task(9))
    sorted_tasks.drop(task(2))
    sorted_tasks.drop(task(40))
    sorted_tasks.put(task(3))
    assert names(sorted_tasks) == before
    assert sorted_tasks.waiting == 2
    sorted_tasks.release("pause")
    assert names(sorted_tasks) == before
    sorted_tasks.release("marks")
    assert names(sorted_tasks) == [task(n).name for n in (0, 1, 3, 4, 5, 9)]
    assert sorted_tasks.waiting == 0


def test_a_task_that_comes_and_goes_while_held_is_not_counted() -> None:
    sorted_tasks = SortedTasks(by_name, map(task, range(3)))
    sorted_tasks.hold("keys")
    sorted_tasks.put(task(7))
    sorted_tasks.drop(task(7))
    sorted_tasks.drop(task(1))
    sorted_tasks.put(task(1))
    assert sorted_tasks.waiting == 0
    sorted_tasks.release("keys")
    assert names(sorted_tasks) == [task(n).name for n in range(3)]


def test_the_row_under_the_cursor_stays_until_the_cursor_leaves_it() -> None:
    sorted_tasks = SortedTasks(by_name, map(task, range(5)))
    cursor = TaskCursor(sorted_tasks)
    cursor.move(2)
    sorted_tasks.drop(task(2))
    assert cursor.line == 2
    assert sorted_tasks[2] == task(2)
    cursor.move(3)
    assert names(sorted_tasks) == [task(n).name for n in (0, 1, 3, 4)]
    assert cursor.task == task(3)
    assert cursor.line == 2


def test_the_cursor_follows_its_task_when_others_are_added_above() -> None:
    sorted_tasks = SortedTasks(by_name, map(task, range(10, 20)))
    cursor = TaskCursor(sorted_tasks)
    cursor.move(4)
    for number in range(10):
        sorted_tasks.put(task(number))
    assert cursor.task == task(14)
    assert cursor.line == 14


def test_an_unmoved_cursor_stays_at_the_top() -> None:
    sorted_tasks = SortedTasks(by_name, map(task, range(5, 9)))
    cursor = TaskCursor(sorted_tasks)
    assert cursor.task == task(5)
    sorted_tasks.put(task(1))
    assert cursor.task == task(1)
    assert cursor.line == 0


def test_a_flipped_value_sorts_in_reverse() -> None:
    assert sorted([1, 3, 2], key=Descending) == [3, 2, 1]
    assert Descending("a") == Descending("a") != Descending("b")
