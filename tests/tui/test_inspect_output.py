"""The inspector and the tables: notes, results, and output that is followed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from tests.tui.inspected import claimed, opened
from tests.tui.live import drive, text_of, until


def test_the_output_tab_follows_what_the_work_prints(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7")
    keeper = claim.keep_output(4096)
    keeper.keep(b"first\n\x1b[31mred\n", 0)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "output", "first")
        assert "attempt 1" in page.text
        assert "\\x1b[31mred" in page.text
        await asyncio.to_thread(keeper.keep, b"more\n" * 200 + b"the end\n", 15)
        await until(pilot, lambda: "the end" in text_of(app))
        assert page.scroll_y == page.max_scroll_y
        await asyncio.to_thread(keeper.keep, b"after a gap\n", 5000)
        await until(pilot, lambda: "after a gap" in text_of(app))
        assert "not kept or not shown" in page.text
        await pilot.press("1")
        await until(pilot, lambda: "task-7" in text_of(app))

    drive(path, steps)


def test_the_output_of_a_waiting_task_is_that_of_its_last_attempt(
    path: Path, board: dibs.Board
) -> None:
    for word in (b"one", b"two"):
        claim = claimed(board, "x") if word == b"one" else board.claim("x")
        assert claim is not None
        claim.keep_output(4096).keep(word, 0)
        claim.fail("no", retry_in=0)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "x", "output", "two")
        assert "attempt 2" in page.text

    drive(path, steps)


def test_without_kept_output_the_tab_says_how_to_keep_it(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7", "output", "dibs run --log")

    drive(path, steps)


def test_a_done_task_shows_its_result(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7").done(b'{"answer": 42}')

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", until_text="answer")
        assert "result" in page.text

    drive(path, steps)


def test_a_note_is_shown_and_changes_without_a_heartbeat(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "task-7" in text_of(app))
        assert "epoch" not in text_of(app)
        await asyncio.to_thread(claim.note, "epoch 3")
        await until(pilot, lambda: "epoch 3" in text_of(app))
        await opened(app, pilot, "task-7", until_text="epoch 3")
        await asyncio.to_thread(claim.note, "epoch \x1b 4")
        await until(pilot, lambda: "epoch \\x1b 4" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "epoch \\x1b 4" in text_of(app))

    drive(path, steps, size=(200, 50))
