"""A large board is shown in parts: all of it in the end, and no part delays a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Delta
from dibs.model import delta
from dibs_tui.app import DibsApp
from dibs_tui.source.board_source import BoardSource
from tests.tui.board_models import task_of
from tests.tui.live import drive, filled, table, text_of, until


def test_a_board_that_comes_in_parts_is_shown_in_full_and_in_order(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "PART", 3)
    filled(board, 40)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "avail 40" in text_of(app))
        shown = [task.id for task in table(app, "all").all_shown()]
        assert shown == [f"task-{n:02}" for n in range(40)]
        for n in range(0, 40, 2):
            board.park(f"task-{n:02}.available", "no")
        await until(pilot, lambda: "failed 20" in text_of(app))
        await pilot.press("2")
        await until(pilot, lambda: table(app, "available").count == 20)

    drive(path, steps)


def test_waiting_changes_are_taken_over_in_short_turns(path: Path, board: dibs.Board) -> None:
    names = [f"later-{n}.available" for n in range(5)]

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        for n, name in enumerate(names, 1):
            app.source.put(Delta(added=(task_of(name),), more=n < len(names)))
        screen.take_all(0.0)
        assert len(set(names) & app.model.tasks.keys()) <= 1
        assert app.source.waiting
        await until(pilot, lambda: names[-1] in app.model.tasks)
        await until(pilot, lambda: "later-4" in text_of(app))

    drive(path, steps)


def test_the_watch_waits_for_the_first_frame_and_for_no_later_one() -> None:
    source = BoardSource("/nowhere")
    source.put(Delta())
    source.put(Delta(added=(task_of("a.available"),), more=True))
    source.drawn()
    source.put(Delta(added=(task_of("b.available"),)))
    source.put(Delta(added=(task_of("c.available"),)))
    came = []
    while (delta := source.take()) is not None:
        came += [task.id for task in delta.added]
    assert came == ["a", "b", "c"]
    assert not source.waiting
