"""The notices above the rows: the gravest first, none hidden, none without a bound."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.brake import Brake
from dibs_tui.widgets.banner import Banner, Notice
from tests.tui.listed import event
from tests.tui.live import drive, filled, text_of, until

WHY = (
    "240 claims on 12 hosts fell silent at 14:02:11, within one beat: "
    "the storage or the clock is the suspect, not the workers"
)


def came_back(app: DibsApp, count: int) -> None:
    """So many holders of claims that were taken from them try to commit."""
    now = app.model.now.fs / 1e9
    for n in range(count):
        old = f"task-{n}.f7.agent-{n}-0123456789"
        app.model.note(event("reap", f"task-{n}", f"{old}.claimed")._replace(at=now))
        app.model.note(event("refused", f"task-{n}", old, by="a", reason="done")._replace(at=now))


def places(app: DibsApp, *words: str) -> list[int]:
    """The line of the screen on which each of these begins."""
    lines = text_of(app).split("\n")
    return [next(y for y, line in enumerate(lines) if word in line) for word in words]


@pytest.mark.parametrize("size", [(60, 24), (80, 24), (120, 40), (200, 60)])
def test_storage_brake_pause_and_who_came_back_stand_together_in_this_order(
    path: Path, board: dibs.Board, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(board)
    monkeypatch.setattr(Brake, "why", lambda self, at: WHY)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        came_back(app, 1500)
        await asyncio.to_thread(path.rename, path.with_name("away"))
        await until(pilot, lambda: "MISSING" in text_of(app))
        words = ("MISSING", "240 claims on 12", "PAUSED", "agent-1499", "and 1,498 more")
        await until(pilot, lambda: all(word in text_of(app) for word in words))
        assert places(app, *words) == sorted(places(app, *words))
        told = " ".join(text_of(app).split())
        assert "not the workers. Acts on many are locked." in told, "the brake's reason is whole"
        assert "p goes on" in told
        assert "task-00" in told, "there is room left for rows"

    drive(path, steps, size=size)


def test_who_came_back_hides_no_pause(path: Path, board: dibs.Board) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        came_back(app, 1)
        await pilot.press("p")
        assert "PAUSED" in text_of(app)
        assert "came back" in text_of(app)
        await pilot.press("escape")
        assert "came back" not in text_of(app)
        assert "PAUSED" in text_of(app)

    drive(path, steps)


def test_a_pause_is_told_on_an_empty_board_too(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        assert "EMPTY" in text_of(app)
        assert "PAUSED" in text_of(app)

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (80, 12)])
def test_a_notice_without_an_end_takes_no_more_than_its_lines(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        banner = app.screen.query_one(Banner)

        def laid_out() -> bool:  # shown again each time, because the board's own tick empties it
            banner.show([Notice("storage", "far " * 500, 3), Notice("brake", "漢" * 500, 2)])
            return banner.size.height == (5 if size[1] > 20 else 2)

        await until(pilot, laid_out)
        lines = [banner.render_line(y) for y in range(banner.size.height)]
        assert {line.cell_length for line in lines} == {size[0]}
        assert "…" in lines[-1].text

    drive(path, steps, size=size)
