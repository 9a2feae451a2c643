"""Purge done tasks and forget removed ids, from the dashboard."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Semaphore

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Task
from dibs.files import forgetting
from dibs.files.board_files import BoardFiles
from dibs_tui.app import DibsApp
from dibs_tui.screens.ask import Ask
from dibs_tui.settings.config import Config
from tests.tui.dialogs import asked, fill, hint, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    """Three done tasks and one that is available."""
    without_waiting(monkeypatch, tmp_path)
    made = dibs.open(tmp_path / "board", create=True)
    for n in range(3):
        finish(made, f"done-{n}")
    made.add("waits")
    return made


def finish(board: dibs.Board, ident: str) -> None:
    board.add(ident)
    claim = board.claim(ident)
    assert claim is not None
    claim.done()


def done(board: dibs.Board) -> list[str]:
    return sorted(
        path.name.partition(".")[0] for path in Path(board.location.where, "done").iterdir()
    )


def line(app: DibsApp) -> str:
    assert isinstance(app.screen, Ask)
    return app.screen.line


def test_an_age_that_is_typed_at_once_replaces_the_one_that_is_there(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("D")
        await asked(app, pilot, "no done task is that old")
        await pilot.press("0", "s")
        await until(pilot, lambda: "3 of 3 done tasks are older" in text_of(app))

    drive(Path(board.location.where), steps)


def test_a_purge_counts_asks_for_the_count_and_removes_only_what_it_counted(
    board: dibs.Board,
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("D")
        await asked(app, pilot, "no done task is that old")
        assert "0 of 3 done tasks" in text_of(app)
        await pilot.press("y")
        await fill(app, pilot, "#purge-age", "soon")
        await asked(app, pilot, "enter an age")
        await fill(app, pilot, "#purge-age", "0s")
        await asked(app, pilot, "type the number to confirm: 3")
        assert line(app) == f"dibs -d {board.location.where} purge --done --older-than 0s"
        app.screen.query_one("#purge-count").focus()
        await until(pilot, lambda: hint(app) == "type the number to confirm: 3")
        await pilot.press("3")
        await until(pilot, lambda: hint(app).startswith("Enter, then y — "))
        await pilot.press("backspace", "enter")
        finish(board, "done-later")
        await pilot.press("y")
        await fill(app, pilot, "#purge-count", "3")
        await asked(app, pilot, "y — remove")
        assert len(done(board)) == 4
        await pilot.press("enter")
        assert len(done(board)) == 4
        await pilot.press("D")
        await asked(app, pilot, "no done task is that old")
        await fill(app, pilot, "#purge-age", "0s")
        await fill(app, pilot, "#purge-count", "4")
        await until(pilot, lambda: hint(app).startswith("y"))
        finish(board, "done-last")
        await pilot.press("y")
        await until(pilot, lambda: "4 payloads removed." in text_of(app))

    drive(Path(board.location.where), steps)
    assert done(board) == ["done-last"]
    assert [e.verb for e in board.log.of("done-0")][-1] == "purge"


def test_a_purge_shows_how_many_it_has_removed_so_far(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, remove = Semaphore(0), forgetting.purge

    def patiently(store: BoardFiles, task: Task) -> bool:
        assert go_on.acquire(timeout=30)
        return remove(store, task)

    monkeypatch.setattr(forgetting, "purge", patiently)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("D")
        await asked(app, pilot, "no done task is that old")
        await fill(app, pilot, "#purge-age", "0s")
        await fill(app, pilot, "#purge-count", "3")
        await asked(app, pilot, "y — remove")
        await pilot.press("y")
        await until(pilot, lambda: hint(app).startswith("0 of 3 … "))
        go_on.release()
        await until(pilot, lambda: hint(app).startswith("1 of 3 … "))
        await fill(app, pilot, "#purge-count", "2")
        assert hint(app).startswith("1 of 3 … ")
        go_on.release(2)
        await until(pilot, lambda: hint(app) == "Esc closes")
        assert "3 payloads removed." in text_of(app)

    drive(Path(board.location.where), steps)


def test_a_removed_id_can_be_forgotten_from_the_feed(board: dibs.Board) -> None:
    board.purge(0)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("0")
        assert app.board_screen is not None
        app.board_screen.set_filter("id=done-1")
        await pilot.press("home")
        await pilot.press("F")
        await asked(app, pilot, "y — forget")
        assert "purge by" in text_of(app)
        assert line(app) == f"dibs -d {board.location.where} forget done-1"
        await pilot.press("enter")
        with pytest.raises(dibs.Exists):
            board.add("done-1")
        await pilot.press("F")
        await asked(app, pilot, "y — forget")
        await pilot.press("y")
        await until(pilot, lambda: "done-1 is forgotten" in text_of(app))

    drive(Path(board.location.where), steps)
    assert board.add("done-1").fence == 2


def test_an_id_that_is_still_on_the_board_is_not_forgotten(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "F")
        await until(pilot, lambda: "is still on the board" in text_of(app))
        await pilot.press("y")
        assert hint(app) == "Esc closes"

    drive(Path(board.location.where), steps, config=Config(still=0))
    assert board.find("waits")


def test_ages_in_an_open_purge_dialog_are_updated_but_the_count_stays(
    board: dibs.Board,
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("D")
        await asked(app, pilot, "no done task is that old")
        await fill(app, pilot, "#purge-age", "0s")
        finish(board, "done-later")
        ages = []

        def older() -> bool:
            shown = " ".join(text_of(app).replace("│", " ").split())
            found = re.search(r"3 of 3 done tasks are older the oldest: (\d+)s", shown)
            if found is not None and found[1] not in ages:
                ages.append(found[1])
            return len(ages) > 2

        await until(pilot, older)
        assert ages == sorted(ages, key=int)
        await asked(app, pilot, "type the number to confirm: 3")

    drive(Path(board.location.where), steps)
