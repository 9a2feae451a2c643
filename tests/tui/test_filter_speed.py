"""A filter makes rows only of tasks that can match, and lists the same tasks as without that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

import dibs
from dibs import BadName, Delta, Question, Task
from dibs.model.filters import BY_HOLDER, IN_NAME, parse
from dibs.model.names import read
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from tests.tui.board_models import claim, event, put, still
from tests.tui.live import drive, filled, table, until

VALUES = ("a", "b1", "web", "h", "2", "", "boom")
TERMS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "!"]),
    st.sampled_from([*IN_NAME, *BY_HOLDER, "state", "claim", "meta.gpu", "age", "starts"]),
    st.sampled_from(["=", "!=", "^=", "~", "!~", "<", "<=", ">", ">="]),
    st.sampled_from(VALUES),
)


def board() -> BoardModel:
    """Tasks in every state, with and without holders, reasons and questions."""
    model = still()
    for n, owner in enumerate(("web", "a", "b1", "")):
        claim(model, f"a{n}", owner, "h" if n else "web")
    claim(model, "old", "web", beats=(900.0,))
    put(
        model, "b1.available", "b2.f0p2.available", "b3.f2a2.available", "gate.free",
        "done/b4.f1.web-0000000009", "failed/b5.f1a1.web-000000000A", "failed/b6.f1.x-000000000A",
        "b7.f2q1.w-0123456789.asked",
    )  # fmt: skip
    model.note(event("fail", "b5", "b5.f1.web-000000000A.claimed", "failed/b5", "web", "boom"))
    asked = [task for task in model.tasks.values() if task.state == "asked"]
    model.apply(Delta(questions={t.name: Question(1, "why", owner="a", host="h") for t in asked}))
    return model


MODEL = board()


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(TERMS, st.sampled_from(VALUES)), max_size=3))
def test_a_filter_lists_the_same_tasks_with_and_without_looking_at_names_first(
    terms: list[str],
) -> None:
    try:
        fast = parse(terms)
    except BadName:
        return
    for panel in ("all", "available", "claimed", "stale", "failed", "done", "locks"):
        lists = []
        for test in (fast, lambda row: fast(row)):
            listing = MODEL.listing(panel, "id", test)
            lists.append(list(listing.sorted_tasks))
            MODEL.close(listing)
        assert lists[0] == lists[1]


@pytest.mark.parametrize(
    "terms", ["id=b1", "owner=web", "meta.gpu=1", "b1", "priority=2", "host=h"]
)
def test_no_row_is_made_of_a_task_that_cannot_match(
    terms: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = still()
    put(model, *(f"t{n}.available" for n in range(500)), "b1.f0p2.available")
    made = []
    entry = model.entry

    def counted(task: Task, *now: Any) -> Any:
        made.append(task)
        return entry(task, *now)

    monkeypatch.setattr(model, "entry", counted)
    model.listing("available", "id", parse((terms,)))
    assert len(made) <= 1


@pytest.mark.parametrize("terms", ["!x", "t", "!id=b1 priority=5"])
def test_no_row_is_made_for_a_filter_of_names(terms: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = still()
    put(model, *(f"t{n}.available" for n in range(500)), "b1.f0p2.available")
    monkeypatch.setattr(model, "entry", None)
    listing = model.listing("available", "id", parse(terms.split()))
    assert len(listing.sorted_tasks) >= 500


@pytest.mark.parametrize("terms", ["!x", "age>=0", "!age>5m", "owner!=x", "fence>0"])
@pytest.mark.parametrize("panel", ["all", "available", "claimed"])
@pytest.mark.parametrize("many", [3, 300])
def test_a_list_that_is_filled_in_turns_has_what_changed_in_the_meantime(
    terms: str, panel: str, many: int
) -> None:
    model = still()
    put(model, *(f"t{n}.available" for n in range(3000)))
    test = parse((terms,))
    listing = model.listing(panel, "id", test, first=1000)
    turn = 0
    while not model.fill(listing, 0.0):
        old = [model.tasks[f"t{n}.available"] for n in range(turn, 3000, 900)]
        names = (f"{t.id}.f1.w-{n:010X}.claimed" for n, t in enumerate(old))
        came = [task for name in names if (task := read(name)) is not None]
        new = [read(f"new{turn}-{n}.available") for n in range(many)]
        model.apply(Delta(removed=tuple(old), added=(*came, *(t for t in new if t is not None))))
        back = read(f"t{turn}.available")  # a name that was listed, went and comes again
        assert back is not None
        model.apply(Delta(removed=(came[0],), added=(back,)))
        turn += 1
    assert turn == 3
    at_once = model.listing(panel, "id", test)
    assert list(listing.sorted_tasks) == list(at_once.sorted_tasks)


@pytest.mark.parametrize("terms", ["!x", "age>=0", "!id=t7 fence<1", "fence>0"])
@pytest.mark.parametrize(
    ("panel", "sort"),
    [("all", "state"), ("available", "priority"), ("available", "waiting"), ("failed", "ended")],
)
@pytest.mark.parametrize("opened", [None, "folds"])
def test_a_list_that_is_filled_from_the_whole_one_is_in_order_and_has_what_changed(
    terms: str, panel: str, sort: str, opened: str | None
) -> None:
    model = still()
    names = [f"t{n * 7919 % 3000}.f{n % 2}p{n % 10}.available" for n in range(3000)]
    put(model, *names, *(f"failed/bad{n}.f1a1.w-{n:010X}" for n in range(40)))
    folds = set[str]() if opened else None
    whole = model.listing(panel, sort, opened=folds)
    test = parse(terms.split())
    listing = model.listing(panel, sort, test, opened=folds, first=1000, whole=whole)
    turn = 0
    while not model.fill(listing, 0.0):
        old = [model.tasks[names[n]] for n in range(turn, 3000, 500)]
        came = [read(f"failed/{t.id}.f2a1.w-{n:010X}") for n, t in enumerate(old)]
        new = [read(f"new{turn}-{n}.f0p{n % 10}.available") for n in range(20)]
        added = tuple(task for task in (*came, *new) if task is not None)
        model.apply(Delta(removed=tuple(old), added=added))
        back = read(names[turn])
        assert back is not None
        assert added
        model.apply(Delta(removed=(added[0],), added=(back,)))
        turn += 1
    at_once = model.listing(panel, sort, test, opened=folds)
    assert list(listing.sorted_tasks) == list(at_once.sorted_tasks)
    gone = list(listing.sorted_tasks)[::3]
    model.apply(Delta(removed=tuple(gone)))
    assert list(listing.sorted_tasks) == list(at_once.sorted_tasks)
    assert not set(gone) & set(listing.sorted_tasks)


def test_keys_have_their_turn_while_a_filter_is_applied_and_an_act_sees_all_of_it(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.widgets.table._FIRST", 10)
    monkeypatch.setattr("dibs_tui.model.board._PART", 10)
    monkeypatch.setattr("dibs_tui.widgets.table._TURN", 0.0)
    filled(board, 90)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        screen, shown = app.board_screen, table(app, "available")
        assert screen is not None
        screen.set_filter("!task-1")
        assert shown.is_being_made
        assert len(shown.all_shown()) == 80, "a key that needs the list waits for it"
        screen.set_filter("task-1")
        assert shown.is_being_made
        await until(pilot, lambda: not shown.is_being_made)
        assert shown.count == 10
        screen.set_filter("task-2")
        screen.set_filter("")
        await pilot.pause()
        assert shown.count == 90, "a filter that was cleared lists nothing later"

    drive(path, steps)
