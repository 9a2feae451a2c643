"""A lock with slots is one line of a table, unless a filter or trouble asks for each slot."""

from __future__ import annotations

import pytest

from dibs import Task, Verdict
from dibs.model import names
from dibs.model.delta import Delta
from dibs.model.filters import parse
from dibs.model.slots import slot_id
from dibs_tui.model.board import BoardModel, Listing
from tests.tui.board_models import holder, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")


def held(number: int, fence: int = 1, name: str = "gpu") -> str:
    return f"{names.escape(slot_id(name, number))}.f{fence}.w-{number:010X}.held"


def free(number: int, fence: int = 1, name: str = "gpu") -> str:
    ident = slot_id(name, number)
    return f"{names.free_folder(ident)}/{names.escape(ident)}.f{fence}"


def remove(model: BoardModel, *tasks: str) -> None:
    model.apply(Delta(removed=tuple(map(task_of, tasks))))


def lines(model: BoardModel, listing: Listing) -> list[str]:
    found: list[Task] = list(listing.sorted_tasks)
    return [model.line(task).id for task in found]


def test_the_slots_of_a_lock_are_one_line_in_every_order_of_events() -> None:
    model = still()
    locks = model.listing("locks", "id")
    put(model, held(1))
    assert lines(model, locks) == ["gpu"]
    put(model, held(3))
    assert lines(model, locks) == ["gpu · 2/2 slots"]
    put(model, free(2), "other.f1.w-0000000009.held")
    assert lines(model, locks) == ["gpu · 2/3 slots", "other"]
    remove(model, held(1))
    put(model, free(1))
    assert lines(model, locks) == ["gpu · 1/3 slots", "other"]
    (line, _) = locks.sorted_tasks
    assert line.name == held(3)
    remove(model, held(3))
    put(model, free(3))
    assert lines(model, locks) == ["gpu · 0/3 slots", "other"]


def test_a_new_list_folds_the_slots_and_a_filtered_one_does_not() -> None:
    model = still()
    put(model, *(held(n) for n in (1, 2, 3)), held(1, name="x"))
    assert lines(model, model.listing("all", "id")) == ["gpu · 3/3 slots", "x"]
    found = lines(model, model.listing("all", "id", parse(["gpu"])))
    assert found == ["gpu · 3/3 slots", "gpu · slot 2", "gpu · slot 3"]


def test_many_new_names_at_once_are_folded() -> None:
    model = still()
    locks = model.listing("locks", "id")
    put(model, *(held(n) for n in range(1, 300)))
    assert lines(model, locks) == ["gpu · 299/299 slots"]


def test_a_stale_slot_has_its_own_line() -> None:
    model = still()
    locks, stale = model.listing("locks", "id"), model.listing("stale", "id")
    put(model, held(1), held(2))
    task = task_of(held(2))
    model.apply(
        Delta(
            holders={task.name: holder()._replace(task=task)},
            stale={task.name: Verdict.EXPIRED},
        )
    )
    assert lines(model, stale) == ["gpu · slot 2"]
    assert lines(model, locks) == ["gpu · 2/2 slots"]
    model.apply(Delta(stale={task.name: None}))
    assert lines(model, stale) == []


def test_an_id_of_a_task_that_looks_like_a_slot_is_shown_as_it_is() -> None:
    model = still()
    put(model, "gpu=1F2.f1.w-0000000009.claimed", held(1))
    assert len(lines(model, model.listing("all", "id"))) == 2
