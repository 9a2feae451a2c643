"""Nothing moves under the cursor: the rows, the marks and the order stay while keys are used."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event as Signal

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings import memory
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from tests.patience import PATIENCE
from tests.tui.live import drive, filled, table, text_of, until


def under_cursor(app: DibsApp, panel: str) -> str:
    task = table(app, panel).cursor_task
    assert task is not None
    return task.id


def test_keys_move_the_cursor_through_a_list_that_is_longer_than_the_window(
    path: Path, board: dibs.Board
) -> None:
    filled(board, 90)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "down")
        assert under_cursor(app, "available") == "task-02"
        assert "task-00" in text_of(app)
        await pilot.pause()
        page = table(app, "available")._height - 1
        for keys, ident in (
            (("pagedown",), f"task-{2 + page}"),
            (("up", "k"), f"task-{page}"),
            (("G",), "task-89"),
            (("pageup",), f"task-{89 - page}"),
            (("home",), "task-00"),
            (("end",), "task-89"),
            (("g", "j"), "task-01"),
        ):
            await pilot.press(*keys)
            assert under_cursor(app, "available") == ident
            await pilot.pause()
            assert ident in text_of(app)

    drive(path, steps)


@pytest.mark.parametrize("up", ["k", "up", "pageup"])
def test_the_cursor_stops_at_the_first_and_the_last_line(
    path: Path, board: dibs.Board, up: str
) -> None:
    filled(board, 90)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        found = table(app, "available")
        found.go(
            found._height - 2 if up == "pageup" else 0
        )  # PageUp would go one line past the top
        await pilot.press(up)
        assert under_cursor(app, "available") == "task-00"
        await pilot.press("G", "down", "pagedown")
        assert under_cursor(app, "available") == "task-89"

    drive(path, steps)


def test_the_cursor_stays_on_its_task_when_others_are_added_above_it(
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
        await until(pilot, lambda: "claimed 1" in text_of(app))
        assert under_cursor(app, "available") == "task-02"
        assert "· task-02" in text_of(app)
        await pilot.press("down")
        await until(pilot, lambda: "task-02" not in text_of(app))
        assert under_cursor(app, "available") == "task-03"

    drive(path, steps)


def test_the_order_stays_still_for_a_while_after_a_cursor_move(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        await asyncio.to_thread(lambda: board.add("a-first"))
        await until(pilot, lambda: "1 held back" in text_of(app))
        assert "a-first" not in text_of(app)
        await until(pilot, lambda: "a-first" in text_of(app))

    drive(path, steps, config=Config(still=4))


def test_marks_stay_on_their_tasks_and_keep_the_order_still(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down", "space", "down", "v")
        marked = {task.id for task in table(app, "available").marks.values()}
        assert marked == {"task-01", "task-02", "task-03"}
        await asyncio.to_thread(lambda: board.add("a-first"))
        await until(pilot, lambda: "1 held back" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "a-first" in text_of(app))
        assert not table(app, "available").marks

    drive(path, steps)


def test_a_pause_holds_changes_back_and_counts_them(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "p")
        await asyncio.to_thread(lambda: [board.add(f"late-{n}") for n in range(3)])
        await until(pilot, lambda: "3 changes held back" in text_of(app))
        assert "avail 15" in text_of(app)
        assert "late-0" not in text_of(app)
        await pilot.press("p")
        await until(pilot, lambda: "late-0" in text_of(app))
        assert "FROZEN" not in text_of(app)

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
        assert "0 of 11 match" in shown
        assert "owner=web-3" in shown
        await pilot.press("escape")
        await until(pilot, lambda: "task-06" in text_of(app))

    drive(path, steps)


def test_an_invalid_filter_is_reported_and_the_last_one_stays(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"colour=red", "enter")
        await until(pilot, lambda: "there is no field" in text_of(app))

    drive(path, steps)


def test_an_unknown_field_is_reported_while_it_is_typed(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        def said() -> str:
            return text_of(app).split("\n")[-2]

        await pilot.press("slash", *"ownr")
        await until(pilot, lambda: "0 of 12 match" in text_of(app))
        assert "no field" not in said()
        await pilot.press("equals_sign")
        await until(pilot, lambda: "✗ there is no field 'ownr': use one of owner" in said())
        await pilot.press(*["backspace"] * 5, *"age>")
        await until(pilot, lambda: "✗" not in said())
        await pilot.press("x")
        await until(pilot, lambda: "'x' is not a time" in said())
        await pilot.press("escape")
        await until(pilot, lambda: "✗" not in said())

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


def test_a_click_on_a_header_sorts(path: Path, board: dibs.Board) -> None:
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


def test_a_hanging_home_directory_delays_no_key_and_gets_the_last_choice(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(board)
    answer, save = Signal(), memory.save

    def slowly(remembered: Remembered, board: str) -> None:
        assert answer.wait(PATIENCE)
        save(remembered, board)

    monkeypatch.setattr(memory, "save", slowly)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "i", "4")
        await until(pilot, lambda: "4 ▲ stale" in text_of(app))
        assert memory.load(str(path)) == Remembered()
        answer.set()
        await until(pilot, lambda: memory.load(str(path)) == Remembered(panel="stale", pane=True))

    drive(path, steps)
