"""What could not be sent to hooks, as the dashboard shows it and sends it again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.serve.deliveries import Deliveries, HookState, place_of
from dibs_tui.app import DibsApp
from dibs_tui.screens.deliveries import DeliveriesScreen
from dibs_tui.settings.config import Config
from tests.tui.dialogs import asked, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    made = dibs.open(tmp_path / "board", create=True)
    made.add("build")
    return made


def kept(board: dibs.Board, hook: str = "ci") -> Deliveries:
    return Deliveries(place_of(board.location, None), hook)


def fail(board: dibs.Board, number: int, task: str, reason: str, hook: str = "ci") -> str:
    """A delivery that failed; its id."""
    found, ident = kept(board, hook), f"{1_763_600_000_000 + number:014d}-{number:016x}"
    found.begin()
    event = {"at": 1_763_600_000.5, "verb": "fail", "id": task}
    found.add(ident, number, json.dumps({"event": event}).encode())
    (one,) = found.queued()
    taken = found.take(one, 1)
    assert taken is not None
    found.give_up(taken, reason)
    return ident


async def opened(app: DibsApp, pilot: Pilot[None]) -> None:
    assert app.board_screen is not None
    assert app.board_screen.acts.start("deliveries") is None
    await until(pilot, lambda: looked_up(app))


def looked_up(app: DibsApp) -> bool:
    """Whether the dialog is there and knows what failed."""
    return isinstance(app.screen, DeliveriesScreen) and app.screen.brief is not None


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_exactly_the_deliveries_that_were_listed_are_sent_again(
    board: dibs.Board, size: tuple[int, int]
) -> None:
    first = fail(board, 1, "deploy-1", "HTTP 500")
    fail(board, 2, "x\x1b[2J", "no answer\x07 within 10 s", "other")
    kept(board).keep(HookState("c", missed=1, dropped=7))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot)
        await asked(app, pilot, "y — send again")
        shown = text_of(app)
        assert "2 events could not be sent" in shown
        assert "ci: 7 dropped, log not read in time: 1 times" in shown
        assert re.search(r"ci     fail deploy-1 +HTTP 500", shown), "the columns stand in line"
        assert "other  fail x" in shown
        assert not {"\x1b", "\x07"} & set(shown)
        assert isinstance(app.screen, DeliveriesScreen)
        where = board.location.where
        assert app.screen.line.startswith(f"dibs -d {where} deliveries send {first} ")
        fail(board, 3, "later", "HTTP 502")
        await pilot.press("y")
        await until(pilot, lambda: "2 events queued." in text_of(app))

    drive(Path(board.location.where), steps, size=size)
    assert [one.id for one in kept(board).queued()] == [first]
    assert len(kept(board, "other").queued()) == 1
    assert [each.task for each in kept(board).failed()] == ["later"]
    assert [event.verb for event in board.log.newest_first()][:2] == ["hook", "hook"]


def test_without_a_failed_delivery_there_is_nothing_to_confirm(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot)
        await until(pilot, lambda: "no delivery has failed" in text_of(app))
        assert isinstance(app.screen, DeliveriesScreen)
        assert app.screen.line == ""

    drive(Path(board.location.where), steps)


def test_a_hook_that_fails_is_a_problem_and_enter_shows_its_deliveries(board: dibs.Board) -> None:
    fail(board, 1, "deploy-1", "HTTP 500")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "1 failed; the last: HTTP 500" in text_of(app))
        line = next(line for line in text_of(app).split("\n") if "HTTP 500" in line)
        assert "ci" in line
        assert "not sent" in line
        assert ":deliveries" in line
        await pilot.press("g", "enter")
        await until(pilot, lambda: looked_up(app))

    drive(Path(board.location.where), steps, size=(120, 40))


def test_the_right_can_be_denied(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        why = app.board_screen.acts.start("deliveries")
        assert why == "not allowed: deliveries = false in [rights] of config.toml"

    drive(Path(board.location.where), steps, config=Config(rights={"deliveries": False}))


def test_a_long_reason_is_cut_with_a_mark_and_an_old_event_has_its_day(board: dibs.Board) -> None:
    fail(board, 1, "deploy-1", "the certificate is not trusted: " * 5)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot)
        await until(pilot, lambda: "1 event could not be sent" in text_of(app))
        line = next(line for line in text_of(app).split("\n") if "fail deploy-1" in line)
        assert re.search(r"(19|20) Nov", line), "whichever time zone this is"
        assert line.rstrip("│ ").endswith("…")

    drive(Path(board.location.where), steps, size=(80, 24))


def test_a_database_says_where_its_deliveries_are(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(board: dibs.Board) -> object:
        return place_of(dibs.Location("postgresql://h/d", "postgresql://h/d"), None)

    monkeypatch.setattr("dibs_tui.screens.deliveries.access", nowhere)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot)
        await until(pilot, lambda: "a folder of its server: open the board" in text_of(app))

    drive(Path(board.location.where), steps)
