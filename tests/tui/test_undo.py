"""Undo in the dashboard: a bulk act at once, the act of a row, and earlier acts."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.undo import UndoScreen
from tests.patience import PATIENCE
from tests.tui.dialogs import asked, fill, state, without_waiting
from tests.tui.live import drive, table, text_of, until

REASON = "ticket 4711, the disk was full"
MANY = tuple(f"task-{n:02}" for n in range(11))


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    monkeypatch.setattr("dibs_tui.model.brake.Brake.why", lambda self, at: "")
    board = dibs.open(tmp_path / "board", create=True)
    for ident in MANY:
        board.add(ident)
    return board


def states(board: dibs.Board) -> set[str]:
    return {state(board, ident) for ident in MANY}


async def undone(app: DibsApp, pilot: Pilot[None], *words: str) -> None:
    """Press `u`, check that it shows these words, and confirm."""
    await pilot.press("u")
    await until(pilot, lambda: all(word in text_of(app) for word in words))
    if "reason: " in words:  # the reason has its own line
        assert f"reason: {REASON}" in [
            line.strip(" │█▁▂▃▄▅▆▇") for line in text_of(app).split("\n")
        ]
    await asked(app, pilot, "y — undo")
    await pilot.press("y")


async def many_parked(app: DibsApp, pilot: Pilot[None], board: dibs.Board) -> None:
    """Park all tasks by one act."""
    await pilot.press("2")
    await until(pilot, lambda: table(app, "available").length == len(MANY))
    await pilot.press("asterisk", "P")
    await asked(app, pilot, "y — park")
    assert "u undoes them all." in text_of(app)
    await fill(app, pilot, "#act-reason", REASON)
    await pilot.press("y")
    await asked(app, pilot, "Esc closes")
    assert "u undo all" in text_of(app)
    assert "Park 11 tasks: all parked" in text_of(app)
    assert states(board) == {"failed"}


def test_u_after_a_bulk_act_undoes_all_of_it_and_then_the_act_before(board: dibs.Board) -> None:
    board.prioritize("task-00.available", 9)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await many_parked(app, pilot, board)
        await undone(
            app, pilot, "Undo 11 tasks", "park of 11 tasks", "11 will be undone", "reason: "
        )
        await asked(app, pilot, "Esc closes")
        assert "Undo 11 tasks: all undone" in text_of(app)
        assert "u undo the act before" in text_of(app)
        assert states(board) == {"available"}
        await undone(app, pilot, "prioritize of task-00", "returns to")
        await until(pilot, lambda: "available again" in text_of(app))
        assert "u undoes the act before it" in text_of(app)
        await pilot.press("u")
        await until(pilot, lambda: "there is no act to undo" in text_of(app))

    drive(Path(board.location.where), steps, size=(80, 24))
    assert board.find("task-00")[0].name == "task-00.available"


def test_tasks_that_moved_since_a_bulk_act_are_left_out_of_its_undo(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await many_parked(app, pilot, board)
        board.requeue(board.find("task-03")[0].name)
        board.claim("task-03", owner="web-9", ttl=60)
        await undone(app, pilot, "10 will be undone", "1 changed", "claimed by web-9")
        await asked(app, pilot, "Esc closes")

    drive(Path(board.location.where), steps)
    assert state(board, "task-03") == "claimed"
    assert states(board) == {"available", "claimed"}


def test_keys_are_answered_while_a_bulk_act_is_undone(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = Event(), Event()
    undo = type(board).undo

    def slowly(self: dibs.Board, *what: Any, **how: Any) -> dibs.Task:
        task = undo(self, *what, **how)
        assert task is not None
        if task.id == MANY[2]:
            began.set()
            assert go_on.wait(PATIENCE)
        return task

    monkeypatch.setattr(type(board), "undo", slowly)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await many_parked(app, pilot, board)
        await undone(app, pilot, "Undo 11 tasks")
        await until(pilot, began.is_set)
        await asked(app, pilot, "2 of 11 … Esc stops")
        await pilot.press("escape")
        go_on.set()
        await until(pilot, lambda: "3 undone · 8 not started" in text_of(app))
        assert "Undo 11 tasks: stopped, 3 undone" in text_of(app)

    drive(Path(board.location.where), steps)
    assert [state(board, ident) for ident in MANY] == ["available"] * 3 + ["failed"] * 8


def test_u_on_a_chosen_row_undoes_the_last_act_on_that_task(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await many_parked(app, pilot, board)
        await pilot.press("escape")
        await pilot.press("5", "down", "down")
        task = table(app, "failed").cursor_task
        assert task is not None
        await undone(app, pilot, f"last act on {task.id}", f"park of {task.id}")
        await until(pilot, lambda: state(board, task.id) == "available")
        assert [state(board, ident) for ident in MANY].count("failed") == 10
        await pilot.press("escape")

    drive(Path(board.location.where), steps)


def test_u_in_the_dialog_switches_between_the_row_and_the_board(board: dibs.Board) -> None:
    board.prioritize("task-00.available", 9)
    board.prioritize("task-05.available", 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "home", "down", "home", "u")
        await until(pilot, lambda: "last act on task-00" in text_of(app))
        for where in ("last act on the board", "last act on task-00"):
            await asked(app, pilot, "y — undo")
            await pilot.press("u")
            await until(pilot, lambda where=where: where in text_of(app))  # type: ignore[misc]
        assert isinstance(app.screen, UndoScreen)

    drive(Path(board.location.where), steps)


def test_an_act_that_cannot_be_undone_is_named_and_the_previous_one_offered(
    board: dibs.Board,
) -> None:
    board.prioritize("task-00.available", 9)
    claim = board.claim("task-01", owner="w", ttl=60)
    assert claim is not None
    board.force_release(claim.name, "hung")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        words = ("force-release of task-01: its claim", "prioritize of task-00")
        await undone(app, pilot, *words)
        await until(pilot, lambda: "available again" in text_of(app))
        assert not isinstance(app.screen, ActScreen)

    drive(Path(board.location.where), steps)
    assert board.find("task-00")[0].name == "task-00.available"


@pytest.mark.parametrize("many", [1, 5])
def test_a_reap_from_the_dashboard_is_named_and_the_previous_act_offered(
    board: dibs.Board, many: int
) -> None:
    board.prioritize("task-00.available", 9)
    process = subprocess.Popen(["sleep", "60"])
    holder = board.host.process(process.pid)
    for ident in MANY[1 : 1 + many]:
        assert board.claim(ident, owner="w", ttl=600, process=holder) is not None
    process.kill()
    process.wait()
    named = "reap of task-01: its claim" if many == 1 else f"reap of {many} tasks: its claim"

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(table(app, "stale").listed_rows()) == many)
        await pilot.press("home", "R") if many == 1 else await pilot.press("asterisk", "R")
        await asked(app, pilot, "y — requeue")
        await pilot.press("y")
        await until(pilot, lambda: {state(board, i) for i in MANY} <= {"available", "later"})
        if many > 1:
            await asked(app, pilot, "Esc closes")
            await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ActScreen))
        await pilot.press("u")
        await until(pilot, lambda: "last act on" in text_of(app))
        if "last act on the board" not in text_of(app):  # the cursor is on a row that was chosen
            await pilot.press("u")
        await until(pilot, lambda: named in text_of(app))
        assert "prioritize of task-00" in text_of(app)
        await pilot.press("escape")

    drive(Path(board.location.where), steps)


def test_raising_the_highest_priority_is_reported_and_cannot_be_undone(
    board: dibs.Board,
) -> None:
    board.prioritize("task-00.available", 9)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "plus")
        await asked(app, pilot, "y — set")
        await pilot.press("y")
        await until(pilot, lambda: "10 raised" in text_of(app))
        assert "1 unchanged" in text_of(app)

    drive(Path(board.location.where), steps)
    assert [len(step) for step in board.undo_steps()] == [10, 1]
