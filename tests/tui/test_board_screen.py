"""The board screen: what it shows on every terminal and in every trouble."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from dibs_tui.widgets.page import Page
from tests.tui.live import drive, filled, table, text_of, until


def test_every_state_has_its_panel_and_its_count(path: Path, board: dibs.Board) -> None:
    filled(board)
    claim = board.claim("task-00", owner="web-1", ttl=60, metadata="job of web-1")
    done = board.claim("task-01", owner="web-2")
    board.acquire("deploy", owner="ops", ttl=60)
    board.park(board.find("task-02")[0].name, "broken input")
    assert claim is not None
    assert done is not None
    done.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        shown = text_of(app)
        for words in ("available 9", "claimed 1", "failed 1", "done 1", "locks 1", "stale 0"):
            assert words in shown
        for words in ("web-1", "job of web-1", "deploy", "ops", "broken input", "task-03"):
            assert words in shown
        assert str(path) in shown or "…" in shown

    drive(path, steps, size=(170, 50))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 12), (40, 10)])
def test_id_and_state_are_shown_on_every_terminal(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board, 3)
    board.claim("task-00", owner="web-1", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        shown = text_of(app)
        assert "task-00" in shown
        assert "● task-00" in shown

    drive(path, steps, size=size)


def test_changes_by_others_are_shown_at_once(path: Path, board: dibs.Board) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claim = await asyncio.to_thread(lambda: board.claim("task-01", owner="web-7", ttl=60))
        await until(pilot, lambda: "web-7" in text_of(app))
        assert claim is not None
        await asyncio.to_thread(claim.done)
        await until(pilot, lambda: "done 1" in text_of(app))

    drive(path, steps)


def test_a_claim_whose_lease_expires_moves_to_the_stale_claims(
    path: Path, board: dibs.Board
) -> None:
    filled(board, 2)
    board.claim("task-00", owner="web-1", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "stale 1" in text_of(app))
        assert table(app, "stale").length == 1
        assert table(app, "claimed").length == 0

    drive(path, steps)


def test_a_missing_directory_is_reported_until_it_is_back(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        os.rename(path, f"{path}.away")
        await until(pilot, lambda: "MISSING" in text_of(app))
        assert "task-03" in text_of(app)
        screen = app.board_screen
        assert screen is not None
        assert screen.has_class("-troubled")
        os.rename(f"{path}.away", path)
        await until(pilot, lambda: "MISSING" not in text_of(app))
        assert not screen.has_class("-troubled")

    drive(path, steps)


def test_each_reason_for_an_empty_screen_has_its_own_card(path: Path, tmp_path: Path) -> None:
    async def missing(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "MISSING" in text_of(app))

    async def empty(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "No tasks yet" in text_of(app) and "add hello" in text_of(app))

    async def newer(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "NEWER" in text_of(app))
        assert "Install a newer version" in text_of(app)

    async def older(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "OLDER" in text_of(app))
        assert "upgrade" in text_of(app)

    drive(path, missing)
    path.mkdir()
    drive(path, empty)
    (path / ".dibs").mkdir(exist_ok=True)
    (path / ".dibs" / "board.toml").write_text("format = 99\n")
    drive(path, newer)
    (path / ".dibs" / "board.toml").unlink()
    (path / ".dibs" / "claims").unlink(missing_ok=True)
    (path / ".dibs" / "claims").mkdir()
    drive(path, older)


def test_a_board_whose_tasks_are_all_done_is_not_called_empty(
    path: Path, board: dibs.Board
) -> None:
    board.add("one")
    claim = board.claim("one")
    assert claim is not None
    claim.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "no open tasks" in text_of(app))
        assert "add one" not in text_of(app)

    drive(path, steps, size=(80, 24))


def test_a_free_lock_is_listed_from_the_start_and_as_soon_as_it_is_released(
    path: Path, board: dibs.Board
) -> None:
    board.acquire("gate").release()
    lease = board.acquire("door")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await until(pilot, lambda: "◇ gate" in text_of(app) and "◆ door" in text_of(app))
        lease.release()
        await until(pilot, lambda: "◇ door" in text_of(app))
        board.acquire("gate")
        await until(pilot, lambda: "◆ gate" in text_of(app))
        assert "◇ door" in text_of(app)

    drive(path, steps)


def test_a_key_that_cannot_do_anything_says_why(path: Path, board: dibs.Board) -> None:
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "o")
        await until(pilot, lambda: "no http address" in text_of(app))

    drive(path, steps)


def test_the_help_lists_every_key_of_the_registry(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        found = app.screen.query_one("#reading", Page).text
        for command in app.commands:
            assert command.text in " ".join(found.split())
        await pilot.press(*"freeze")
        await pilot.pause()
        found = app.screen.query_one("#reading", Page).text
        assert "Freeze the list" in found
        assert "Quit; workers" not in found

    drive(path, steps, size=(120, 50))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
def test_the_help_describes_keys_in_their_own_column(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        await pilot.pause()
        shown = app.screen.query_one("#reading", Page)
        lines = shown.text.splitlines()
        assert max(map(len, lines)) <= shown.size.width
        assert all(line[:22].isspace() for line in lines if line.startswith("   "))
        assert any(line.startswith(": allow bulk acts     Allow acts") for line in lines)

    drive(path, steps, size=size)


def test_keys_scroll_the_help(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Move down one line." in text_of(app)
        await pilot.press(*["pagedown"] * 20)
        assert "Move down one line." not in text_of(app)
        assert "attempts>2" in text_of(app)
        await pilot.press(*["pageup"] * 20)
        assert "Move down one line." in text_of(app)

    drive(path, steps, size=(80, 24))


def test_a_low_terminal_keeps_rows_and_the_text_of_a_card(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "dibs add hello" in text_of(app))
        await asyncio.to_thread(filled, board)
        await pilot.press("2")
        await until(pilot, lambda: "task-0" in text_of(app))

    drive(path, steps, size=(80, 10))


def test_texts_on_the_screen_name_the_keys_as_they_are_bound(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("f2")
        assert "FROZEN" in text_of(app)
        assert "f2 unfreezes" in text_of(app)
        await pilot.press("f2")
        assert "FROZEN" not in text_of(app)

    drive(path, steps, config=Config(still=0, keys={"freeze": ("f2",)}))


@pytest.mark.parametrize("read_only", [False, True])
def test_the_wall_accepts_acts_only_after_its_word_is_typed(
    path: Path, board: dibs.Board, read_only: bool
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert type(app.screen).__name__ == "WallScreen"
        await pilot.press("escape", "j")
        assert type(app.screen).__name__ == "WallScreen"
        assert app.read_only
        await pilot.press(*"unlock", "enter")
        await until(pilot, lambda: type(app.screen).__name__ == "BoardScreen")
        assert app.read_only == read_only

    drive(path, steps, config=Config(still=0, read_only=read_only), wall=True)


@pytest.mark.parametrize("view", list("1234567890"))
def test_no_key_fails_on_an_empty_board(path: Path, board: dibs.Board, view: str) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press(view)
        for command in app.commands:
            if command.id not in ("quit", "help", "commands", "filter", "wall"):
                for key in command.keys:
                    await pilot.press(key)
        assert app.is_running

    drive(path, steps)
