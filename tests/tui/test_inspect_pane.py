"""The pane beside the tables, on boards whose disk answers and on one whose disk hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event as Signal

from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.rows import plain
from dibs_tui.screens.inspect import InspectScreen
from tests.tui.inspected import WITH_PANE, claimed, pane_of
from tests.tui.live import drive, text_of, until


def test_the_pane_follows_the_cursor_and_reads_only_where_it_rests(
    path: Path, board: dibs.Board
) -> None:
    for number in range(8):
        board.add(f"task-{number}", f"payload {number}".encode())

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        reading = Counted(app)
        await pilot.press("2", "j", "k")
        await until(pilot, lambda: "payload 0" in pane_of(app).text)
        board_screen = app.board_screen
        assert board_screen is not None
        for _ in range(5):
            board_screen.action_do("down")
        await until(pilot, lambda: "payload 5" in pane_of(app).text)
        passed = {f"task-{number}" for number in range(1, 5)}
        assert passed - set(reading.payloads)
        await until(pilot, lambda: "added by" in pane_of(app).text)
        assert pane_of(app).region.right == app.size.width

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


def test_the_pane_shows_what_happened_to_the_task_under_the_cursor(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-0")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane_of(app).inspect(app.model.tasks["task-0.available"])
        await until(pilot, lambda: "added by" in pane_of(app).text)
        await asyncio.to_thread(lambda: board.claim("task-0", owner="web-3"))
        await until(pilot, lambda: "was claimed by web-3" in " ".join(pane_of(app).text.split()))

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


def test_without_a_task_the_pane_says_so(path: Path, board: dibs.Board) -> None:
    board.add("task-0")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane_of(app).inspect(None)
        assert "No task" in pane_of(app).text

    drive(path, steps, remembered=WITH_PANE)


def test_ages_are_updated_while_nothing_else_changes(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-0", ttl=50)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane = pane_of(app)
        pane.inspect(next(iter(app.model.tasks.values())))
        await until(pilot, lambda: "claimed by" in pane.text)
        lines, before = len(pane.lines), pane.text
        await until(pilot, lambda: pane.text != before and len(pane.lines) == lines)
        await pilot.pause()
        shown = text_of(app)
        for line in pane.lines[: pane.size.height]:
            assert plain(line).rstrip() in shown

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


class Counted:
    """The app's board, which counts the payloads that are read."""

    def __init__(self, app: DibsApp) -> None:
        self._board = app.source.open_board()
        self.payloads: list[str] = []
        app.source.open_board = lambda: self  # type: ignore[assignment, method-assign, return-value]

    def __getattr__(self, name: str) -> object:
        return getattr(self._board, name)

    def payload(self, task: dibs.Task, limit: int) -> bytes:
        self.payloads.append(task.id)
        return self._board.payload(task, limit)


class Hanging(Counted):
    """The same, on a disk that does not answer until the test lets it."""

    def __init__(self, app: DibsApp) -> None:
        super().__init__(app)
        self.answer = Signal()

    def payload(self, task: dibs.Task, limit: int) -> bytes:
        self.payloads.append(task.id)
        assert self.answer.wait(50)
        return self._board.payload(task, limit)


def test_a_hanging_disk_never_delays_a_key(path: Path, board: dibs.Board) -> None:
    for number in range(4):
        board.add(f"task-{number}", f"payload {number}".encode())

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        disk = Hanging(app)
        try:
            await pilot.press("2", "j", "k")
            await until(pilot, lambda: bool(disk.payloads))
            await pilot.press("j", "j", "enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen))
            await pilot.press("3")
            assert "reading …" in text_of(app)
            assert "task-2" in text_of(app)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.board_screen)
        finally:
            disk.answer.set()
        await until(pilot, lambda: "payload 2" in pane_of(app).text)
        assert (
            len(disk.payloads) == 3
        )  # the hanging read, and the last requests of the screen and the pane

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)
