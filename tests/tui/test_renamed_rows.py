"""A task that is renamed within a list stays in its row."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Task
from dibs_tui.acting.key_bursts import KeyBurstGuard, settled
from dibs_tui.acting.key_bursts import shown as at_rest
from dibs_tui.app import DibsApp
from dibs_tui.model.sorted_tasks import SortedTasks
from dibs_tui.screens.dialog import DEAF
from dibs_tui.settings.config import Config
from tests.tui.dialogs import asked, without_waiting
from tests.tui.live import drive, text_of, until


def test_a_priority_can_be_raised_twice_in_a_row(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    for number in range(3):
        board.add(f"a{number}")
    before = board.find("a2")[0].priority

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await pilot.press("2", "G")
        shown = screen.body.tables["available"]
        for times in (1, 2):
            await pilot.press("plus")
            await asked(app, pilot, "y — ")
            await pilot.press("y")
            await until(pilot, lambda: app.screen is screen)
            await until(pilot, lambda: board.find("a2")[0].priority == before + times)  # noqa: B023
            await until(pilot, lambda: shown.name_at_cursor() == board.find("a2")[0].name)
            assert "· a2" not in text_of(app)
            assert "available 3 " in text_of(app)

    drive(path, steps, config=Config(still=3600))


@pytest.mark.parametrize("still", [0, 3600], ids=["sorted again", "in its place"])
@pytest.mark.parametrize("key", ["plus", "u"])
def test_a_row_moved_by_the_operators_own_act_can_be_acted_on_at_once(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, key: str, still: int
) -> None:
    monkeypatch.setattr(
        "dibs_tui.acting.key_bursts._SETTLED", 3600.0
    )  # never, if the board moved it
    monkeypatch.setattr(KeyBurstGuard, "burst", False)
    for number in range(3):
        board.add(f"a{number}")
    if key == "u":
        board.prioritize(board.find("a1")[0].name, 7)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        shown = screen.body.tables["available"]
        await pilot.press("2", "G", "g" if key == "u" else "k")
        await acted(app, pilot, key)
        await acted(app, pilot, "minus")
        before = board.find("a1")[0]
        board.prioritize(before.name, 9)
        await until(pilot, lambda: shown.name_at_cursor() == board.find("a1")[0].name)
        await pilot.press("plus")
        await until(pilot, lambda: "row moved — look again" in text_of(app))

    async def acted(app: DibsApp, pilot: Pilot[None], key: str) -> None:
        """Act on the row of a1, confirm, and wait until it is shown."""
        screen = app.board_screen
        assert screen is not None
        shown = screen.body.tables["available"]
        await until(pilot, lambda: settled(at_rest(shown.shown_since())))
        before = board.find("a1")[0].name
        await pilot.press(key)
        assert "row moved" not in text_of(app)
        await asked(app, pilot, "y — ")
        await asyncio.sleep(DEAF)
        await pilot.press("y")
        await until(pilot, lambda: board.find("a1")[0].name != before)
        await pilot.press("escape" if key == "u" else "left")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: shown.name_at_cursor() == board.find("a1")[0].name)

    drive(path, steps, config=Config(still=still))


def test_a_task_that_has_left_is_shown_in_its_place_but_not_counted(
    path: Path, board: dibs.Board
) -> None:
    for number in range(3):
        board.add(f"a{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "G")
        board.park("a2.available", "no")
        await until(pilot, lambda: "· a2" in text_of(app))
        await until(pilot, lambda: "available 2 " in text_of(app))

    drive(path, steps, config=Config(still=3600))


def test_a_held_list_renames_in_place_and_sorts_when_released() -> None:
    def task(ident: str, priority: int) -> Task:
        return Task(f"{ident}.p{priority}.available", ident, "available", 0, 0, priority, "")

    sorted_tasks = SortedTasks(lambda found: found.priority, [task(ident, 5) for ident in "abcdef"])
    sorted_tasks.hold("marks")
    sorted_tasks.drop(task("e", 5))
    sorted_tasks.put(task("e", 4))
    sorted_tasks.put(task("b", 9))  # reported in the other order
    sorted_tasks.drop(task("b", 5))
    assert "".join(found.id for found in sorted_tasks) == "abcdef"
    assert [sorted_tasks.index(found) for found in sorted_tasks] == list(range(6))
    assert (sorted_tasks.gone, sorted_tasks.waiting) == (0, 0)
    sorted_tasks.release("marks")
    assert "".join(found.id for found in sorted_tasks) == "eacdfb"
    assert [sorted_tasks.index(found) for found in sorted_tasks] == list(range(6))
