"""How many modules one must read to follow a change to its row, and a key to its rename."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from tests.tui.dialogs import hint, without_waiting
from tests.tui.live import dashboard, filled, table, text_of, until
from tests.tui.walks import Walk

Steps = Callable[[DibsApp, Pilot[None], Walk], Awaitable[None]]


def drive(path: Path, walk: Walk, steps: Steps) -> None:
    """Record a walk through a dashboard."""

    async def run() -> None:
        async with dashboard(path) as (app, pilot):
            await steps(app, pilot, walk)

    with walk.followed():
        asyncio.run(run())


def test_a_change_on_disk_reaches_its_row_through_few_modules(
    path: Path, board: dibs.Board, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other readers of the change, and other drawing in that frame, are not part of the walk.

    A listing that happens to be under way can see the change before its hint comes: then the next
    change is followed instead.
    """
    filled(board)
    for priority in ("9", "8", "7"):
        walk = change_on_disk(path, priority)
        if "dibs.files.board_index" in walk.modules:
            break
    with capsys.disabled():
        print(f"\nfrom a change on disk to its row: {walk}")
    assert {"dibs.files.board_index", "dibs_tui.widgets.table"} <= {*walk.modules}
    assert len(walk.modules) <= 26, walk.way


def change_on_disk(path: Path, priority: str) -> Walk:
    """Follow a change of this priority from the disk to the row."""
    walk = Walk(
        "BoardTracker.hinted",
        "BoardScreen.show_news",
        "TaskTable.catch_up",
        "TaskTable.render_line",
        without=(
            "Alerts.note",
            "BoardModel.note",
            "BoardModel._note_workers",
            "BoardModel.note_health",
            "Brake.note_probe",
            "Brake.note_clock",
            "OldestWaiting.note",
            "ProcessExits.forget",
            "BoardScreen._show_frame",
            "BoardScreen._show_notices",
            "BoardSource.health",
            "Health.kind",
            "Body.update_titles",
        ),
    )

    async def steps(app: DibsApp, pilot: Pilot[None], walk: Walk) -> None:
        await pilot.press("2")
        shown = table(app, "available")
        await until(pilot, lambda: 1 in shown.shown_names)
        await until(pilot, lambda: "● live" in text_of(app))
        before = next(t.name for t in dibs.open(path).find("task-03"))
        walk.recording = True
        words = ("prioritise", before, priority)
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dibs", "-d", path, *words, stdout=asyncio.subprocess.DEVNULL
        )
        assert await worker.wait() == 0
        after = f"task-03.f0p{priority}"
        await until(pilot, lambda: shown.shown_names.get(1, "").startswith(after))
        walk.recording = False

    drive(path, walk, steps)
    return walk


def test_x_and_y_reach_the_rename_through_few_modules(
    path: Path,
    board: dibs.Board,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opening the board, what a dialog draws, and its theme are not part of the walk.

    The 43rd module is `dibs.proofs`, the part of the evidence that every engine has.
    """
    walk = Walk(
        "BoardScreen.action_do",
        "Dialog.compose",
        "ActScreen.on_mount",
        "ActJob._judge",
        "ActScreen._judged",
        "ActScreen.action_confirm",
        "ActJob._execute",
        without=(
            "BoardSource.open_board",
            "FrameRows.notify_style_update",
            "Window.notify_style_update",
            "ActScreen._awaited",
            "ActScreen._one",
            "Dialog.compose",
            "Dialog.show",
        ),
        until="Disk.rename",
    )
    without_waiting(monkeypatch, path.parent)
    filled(board)
    board.claim("task-03", owner="web-3", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None], walk: Walk) -> None:
        await pilot.press("4")
        shown = table(app, "stale")
        await until(pilot, lambda: shown.name_at_cursor().startswith("task-03"))
        walk.recording = True
        await pilot.press("X")
        await until(pilot, lambda: hint(app).startswith("y — "))
        await pilot.press("y")
        await until(pilot, lambda: not isinstance(app.screen, ActScreen))
        assert not walk.recording
        assert board.find("task-03")[0].state == "available"

    drive(path, walk, steps)
    with capsys.disabled():
        print(f"\nfrom X to the rename: {walk}")
    assert {"dibs_tui.screens.board", "dibs.files.disk"} <= {*walk.modules}
    assert len(walk.modules) <= 43, walk.way
