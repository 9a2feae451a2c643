"""Keys in the full view of a task: acts on exactly that task, help, and no swallowed keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.help import HelpScreen
from dibs_tui.screens.inspect import InspectScreen
from tests.tui.dialogs import asked, state, without_waiting
from tests.tui.inspected import claimed, opened
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    return dibs.open(tmp_path / "board", create=True)


def test_x_in_the_full_view_releases_the_task_shown(board: dibs.Board) -> None:
    for ident in ("task-1", "task-2"):
        claimed(board, ident, owner="web-3", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 2)
        await opened(app, pilot, "task-2")
        await pilot.press("X")
        await until(pilot, lambda: "Force-release task-2" in text_of(app))
        await asked(app, pilot, "y — ")
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-2") == "available")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: "GONE" in text_of(app))
        await pilot.press("X")
        await until(pilot, lambda: "has changed or is gone" in text_of(app))
        await pilot.press("u")
        await until(pilot, lambda: "cannot undo" in text_of(app))

    drive(Path(board.location.where), steps)
    assert state(board, "task-1") == "claimed"


@pytest.mark.parametrize(("key", "title"), [("P", "Park task-1"), ("plus", "Priority of task-1")])
def test_other_acts_also_apply_to_the_task_shown(board: dibs.Board, key: str, title: str) -> None:
    board.add("task-0")
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-1")
        await pilot.press(key)
        await until(pilot, lambda: title in text_of(app))

    drive(Path(board.location.where), steps)


def test_locked_acts_are_locked_in_the_full_view_too(board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-1")
        app.read_only = True
        await pilot.press("P")
        await until(pilot, lambda: "read-only" in text_of(app))
        assert isinstance(app.screen, InspectScreen)

    drive(Path(board.location.where), steps)


def test_the_question_mark_shows_the_keys_and_no_key_is_swallowed(board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-1")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await pilot.press("asterisk")
        await until(pilot, lambda: "mark all: not here; Esc returns" in text_of(app))
        assert isinstance(app.screen, InspectScreen)

    drive(Path(board.location.where), steps, size=(80, 24))


def test_the_palette_in_the_full_view_acts_on_the_task_shown(board: dibs.Board) -> None:
    board.add("task-0")
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-1")
        commands = {c.title.split("  ")[0]: c for c in app.get_system_commands(app.screen)}
        assert "mark" not in commands
        found = commands["park"].callback()
        assert found is not None
        await found
        await until(pilot, lambda: isinstance(app.screen, ActScreen))
        await pilot.pause()
        await until(pilot, lambda: "Park task-1" in text_of(app))

    drive(Path(board.location.where), steps)
