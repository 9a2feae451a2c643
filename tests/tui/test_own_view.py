"""After the operator changed the view: no act is refused for it, and Esc leads back."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.acting.key_bursts import KeyBurstGuard, settled, shown
from dibs_tui.app import DibsApp
from tests.tui.live import drive, table, text_of, until


@pytest.fixture(autouse=True)
def never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that the board moved is refused from then on."""
    monkeypatch.setattr("dibs_tui.acting.key_bursts._SETTLED", 3600.0)
    monkeypatch.setattr(KeyBurstGuard, "burst", False)


async def opens(app: DibsApp, pilot: Pilot[None], panel: str) -> None:
    """Press P on the row under the cursor: a dialog must open."""
    screen = app.board_screen
    assert screen is not None
    found = table(app, panel)
    await until(pilot, lambda: settled(shown(found.shown_since())))
    assert found.cursor_task is not None
    await until(pilot, lambda: found.name_at_cursor() == found.cursor_task.name)  # type: ignore[union-attr]
    await pilot.press("P")
    await until(pilot, lambda: app.screen is not screen)
    await pilot.press("escape")
    await until(pilot, lambda: app.screen is screen)


async def refused(app: DibsApp, pilot: Pilot[None]) -> None:
    """Press P: the row moved."""
    await pilot.press("P")
    await until(pilot, lambda: "row moved — look again" in text_of(app))
    assert app.screen is app.board_screen


def test_no_change_of_view_by_the_operator_refuses_the_next_act(
    path: Path, board: dibs.Board
) -> None:
    for number in range(40):
        board.add(f"task-{number:02}", priority=number % 10)
    parked = board.park(board.find("task-39")[0].name, "")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await pilot.press("2", "G")
        await opens(app, pilot, "available")
        screen._list_commands.sort_by("available", "id")
        await opens(app, pilot, "available")
        screen._list_commands.sort_by("available", "id")
        await opens(app, pilot, "available")
        screen.set_filter("task-1")
        await opens(app, pilot, "available")
        screen.set_filter("")
        await opens(app, pilot, "available")
        await pilot.resize_terminal(100, 30)
        await opens(app, pilot, "available")
        await pilot.resize_terminal(120, 40)
        await opens(app, pilot, "available")
        await pilot.press("1", "2")
        await opens(app, pilot, "available")
        board.requeue(parked.name)
        await until(pilot, lambda: table(app, "available").length == 40)
        await refused(app, pilot)

    drive(path, steps)


def test_a_refused_act_leaves_the_clipboard_alone_for_two_seconds(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.acting.act_controller._HELD", 3600.0)
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.copy_to_clipboard("kept")
        await pilot.press("2", "down")
        await pilot.press("X")
        await until(pilot, lambda: "only for" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: "nothing copied" in text_of(app))
        assert app.clipboard == "kept"
        await pilot.press("enter")
        await pilot.press("y")
        await until(pilot, lambda: "nothing copied" in text_of(app))
        assert app.clipboard == "kept"
        await pilot.press("escape")
        monkeypatch.setattr("dibs_tui.acting.act_controller._HELD", 0.0)
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == "task-1.available")

    drive(path, steps)


def test_escape_leads_back_to_the_problem_whose_tasks_were_shown(
    path: Path, board: dibs.Board
) -> None:
    for number in range(4):
        board.add(f"old-{number}")
        board.claim(f"old-{number}", owner="web-3", ttl=1, process=None)
    for number in range(3):
        board.add(f"bad-{number}")
        claim = board.claim(f"bad-{number}", owner="web-1", ttl=600)
        assert claim is not None
        claim.fail("connection refused")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: app.model.count("stale") == 4)
        await pilot.press("9")
        owners = screen.body.lists["owners"]
        await until(pilot, lambda: bool(owners.listed_rows()))
        await pilot.press("G")
        key = owners.cursor_key
        await pilot.press("enter")
        await until(pilot, lambda: screen.body.view == "all" or "=" in screen.filter_text)
        await until(pilot, lambda: bool(screen.filter_text))
        await pilot.press("escape")
        assert (screen.body.view, screen.filter_text) == ("owners", "")
        assert owners.cursor_key == key
        assert app.focused is owners
        await pilot.press("enter")
        await until(pilot, lambda: bool(screen.filter_text))
        await pilot.press("2", "escape")  # the operator went elsewhere: Esc only clears
        assert (screen.body.view, screen.filter_text) == ("available", "")

    drive(path, steps)
