"""A task whose priority is changed keeps its waiting time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.delta import Delta
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from tests.tui.board_models import NOW, SECOND, event, put, still, task_of
from tests.tui.live import drive, until

pytestmark = pytest.mark.fast("dibs_tui.model")

OLD, NEW = "a.f3a1.available", "a.f3a1p9.available"


def waiting() -> BoardModel:
    """A task that has waited for an hour."""
    model = still()
    put(model, OLD, "b.available")
    model.apply(Delta(since={OLD: NOW.fs - 3600 * SECOND}))
    return model


def age(model: BoardModel, name: str) -> float | None:
    return model.entry(task_of(name)).age


def change(model: BoardModel, old: str, new: str) -> None:
    """Report a rename as the watch does, with the file system's time of the new name."""
    came, went = (task_of(new),), (task_of(old),)
    model.apply(Delta(added=came, removed=went, since={new: NOW.fs}))


def test_a_new_priority_does_not_restart_the_wait() -> None:
    model = waiting()
    change(model, OLD, NEW)
    assert age(model, NEW) == 3600
    model.apply(Delta(since={NEW: NOW.fs}))  # looked at again
    assert age(model, NEW) == 3600
    change(model, NEW, OLD)
    assert age(model, OLD) == 3600
    oldest = model.oldest.first(model.tasks)
    assert oldest is not None
    assert oldest[0] == NOW.fs - 3600 * SECOND


def test_a_claim_in_between_restarts_the_wait() -> None:
    model = waiting()
    change(model, OLD, "a.f4a1.w-0123456789.claimed")
    change(model, "a.f4a1.w-0123456789.claimed", "a.f4a1p9.available")
    assert age(model, "a.f4a1p9.available") == 0


def test_the_journal_has_the_wait_if_the_change_was_not_observed() -> None:
    model = still()
    put(model, NEW)
    model.apply(Delta(since={NEW: NOW.fs - 60 * SECOND}))
    steps = ("a.f3a1p7.available", NEW)
    events = (
        event("release", "a", "a.f3a1.w-0123456789.claimed", OLD, ago=600),
        event("prioritize", "a", OLD, steps[0], ago=120),
        event("prioritize", "a", steps[0], NEW, ago=60),
    )
    model.apply(Delta(events=events))
    assert age(model, NEW) == 600


def test_a_raised_priority_keeps_the_wait_on_the_screen(path: Path, board: dibs.Board) -> None:
    task = board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: task.name in app.model.since)
        before = app.model.since[task.name]
        raised = board.prioritize(task.name, 9)
        assert os.stat(path / raised.name).st_ctime_ns > before, "the rename gave it another time"
        await until(pilot, lambda: raised.name in app.model.since)
        assert app.model.since[raised.name] == before

    drive(path, steps)
