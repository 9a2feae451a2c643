"""The notice row: the gravest notice is shown, the others are counted, and no row moves."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.brake import Brake
from tests.tui.board_models import event
from tests.tui.live import drive, filled, text_of, until

WHY = (
    "240 claims on 12 hosts stopped beating at 14:02:11, within one heartbeat: "
    "suspect the storage or the clock, not the workers"
)


def came_back(app: DibsApp, count: int) -> None:
    """Let this many holders of revoked claims try to commit."""
    now = app.model.now.fs / 1e9
    for n in range(count):
        old = f"task-{n}.f7.agent-{n}-0123456789"
        app.model.note(event("reap", f"task-{n}", f"{old}.claimed")._replace(at=now))
        app.model.note(event("refused", f"task-{n}", old, by="a", reason="done")._replace(at=now))


def notices(app: DibsApp) -> list[str]:
    """The kinds of the notices that apply."""
    screen = app.board_screen
    assert screen is not None
    return [notice.kind for notice in screen.frame.notices]


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (100, 30), (120, 40), (160, 45), (200, 60)])
def test_the_lost_board_stands_before_the_brake_the_frozen_list_and_late_holders(
    path: Path, board: dibs.Board, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(board)
    monkeypatch.setattr(Brake, "why", lambda self, at: WHY)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        rows = text_of(app).split("\n")
        came_back(app, 1500)
        await asyncio.to_thread(path.rename, path.with_name("away"))
        await until(pilot, lambda: "MISSING" in text_of(app))
        await until(pilot, lambda: notices(app) == ["lost", "brake", "frozen", "back"])
        await until(pilot, lambda: "+3" in text_of(app))
        for word in ("BRAKE", "FROZEN") if size[0] >= 72 else ("BRAKE",):
            assert word in text_of(app).split("\n")[0]
        for before, after in zip(rows, text_of(app).split("\n"), strict=True):
            found = [re.findall(r"task-\d+", line) for line in (before, after)]
            assert found[0] == found[1], "no notice moves a row"

    drive(path, steps, size=size)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_escape_hides_late_holders_and_no_other_notice(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        came_back(app, 1)
        await pilot.press("p")
        await until(pilot, lambda: notices(app) == ["frozen", "back"])
        assert "FROZEN list" in text_of(app)
        assert "+1" in text_of(app)
        await pilot.press("p")
        await until(pilot, lambda: "came back" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "came back" not in text_of(app))

    drive(path, steps, size=size)


def test_a_frozen_list_is_shown_on_an_empty_board_too(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        assert "No tasks yet" in text_of(app)
        assert "FROZEN" in text_of(app)

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_the_room_of_the_rows_is_the_same_with_and_without_a_notice(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        before = screen.body.region
        came_back(app, 3)
        await until(pilot, lambda: "came back to 3 revoked claims" in text_of(app))
        assert screen.body.region == before

    drive(path, steps, size=size)
