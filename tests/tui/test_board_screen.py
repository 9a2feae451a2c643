"""The board screen: what it shows, and that nothing moves under the hand."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.memory import Remembered
from dibs_tui.widgets.table import TaskTable
from tests.tui.live import drive, text_of, until


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "board"


@pytest.fixture
def board(path: Path) -> dibs.Board:
    return dibs.open(path, create=True)


def filled(board: dibs.Board, count: int = 12) -> None:
    for number in range(count):
        board.add(f"task-{number:02}", b"work")


def table(app: DibsApp, panel: str) -> TaskTable:
    screen = app.board_screen
    assert screen is not None
    return screen.tables[panel]


def under_cursor(app: DibsApp, panel: str) -> str:
    task = table(app, panel).cursor_task
    assert task is not None
    return task.id


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
        await until(pilot, lambda: "web-7" in text_of(app), 2)
        assert claim is not None
        await asyncio.to_thread(claim.done)
        await until(pilot, lambda: "1 done" in text_of(app), 2)

    drive(path, steps)


def test_a_claim_that_falls_silent_moves_to_the_stale_ones(path: Path, board: dibs.Board) -> None:
    filled(board, 2)
    board.claim("task-00", owner="web-1", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "1 stale" in text_of(app), 5)
        assert table(app, "stale").length == 1
        assert table(app, "claimed").length == 0

    drive(path, steps)


def test_keys_move_the_cursor_through_a_list_that_is_longer_than_the_window(
    path: Path, board: dibs.Board
) -> None:
    filled(board, 90)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "down")
        assert under_cursor(app, "available") == "task-02"
        assert "task-00" in text_of(app)
        for keys, ident in (
            (("pagedown",), "task-33"),
            (("up", "k"), "task-31"),
            (("G",), "task-89"),
            (("pageup",), "task-58"),
            (("home",), "task-00"),
            (("end",), "task-89"),
            (("g", "j"), "task-01"),
        ):
            await pilot.press(*keys)
            assert under_cursor(app, "available") == ident
            await pilot.pause()
            assert ident in text_of(app)

    drive(path, steps)


def test_the_cursor_stays_on_its_task_when_others_come_above_it(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "down", "down")
        assert under_cursor(app, "available") == "task-03"
        await asyncio.to_thread(lambda: [board.add(f"a-{n}") for n in range(5)])
        await until(pilot, lambda: table(app, "available").length == 17)
        assert under_cursor(app, "available") == "task-03"
        assert table(app, "available").cursor_line == 8

    drive(path, steps)


def test_a_row_that_leaves_under_the_cursor_stays_as_a_tombstone(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "down")
        await asyncio.to_thread(lambda: board.claim("task-02", owner="web-1", ttl=60))
        await until(pilot, lambda: "1 claimed" in text_of(app), 3)
        assert under_cursor(app, "available") == "task-02"
        assert "· task-02" in text_of(app)
        await pilot.press("down")
        await until(pilot, lambda: "task-02" not in text_of(app), 3)
        assert under_cursor(app, "available") == "task-03"

    drive(path, steps)


def test_the_order_stands_still_for_a_while_after_a_cursor_move(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        await asyncio.to_thread(lambda: board.add("a-first"))
        await until(pilot, lambda: "1 held back" in text_of(app), 3)
        assert "a-first" not in text_of(app)
        await until(pilot, lambda: "a-first" in text_of(app), 5)

    drive(path, steps, config=Config(still=1.5))


def test_marks_stay_on_their_tasks_and_hold_the_order(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "space", "down", "v")
        marked = {task.id for task in table(app, "available").marks.values()}
        assert marked == {"task-01", "task-02", "task-03"}
        await asyncio.to_thread(lambda: board.add("a-first"))
        await until(pilot, lambda: "1 held back" in text_of(app), 3)
        await pilot.press("escape")
        await until(pilot, lambda: "a-first" in text_of(app), 3)
        assert not table(app, "available").marks

    drive(path, steps)


def test_pausing_holds_the_list_back_and_says_how_much(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "p")
        await asyncio.to_thread(lambda: [board.add(f"late-{n}") for n in range(3)])
        await until(pilot, lambda: "PAUSED — 3 changes held back" in text_of(app), 5)
        assert "15 available" in text_of(app)
        assert "late-0" not in text_of(app)
        await pilot.press("p")
        await until(pilot, lambda: "late-0" in text_of(app), 3)
        assert "PAUSED" not in text_of(app)

    drive(path, steps)


def test_a_filter_narrows_all_tables_and_says_when_nothing_matches(
    path: Path, board: dibs.Board
) -> None:
    filled(board)
    board.claim("task-05", owner="web-3", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"owner=web-3", "enter")
        await pilot.pause()
        shown = text_of(app)
        assert "task-05" in shown
        assert "task-06" not in shown
        assert "0 of 11 match — Esc clears" in shown
        assert "owner=web-3" in shown
        await pilot.press("escape")
        await until(pilot, lambda: "task-06" in text_of(app), 3)

    drive(path, steps)


def test_a_filter_that_makes_no_sense_is_told_and_keeps_the_last_one(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"colour=red", "enter")
        await until(pilot, lambda: "there is no field" in text_of(app), 3)

    drive(path, steps)


def test_sorting_by_another_column_is_remembered(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "s", "home", "enter")
        assert table(app, "available").sort == "id"
        await pilot.press("I")
        assert under_cursor(app, "available") == "task-11"
        assert app.remembered.sort["available"] == ("id", True)

    drive(path, steps)

    async def again(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        assert under_cursor(app, "available") == "task-11"

    drive(path, again, remembered=Remembered(sort={"available": ("id", True)}))


def test_a_header_that_is_clicked_sorts(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await pilot.pause()
        assert await pilot.click(table(app, "available"), offset=(6, 0))
        await pilot.pause()
        assert table(app, "available").sort == "id"
        assert await pilot.click(table(app, "available"), offset=(6, 3))
        assert under_cursor(app, "available") == "task-02"

    drive(path, steps)


def test_a_directory_that_goes_is_named_and_comes_back_by_itself(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        os.rename(path, f"{path}.away")
        await until(pilot, lambda: "MISSING" in text_of(app), 5)
        assert "task-03" in text_of(app)
        screen = app.board_screen
        assert screen is not None
        assert screen.has_class("-troubled")
        os.rename(f"{path}.away", path)
        await until(pilot, lambda: "MISSING" not in text_of(app), 8)
        assert not screen.has_class("-troubled")

    drive(path, steps)


def test_each_reason_for_an_empty_screen_has_a_card_of_its_own(path: Path, tmp_path: Path) -> None:
    async def missing(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "MISSING" in text_of(app), 5)

    async def empty(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "EMPTY" in text_of(app) and "add task-1" in text_of(app), 5)

    async def newer(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "NEWER" in text_of(app), 5)
        assert "pip install --upgrade dibs" in text_of(app)

    drive(path, missing)
    path.mkdir()
    drive(path, empty)
    (path / ".dibs").mkdir(exist_ok=True)
    (path / ".dibs" / "board.toml").write_text("format = 99\n")
    drive(path, newer)


def test_a_key_that_cannot_do_anything_says_why(path: Path, board: dibs.Board) -> None:
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "o")
        await until(pilot, lambda: "no http address" in text_of(app), 3)

    drive(path, steps)


def test_the_help_tells_every_key_of_the_registry(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        found = str(app.screen.query_one("#help-text").render())
        for command in app.commands:
            assert command.text in found
        await pilot.press(*"pause")
        await pilot.pause()
        found = str(app.screen.query_one("#help-text").render())
        assert "stand still" in found
        assert "Leave; nothing" not in found

    drive(path, steps, size=(120, 50))


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
        await pilot.press("q", "escape", "j")
        assert type(app.screen).__name__ == "WallScreen"
        assert app.read_only
        await pilot.press(*"unlock")
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
