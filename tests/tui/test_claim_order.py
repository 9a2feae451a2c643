"""The available tasks, sorted by priority, are in the order in which workers claim them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs.model.delta import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.panels import PANELS
from tests.core.tools import Place
from tests.tui.board_models import NOW, SECOND, model_of, put, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")

IDS = ("task-10", "task-2", "task-1", "2", "10", "a-b", "a", "a.b", "A", "é", "z", "up-9", "up-10")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    for number, ident in enumerate(IDS):
        place.board.add(ident, priority=9 if ident.startswith("up") else 5 - number % 2)
    for ident in ("task-7", "task-30"):  # these start later, and both are due at the end
        place.board.add(ident, start_in=60)
    return place


def shown(model: BoardModel, panel: str = "available", *, descending: bool = False) -> list[str]:
    """The ids of the tasks that can be claimed, in the order of a list."""
    found = model.listing(panel, PANELS[panel].sort, descending=descending)
    return [task.id for task in found.sorted_tasks if task.state in ("available", "later")]


def claimed(board: dibs.Board) -> list[str]:
    """The ids in the order in which a worker gets them."""
    found = []
    while (claim := board.claim(owner="me")) is not None:
        found.append(claim.id)
    return found


def test_the_list_is_the_order_of_the_claims(place: Place) -> None:
    model = model_of(place.board)
    listed, flipped = shown(model), shown(model, descending=True)
    assert listed == [*claimed(place.board), "task-30", "task-7"]
    assert flipped == listed[::-1]


def test_view_1_has_the_available_tasks_in_the_order_of_the_claims(place: Place) -> None:
    listed = shown(model_of(place.board), "all")
    assert listed[: len(IDS)] == claimed(place.board)


def test_later_tasks_that_are_due_are_where_they_are_claimed(place: Place) -> None:
    place.advance(61)
    listed = shown(model_of(place.board))
    assert listed == claimed(place.board)
    assert len(listed) == len(IDS) + 2


def test_a_later_task_moves_to_its_place_when_it_is_due() -> None:
    clock = [NOW.boot]
    model = BoardModel(lambda: clock[0])
    model.apply(Delta(now=NOW))
    at = NOW.fs // SECOND + 60
    put(model, "a.available", "z.available", f"m.f1a1n{at}.later", f"o.f1a1n{at + 600}.later")
    found = model.listing("available", "priority").sorted_tasks
    assert [task.id for task in found] == ["a", "z", "m", "o"]
    clock[0] += 61 * SECOND
    model.tick()
    assert [task.id for task in found] == ["a", "m", "z", "o"]
    model.apply(Delta(removed=(task_of(f"m.f1a1n{at}.later"),)))
    assert [task.id for task in found] == ["a", "z", "o"]
    put(model, f"n.f1a1n{at}.later")
    assert [task.id for task in found] == ["a", "n", "z", "o"]
