"""The head says live only while looks at the board succeed."""

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
from dibs.files.reader_thread import ReaderThread
from dibs.model.health import Health, Trouble
from dibs_tui.app import DibsApp
from dibs_tui.screens.board_frame import mode_of
from tests.patience import PATIENCE
from tests.tui.live import drive, filled, text_of, until
from tests.tui.terminal import terminal
from tests.tui.troubled import three_tasks


def mode(health: Health) -> str:
    """How the title says that the board is seen."""
    return mode_of(health, time.monotonic(), is_read=True)[0]


@pytest.mark.parametrize(("age", "live"), [(0.0, True), (1.0, True), (30.0, False)])
def test_live_is_shown_only_while_looks_succeed(age: float, live: bool) -> None:
    words = mode(Health(fresh=time.monotonic() - age, live=True))
    assert (words == "● live") is live
    assert (words == "… waiting 30s") is not live


def test_live_is_not_shown_while_the_disk_does_not_answer() -> None:
    now = time.monotonic()
    assert mode(Health(fresh=now - 4.5, busy=now - 4, live=True)) == "… waiting 4s"


def test_polling_is_not_shown_before_the_board_was_read_once() -> None:
    health = Health(fresh=time.monotonic())
    assert mode_of(health, time.monotonic(), is_read=False)[0] == "… reading"
    assert mode_of(health, time.monotonic(), is_read=True)[0].startswith("↻")


def test_a_disk_in_trouble_shows_only_its_trouble() -> None:
    assert mode(Health(time.monotonic(), trouble=Trouble.FAILED, traits=("sshfs",))) == "✗ failed"


def test_a_board_that_was_never_read_shows_nothing_that_is_not_known(tmp_path: Path) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "missing" in text_of(app))
        for word in ("read-write", "stale 0", "done 0", "0/min", "queue empty"):
            assert word not in text_of(app)
        await asyncio.to_thread(dibs.open, tmp_path / "later", create=True)
        await until(pilot, lambda: "stale 0" in text_of(app))
        assert "queue empty" in text_of(app)

    drive(tmp_path / "later", steps)


@contextmanager
def stuck(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no pass of the watch finish: its next look gets no answer."""
    before, asked, answer = ReaderThread._which, Event(), Event()

    def which(thread: ReaderThread) -> tuple[object, object]:
        asked.set()
        answer.wait()
        return before(thread)

    patch.setattr(ReaderThread, "_which", which)
    assert asked.wait(PATIENCE)
    try:
        yield
    finally:
        answer.set()


def test_a_board_that_vanishes_while_the_reader_is_stuck_is_not_called_live(
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


def test_a_missing_board_is_noticed_within_a_few_times_the_first_frames_time(
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
