"""The head calls a board live only as long as looks at it succeed, whatever keeps them from it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.seen import Status
from dibs_tui.reader import Reader
from dibs_tui.widgets.head import Head
from tests.patience import PATIENCE
from tests.tui.listed import still
from tests.tui.live import drive, filled, text_of, until
from tests.tui.terminal import terminal
from tests.tui.test_head import Room
from tests.tui.troubled import three_tasks


def mode(status: Status) -> str:
    """The head's first line."""

    async def run() -> str:
        app = Room(still())
        async with app.run_test(size=(120, 3)) as pilot:
            app.query_one(Head).tell(status)
            await pilot.pause()
            return app.screen._compositor.render_strips()[0].text

    return asyncio.run(run())


@pytest.mark.parametrize(("age", "live"), [(0.0, True), (1.0, True), (30.0, False)])
def test_live_is_shown_only_while_looks_succeed(age: float, live: bool) -> None:
    line = mode(Status(fresh=time.monotonic() - age, live=True))
    assert ("● live" in line) is live
    assert ("… waiting 30s" in line) is not live


def test_live_is_not_shown_while_the_disk_owes_an_answer() -> None:
    now = time.monotonic()
    line = mode(Status(fresh=now - 4.5, busy=now - 4, live=True))
    assert "● live" not in line
    assert "… waiting 4s" in line


@contextmanager
def stuck(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """No pass of the reader comes to its end: its next look gets no answer."""
    before, asked, answer = Reader._which, Event(), Event()

    def which(reader: Reader) -> tuple[object, object]:
        asked.set()
        answer.wait()
        return before(reader)

    patch.setattr(Reader, "_which", which)
    assert asked.wait(PATIENCE)
    try:
        yield
    finally:
        answer.set()


def test_a_board_that_goes_while_the_reader_is_stuck_is_not_called_live(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "● live" in text_of(app))
        with stuck(monkeypatch):
            os.rename(path, path.with_name("elsewhere"))
            await until(pilot, lambda: "● live" not in text_of(app))
            assert "… waiting" in text_of(app)
        await until(pilot, lambda: "MISSING" in text_of(app))

    drive(path, steps)


def test_a_missing_board_is_noticed_within_a_few_times_what_the_first_frame_took(
    tmp_path: Path,
) -> None:
    path = three_tasks(tmp_path)
    start = time.monotonic()
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        opened, start = time.monotonic() - start, time.monotonic()
        path.rename(tmp_path / "elsewhere")
        shown.shows("MISSING")
        assert time.monotonic() - start < 12 * max(opened, 0.5)
