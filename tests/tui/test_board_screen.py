"""The board screen: what it shows, on every terminal and in every trouble."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
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
        for words in ("9 available", "1 claimed", "1 failed", "1 done", "1 held", "0 stale"):
            assert words in shown
        for words in ("web-1", "job of web-1", "deploy", "ops", "broken input", "task-03"):
            assert words in shown
        assert str(path) in shown or "…" in shown

    drive(path, steps, size=(170, 50))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 12), (40, 10)])
def test_id_and_state_survive_on_every_terminal(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board, 3)
    board.claim("task-00", owner="web-1", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        shown = text_of(app)
        assert "task-00" in shown
        assert "claimed" in shown

    drive(path, steps, size=size)


def test_what_others_do_is_on_the_screen_at_once(path: Path, board: dibs.Board) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claim = await asyncio.to_thread(lambda: board.claim("task-01", owner="web-7", ttl=60))
        await until(pilot, lambda: "web-7" in text_of(app))
        assert claim is not None
        await asyncio.to_thread(claim.done)
        await until(pilot, lambda: "1 done" in text_of(app))

    drive(path, steps)


def test_a_claim_that_falls_silent_moves_to_the_stale_ones(path: Path, board: dibs.Board) -> None:
    filled(board, 2)
    board.claim("task-00", owner="web-1", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "1 stale" in text_of(app))
        assert table(app, "stale").length == 1
        assert table(app, "claimed").length == 0

    drive(path, steps)


def test_a_directory_that_goes_is_named_and_comes_back_by_itself(
    path: Path, board: dibs.Board
) -> None:
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


def test_each_reason_for_an_empty_screen_has_a_card_of_its_own(path: Path, tmp_path: Path) -> None:
    async def missing(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "MISSING" in text_of(app))

    async def empty(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "EMPTY" in text_of(app) and "task-1" in text_of(app))

    async def newer(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "NEWER" in text_of(app))
        assert "pip install --upgrade dibs" in text_of(app)

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


def test_a_free_lock_is_in_its_table_from_the_start_and_as_soon_as_it_is_released(
    path: Path, board: dibs.Board
) -> None:
    board.acquire("gate").release()
    lease = board.acquire("door")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await until(pilot, lambda: "◇ free" in text_of(app) and "◆ held" in text_of(app))
        lease.release()
        await until(pilot, lambda: text_of(app).count("◇ free") == 2)
        board.acquire("gate")
        await until(pilot, lambda: text_of(app).count("◆ held") == 1)
        assert text_of(app).count("◇ free") == 1

    drive(path, steps)


def test_a_key_that_cannot_do_anything_says_why(path: Path, board: dibs.Board) -> None:
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "o")
        await until(pilot, lambda: "no http address" in text_of(app))

    drive(path, steps)


def test_the_help_tells_every_key_of_the_registry(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        found = str(app.screen.query_one("#help-text").render())
        for command in app.commands:
            assert command.text in " ".join(found.split())
        await pilot.press(*"pause")
        await pilot.pause()
        found = str(app.screen.query_one("#help-text").render())
        assert "stand still" in found
        assert "Leave; nothing" not in found

    drive(path, steps, size=(120, 50))


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
def test_what_a_key_does_is_told_in_a_column_of_its_own(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        await pilot.pause()
        shown = app.screen.query_one("#help-text")
        lines = str(shown.render()).splitlines()
        assert max(map(len, lines)) <= shown.size.width
        assert all(line[:22].isspace() for line in lines if line.startswith("   "))
        assert any(line.startswith("  : release the brake Let acts") for line in lines)

    drive(path, steps, size=size)


def test_the_help_is_scrolled_by_keys(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert "The next line." in text_of(app)
        await pilot.press(*["pagedown"] * 9)
        assert "The next line." not in text_of(app)
        assert "attempts>2" in text_of(app)
        await pilot.press(*["pageup"] * 9)
        assert "The next line." in text_of(app)

    drive(path, steps, size=(80, 24))


def test_a_low_terminal_keeps_rows_and_the_words_of_a_card(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "dibs demo" in text_of(app))
        await asyncio.to_thread(filled, board)
        await pilot.press("2")
        await until(pilot, lambda: "task-0" in text_of(app))

    drive(path, steps, size=(80, 10))


def test_what_is_said_on_the_screen_names_the_keys_as_they_are_bound(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("f2")
        assert "PAUSED" in text_of(app)
        assert "f2 goes on" in text_of(app)
        await pilot.press("f2")
        assert "PAUSED" not in text_of(app)

    drive(path, steps, config=Config(still=0, keys={"pause": ("f2",)}))


@pytest.mark.parametrize("read_only", [False, True])
def test_the_wall_opens_only_to_its_word(path: Path, board: dibs.Board, read_only: bool) -> None:
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
def test_no_key_of_any_kind_hurts_an_empty_board(path: Path, board: dibs.Board, view: str) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press(view)
        for command in app.commands:
            if command.id not in ("quit", "help", "commands", "filter", "wall"):
                for key in command.keys:
                    await pilot.press(key)
        assert app.is_running

    drive(path, steps)
