"""A task that has another name in the same list goes on in its row."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Task
from dibs_tui.acting.hands import Hands, settled
from dibs_tui.acting.hands import shown as at_rest
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.model.roll import Roll
from dibs_tui.screens.ask import DEAF
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
        shown = screen.tables["available"]
        for times in (1, 2):
            await pilot.press("plus")
            await asked(app, pilot, "y — ")
            await pilot.press("y")
            await until(pilot, lambda: app.screen is screen)
            await until(pilot, lambda: board.find("a2")[0].priority == before + times)  # noqa: B023
            await until(pilot, lambda: shown.painted_at_cursor() == board.find("a2")[0].name)
            assert "· a2" not in text_of(app)
            assert "available 3 " in text_of(app)

    drive(path, steps, config=Config(still=3600))


@pytest.mark.parametrize("still", [0, 3600], ids=["sorted again", "in its place"])
@pytest.mark.parametrize("key", ["plus", "u"])
def test_a_row_that_the_operators_own_act_moved_needs_no_second_look(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, key: str, still: int
) -> None:
    monkeypatch.setattr("dibs_tui.acting.hands._SETTLED", 3600.0)  # never, if the board moved it
    monkeypatch.setattr(Hands, "burst", False)
    for number in range(3):
        board.add(f"a{number}")
    if key == "u":
        board.reprioritise(board.find("a1")[0].name, 7)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        shown = screen.tables["available"]
        await pilot.press("2", "G", "g" if key == "u" else "k")
        await acted(app, pilot, key)
        await acted(app, pilot, "minus")
        before = board.find("a1")[0]
        board.reprioritise(before.name, 9)
        await until(pilot, lambda: shown.painted_at_cursor() == board.find("a1")[0].name)
        await pilot.press("plus")
        await until(pilot, lambda: "row moved — look again" in text_of(app))

    async def acted(app: DibsApp, pilot: Pilot[None], key: str) -> None:
        """On the row of a1, confirmed, and shown."""
        screen = app.board_screen
        assert screen is not None
        shown = screen.tables["available"]
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
        await until(pilot, lambda: shown.painted_at_cursor() == board.find("a1")[0].name)

    drive(path, steps, config=Config(still=still))


def test_a_task_that_has_left_is_shown_where_it_was_but_not_counted(
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


def test_a_held_roll_renames_in_place_and_finds_the_new_place_when_released() -> None:
    def task(ident: str, priority: int) -> Task:
        return Task(f"{ident}.p{priority}.available", ident, "available", 0, 0, priority, "")

    roll = Roll(lambda found: found.priority, [task(ident, 5) for ident in "abcdef"])
    roll.hold("marks")
    roll.drop(task("e", 5))
    roll.put(task("e", 4))
    roll.put(task("b", 9))  # told in the other order
    roll.drop(task("b", 5))
    assert "".join(found.id for found in roll) == "abcdef"
    assert [roll.index(found) for found in roll] == list(range(6))
    assert (roll.gone, roll.waiting) == (0, 0)
    roll.release("marks")
    assert "".join(found.id for found in roll) == "eacdfb"
    assert [roll.index(found) for found in roll] == list(range(6))
