"""The dashboard's janitor: it runs only when asked, never at once, never under the brake."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from tests.tui.dialogs import of_host, state, without_waiting
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import terminal


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    return dibs.open(tmp_path / "board", create=True)


def claimed(board: dibs.Board, ident: str, ttl: float) -> None:
    board.add(ident)
    assert board.claim(ident, owner=f"agent-{ident}", ttl=ttl) is not None


def head(app: DibsApp) -> str:
    return text_of(app).split("\n")[0]


def test_it_reaps_when_asked_and_the_feed_shows_the_evidence(board: dibs.Board) -> None:
    claimed(board, "stalled", 1)
    claimed(board, "alive", 600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        await asyncio.sleep(1.5)
        assert state(board, "stalled") == "claimed"
        assert "REAPING" not in head(app)
        assert app.board_screen is not None
        app.board_screen.commands.run("reaping")
        await until(pilot, lambda: " REAPING " in head(app))
        await until(pilot, lambda: state(board, "stalled") == "available")
        await pilot.press("0")
        await until(pilot, lambda: "reaped from agent-stalled, requeued" in text_of(app))
        app.board_screen.commands.run("reaping")
        assert not app.janitor.on

    drive(Path(board.location.where), steps)
    assert state(board, "alive") == "claimed"
    event = board.log.of("stalled")[-1]
    assert (event.verb, event.reason.startswith("no heartbeat for")) == ("reap", True)
    assert event.reason.endswith("by the dashboard's janitor")


def test_it_waits_one_beat_period_so_that_a_claim_can_come_back(board: dibs.Board) -> None:
    claimed(board, "late", 3)
    (record,) = Path(board.location.where, ".dibs/records").iterdir()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.janitor.on = True
        await until(pilot, lambda: bool(app.model.stale))
        app.board_screen.tick()
        await asyncio.sleep(0.4)
        app.board_screen.tick()
        assert state(board, "late") == "claimed"
        os.utime(record)
        await until(pilot, lambda: not app.model.stale)
        await asyncio.sleep(0.8)
        app.board_screen.tick()
        await asyncio.sleep(0.2)
        assert state(board, "late") == "claimed"

    drive(Path(board.location.where), steps)


def test_it_is_locked_while_the_storage_is_in_doubt(board: dibs.Board) -> None:
    for n in range(6):
        claimed(of_host(board, f"web-{n % 2}"), f"task-{n}", 2)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.janitor.on = True
        await until(pilot, lambda: {"BRAKE", "REAPING"} <= set(head(app).split()))
        await until(pilot, lambda: len(app.model.stale) == 6)
        await asyncio.sleep(1.8)
        assert {task.state for task in board.snapshot().tasks.values()} == {"claimed"}
        assert "2 hosts stopped beating" in text_of(app)
        app.model.brake.unlock()
        await until(pilot, lambda: not app.model.stale)
        await until(pilot, lambda: "BRAKE" not in head(app))

    drive(Path(board.location.where), steps)


def test_it_does_nothing_without_the_right_or_in_read_only_mode(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.board_screen.commands.run("reaping")
        assert not app.janitor.on
        app.janitor.on = True
        app.board_screen.tick()
        assert app.janitor.why_not

    for config in (Config(rights={"reap": False}), Config(read_only=True)):
        drive(Path(board.location.where), steps, config=config)


def test_it_can_be_turned_off_while_everything_is_locked(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.janitor.on = True
        app.board_screen.commands.run("reaping")
        assert not app.janitor.on

    drive(Path(board.location.where), steps, config=Config(read_only=True))


@pytest.mark.parametrize(
    ("flag", "reason"), [("--read-only", "the dashboard is read-only by"), ("", "reap = false")]
)
def test_a_janitor_that_may_not_reap_is_refused_at_the_start(
    board: dibs.Board, tmp_path: Path, flag: str, reason: str
) -> None:
    config = tmp_path / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[rights]\nreap = false\n")
    with terminal(tmp_path, "--reap", *filter(None, [flag]), board.location.where) as shown:
        assert shown.leaves() == 2
        assert reason in shown.text


def test_the_flag_turns_it_on(board: dibs.Board, tmp_path: Path) -> None:
    with terminal(tmp_path, "--reap", board.location.where, columns=120, rows=24) as shown:
        shown.shows(" REAPING ")
