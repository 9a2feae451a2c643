"""A claim whose process has ended on this host is shown as dead before its lease ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Verdict
from dibs_tui.app import DibsApp
from tests.core.holders import Worker, ends, ends_as_a_zombie, held, worker
from tests.tui.live import drive, text_of, until


@pytest.mark.parametrize("end", [ends, ends_as_a_zombie])
def test_a_claim_is_shown_as_dead_as_soon_as_its_process_has_exited(
    path: Path, board: dibs.Board, end: Callable[[Worker], None]
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "claimed 2" in text_of(app))
        end(mortal)
        await until(pilot, lambda: app.model.stale == {dead.name: Verdict.DEAD})
        await until(pilot, lambda: "stale 1" in text_of(app) and "DEAD" in text_of(app))
        await pilot.press("8")
        words = f"process {mortal.pid} on {board.host.name} exited"
        await until(pilot, lambda: words in text_of(app))
        board.reap()
        await until(pilot, lambda: not app.model.stale)

    with worker() as mortal, worker() as immortal:
        dead = held(board, "task-7", mortal.pid)
        held(board, "task-8", immortal.pid)
        drive(path, steps)
