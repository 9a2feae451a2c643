"""Keys in a dialog: the help opens over it, and a key of the board says that it does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

import dibs
from dibs_tui.acting.plan import ACTS
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.help import HelpScreen
from dibs_tui.screens.pause import PauseScreen
from dibs_tui.screens.requeue import RequeueScreen
from tests.tui.dialogs import asked, without_waiting
from tests.tui.live import drive, filled, text_of, until


async def results(app: DibsApp, pilot: Pilot[None], key: str) -> ActScreen:
    """The results of an act on three tasks."""
    await pilot.press("2", "asterisk", key)
    await asked(app, pilot, "y — ")
    await pilot.press("y")
    await until(pilot, lambda: isinstance(app.screen, ActScreen) and app.screen.over)
    found = app.screen
    assert isinstance(found, ActScreen)
    return found


def test_a_key_of_the_board_says_that_it_does_nothing_in_a_dialog(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "P")
        await asked(app, pilot, "y — ")
        await pilot.press("B")
        await until(
            pilot, lambda: "pause board: not in this dialog; Esc cancels it" in text_of(app)
        )
        await pilot.press("escape")

    drive(path, steps)


def test_results_leave_with_the_next_key_which_does_its_work(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        shown = await results(app, pilot, "P")
        await pilot.press("c")
        assert app.screen is shown, "keys of the box work in it"
        table = app.board_screen.body.tables["available"] if app.board_screen else None
        await pilot.press("down", "j")
        await until(pilot, lambda: app.screen is app.board_screen)
        assert table is not None
        await pilot.press("5")
        await until(pilot, lambda: app.screen is app.board_screen)
        await until(pilot, lambda: "▌5 ✗ failed 3" in text_of(app))
        await pilot.press("asterisk", "R")
        await asked(app, pilot, "y — ")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, ActScreen) and app.screen.over)
        await pilot.press("B")
        await until(pilot, lambda: isinstance(app.screen, PauseScreen))
        assert not board.pauses()

    drive(path, steps)


def test_a_key_without_a_command_is_not_silent_and_a_page_of_the_help_is_one(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for key, name in (("x", "x"), ("ctrl+d", "ctrl+d")):
            await pilot.press(key)
            await until(pilot, lambda name=name: f"{name}: no command has" in text_of(app))  # type: ignore[misc]
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        found = app.screen
        assert isinstance(found, HelpScreen)
        await until(pilot, lambda: found.reading.size.height > 10)
        assert "q ctrl+c" in found.text
        await pilot.press("pagedown")
        await until(pilot, lambda: found.reading.scroll_y == found.reading.size.height - 1)

    drive(path, steps)


def test_a_pasted_list_is_counted_and_shown_before_it_is_looked_up(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.board_screen.commands.run("requeue-list")
        await until(pilot, lambda: isinstance(app.screen, RequeueScreen))
        await until(pilot, lambda: bool(app.screen.query(TextArea)))
        area = app.screen.query_one(TextArea)
        area.insert("\n".join([*(f"task-{n:02}" for n in range(5)), "", ""]))
        await until(pilot, lambda: "5 lines to look up" in text_of(app))
        await until(pilot, lambda: all(f"task-{n:02}" in text_of(app) for n in range(5)))

    drive(path, steps, size=(80, 24))


def test_undo_in_results_that_cannot_be_undone_says_why(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    for name in ("a", "b"):
        board.add(name)
        board.claim(name, owner="web-1", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 2)
        await pilot.press("4", "asterisk", "X")
        await asked(app, pilot, "y — ")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, ActScreen) and app.screen.over)
        await pilot.press("u")
        await until(pilot, lambda: "undo: a revoked claim never comes back" in text_of(app))
        assert isinstance(app.screen, ActScreen)

    drive(path, steps)


def test_undo_before_an_act_says_that_it_is_not_there(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "P")
        await asked(app, pilot, "y — ")
        await pilot.press("u")
        await until(pilot, lambda: "undo: not in this dialog; Esc cancels it" in text_of(app))

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_help_opens_over_a_dialog_and_leads_back_to_it(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "P")
        await asked(app, pilot, "y — ")
        assert text_of(app).split("\n")[-1].endswith("? help")
        dialog = app.screen
        await pilot.press("question_mark")
        await until(
            pilot, lambda: isinstance(app.screen, HelpScreen) and "every key" in text_of(app)
        )
        assert "? help" not in text_of(app).split("\n")[-1]
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is dialog)
        assert ACTS["park"].title in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: app.screen is app.board_screen)
        assert len(app.model.tasks) == 3

    drive(path, steps, size=size)


def test_a_question_mark_in_a_field_is_text(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "P")
        await asked(app, pilot, "y — ")
        await pilot.press("tab", "question_mark")
        await until(pilot, lambda: app.screen.query_one("#act-reason").value.endswith("?"))  # type: ignore[attr-defined]
        assert isinstance(app.screen, ActScreen)
        assert "? help" not in text_of(app).split("\n")[-1]

    drive(path, steps)
