"""A task whose priority was changed waits for as long as it did before."""

from __future__ import annotations

import os
from pathlib import Path

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.seen import Seen
from tests.tui.listed import NOW, SECOND, event, put, still, task_of
from tests.tui.live import drive, until

OLD, NEW = "a.f3a1.available", "a.f3a1p9.available"


def waiting() -> BoardModel:
    """A task that waits for an hour."""
    model = still()
    put(model, OLD, "b.available")
    model.apply(Seen(since={OLD: NOW.fs - 3600 * SECOND}))
    return model


def age(model: BoardModel, name: str) -> float | None:
    return model.entry(task_of(name)).age


def change(model: BoardModel, old: str, new: str) -> None:
    """A rename as the reader tells it, with the time that the file system gave the new name."""
    model.tasks = {n: t for n, t in model.tasks.items() if n != old} | {new: task_of(new)}
    came, went = (task_of(new),), (task_of(old),)
    model.apply(Seen(came=came, went=went, since={new: NOW.fs}))


def test_a_new_priority_does_not_begin_the_wait_anew() -> None:
    model = waiting()
    change(model, OLD, NEW)
    assert age(model, NEW) == 3600
    model.apply(Seen(since={NEW: NOW.fs}))  # looked at again
    assert age(model, NEW) == 3600
    change(model, NEW, OLD)
    assert age(model, OLD) == 3600
    oldest = model.oldest.first(model.tasks)
    assert oldest is not None
    assert oldest[0] == NOW.fs - 3600 * SECOND


def test_a_claim_in_between_does() -> None:
    model = waiting()
    change(model, OLD, "a.f4a1.w-0123456789.claimed")
    change(model, "a.f4a1.w-0123456789.claimed", "a.f4a1p9.available")
    assert age(model, "a.f4a1p9.available") == 0


def test_the_journal_tells_it_where_the_change_was_not_seen() -> None:
    model = still()
    put(model, NEW)
    model.apply(Seen(since={NEW: NOW.fs - 60 * SECOND}))
    steps = ("a.f3a1p7.available", NEW)
    events = (
        event("release", "a", "a.f3a1.w-0123456789.claimed", OLD, ago=600),
        event("prioritise", "a", OLD, steps[0], ago=120),
        event("prioritise", "a", steps[0], NEW, ago=60),
    )
    model.apply(Seen(events=events))
    assert age(model, NEW) == 600


def test_a_priority_raised_on_a_real_board_leaves_the_wait_on_the_screen(
    path: Path, board: dibs.Board
) -> None:
    task = board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: task.name in app.model.since)
        before = app.model.since[task.name]
        raised = board.reprioritise(task.name, 9)
        assert os.stat(path / raised.name).st_ctime_ns > before, "the rename gave it another time"
        await until(pilot, lambda: raised.name in app.model.since)
        assert app.model.since[raised.name] == before

    drive(path, steps)
