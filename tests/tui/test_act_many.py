"""Acts on many: what a filter lists, what is odd about some, the ledger, and the way to stop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot
from textual.widgets import ProgressBar

import dibs
from dibs.journal import LEDGER
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.matches import MatchesScreen
from tests.patience import PATIENCE
from tests.tui.dialogs import asked, fill, hint, of_host, state, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    """No brake: a machine at its limits looks like a storage that is."""
    without_waiting(monkeypatch, tmp_path)
    monkeypatch.setattr("dibs_tui.model.brake.Brake.why", lambda self, at: "")
    return dibs.open(tmp_path / "board", create=True)


def waiting(board: dibs.Board, *idents: str) -> None:
    for ident in idents:
        board.add(ident)


async def filtered(app: DibsApp, pilot: Pilot[None], terms: str) -> None:
    assert app.board_screen is not None
    assert not app.board_screen.set_filter(terms)
    await pilot.pause()


def ids(app: DibsApp) -> set[str]:
    """What is marked in the table of waiting tasks."""
    assert app.board_screen is not None
    return {task.id for task in app.board_screen.tables["available"].marks.values()}


def test_all_matches_are_those_that_the_filter_listed_at_that_moment(board: dibs.Board) -> None:
    waiting(board, "mail-1", "mail-2", "news-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "M")
        await until(pilot, lambda: "no filter is set" in text_of(app))
        await filtered(app, pilot, "mail")
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MatchesScreen))
        assert "mail lists 2 tasks: 2 available" in text_of(app)
        waiting(board, "mail-later")
        table = app.board_screen.tables["available"]  # type: ignore[union-attr]
        await until(pilot, lambda: table.length == 3)
        await pilot.press("P")
        await until(pilot, lambda: "2 of 2 as they were seen" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: "2 done" in text_of(app))

    drive(Path(board.path), steps)
    found = {name: state(board, name) for name in ("mail-1", "mail-2", "mail-later", "news-1")}
    assert found == {
        "mail-1": "failed", "mail-2": "failed", "mail-later": "available", "news-1": "available",
    }  # fmt: skip


def test_matches_that_an_act_does_not_fit_are_left_out_and_counted(board: dibs.Board) -> None:
    waiting(board, "mail-1", "mail-2")
    board.claim("mail-2", owner="w", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await filtered(app, pilot, "mail")
        await pilot.press("M")
        await until(pilot, lambda: "lists 2 tasks: 1 claimed, 1 available" in text_of(app))
        assert "R    requeue          0" in text_of(app)
        await pilot.press("R")
        await until(pilot, lambda: "only what is" in text_of(app))
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MatchesScreen))
        await pilot.press("plus")
        await until(pilot, lambda: isinstance(app.screen, ActScreen))
        await until(pilot, lambda: hint(app).startswith("y"))
        assert "1 of 2 left out: 1 claimed" in text_of(app)
        assert "u undoes it." in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.path), steps, size=(80, 24))
    assert board.find("mail-1")[0].priority == 6


def test_odd_ones_are_left_out_until_they_are_asked_for_and_their_number_is_typed(
    board: dibs.Board,
) -> None:
    waiting(board, "silent-1", "silent-2", "alive", "gone")
    for ident in ("silent-1", "silent-2", "gone"):
        board.claim(ident, owner="w", ttl=2)
    board.claim("alive", owner="w", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 3)
        await pilot.press("1", "asterisk")
        os.unlink(f"{board.path}/{board.find('gone')[0].name}")
        await pilot.press("X")
        odd = "2 odd, set apart; a includes the 1 that are still there"
        await until(pilot, lambda: "2 of 4 as they were" in text_of(app) and odd in text_of(app))
        assert hint(app).startswith("y")
        await pilot.press("a")
        await asked(app, pilot, "type the number to go on: 3")
        assert app.focused is not None
        assert app.focused.id == "act-typed"
        await pilot.press("3", "enter")
        await asked(app, pilot, "y — force-release")
        await pilot.press("y")
        await until(pilot, lambda: "3 done" in text_of(app))

    drive(Path(board.path), steps, size=(80, 24))
    assert [state(board, i) for i in ("silent-1", "silent-2", "alive")] == ["available"] * 3


def test_a_run_can_be_stopped_and_what_it_left_stays_marked_and_is_told(
    board: dibs.Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(board, *(f"task-{n}" for n in range(6)))
    began, go_on = Event(), Event()
    park = dibs.Board.park

    def slowly(self: dibs.Board, name: str, reason: str, *, by: str = "") -> dibs.Task:
        task = park(self, name, reason, by=by)
        if task.id == "task-2":
            began.set()
            assert go_on.wait(PATIENCE)
        return task

    monkeypatch.setattr(dibs.Board, "park", slowly)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await fill(app, pilot, "#act-reason", "out of disk")
        await pilot.press("y")
        await until(pilot, began.is_set)
        await asked(app, pilot, "2 of 6 … Esc stops")
        assert app.screen.query_one(ProgressBar).progress == 2
        await pilot.press("escape")
        go_on.set()
        await until(pilot, lambda: "3 done · 3 left" in text_of(app))
        assert "Park 6 tasks: stopped" in text_of(app)
        assert "Park 6 tasks?" not in text_of(app)
        await pilot.press("c")
        await until(pilot, lambda: "stopped before it came to this" in app.clipboard)
        await pilot.press("e")
        await asked(app, pilot, "saved: ")
        await pilot.press("escape")
        assert ids(app) == {"task-3", "task-4", "task-5"}

    drive(Path(board.path), steps)
    text, data = sorted(
        (tmp_path / "state/dibs/ledgers").iterdir(), key=lambda p: p.suffix == ".json"
    )
    assert len(text.read_text().splitlines()) == 6
    outcomes = json.loads(data.read_text())["outcomes"]
    assert [o["outcome"] for o in outcomes] == ["done"] * 3 + ["left"] * 3
    (line,) = [event for event in board.journal.read() if event.verb == LEDGER]
    assert line.reason.startswith("park: 3 done, 3 left; not done: task-3.available (left)")
    parked = {e.id: e.reason for e in board.journal.read() if e.verb == "park"}
    assert parked == dict.fromkeys(("task-0", "task-1", "task-2"), "out of disk")


def test_each_task_has_its_outcome_though_the_board_is_lost_before_the_run(
    board: dibs.Board, tmp_path: Path
) -> None:
    waiting(board, "task-1", "task-2", "task-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        os.rename(board.path, tmp_path / "away")
        await pilot.press("y")
        await until(pilot, lambda: "3 error" in text_of(app))
        # The line may be broken between its words.
        await until(pilot, lambda: "is missing" in text_of(app) and "was done" in text_of(app))
        os.rename(tmp_path / "away", board.path)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.path), steps)
    assert state(board, "task-3") == "available"


def test_what_is_left_of_a_run_when_the_board_is_swapped_says_that_the_board_is_missing(
    board: dibs.Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a mount goes: an empty directory stays, in which every task is gone."""
    waiting(board, "task-1", "task-2", "task-3")
    park = dibs.Board.park

    def swapping(self: dibs.Board, name: str, reason: str, *, by: str = "") -> dibs.Task:
        if name.startswith("task-2"):
            os.rename(board.path, tmp_path / "away")
            os.mkdir(board.path)
        return park(self, name, reason, by=by)

    monkeypatch.setattr(dibs.Board, "park", swapping)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await pilot.press("y")
        await until(pilot, lambda: "1 done" in text_of(app) and "2 error" in text_of(app))
        assert "the board is missing" in text_of(app)
        assert "it is gone" not in text_of(app)

    drive(Path(board.path), steps)


def test_a_plan_longer_than_the_screen_says_so_and_moves_under_the_keys(
    board: dibs.Board,
) -> None:
    waiting(board, *(f"task-{n:02}" for n in range(40)))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await until(pilot, lambda: "PgDn: more" in text_of(app) and "Cancel" in text_of(app))
        assert "task-39" not in text_of(app)
        await pilot.press(*["pagedown"] * 5)
        await until(pilot, lambda: "task-39" in text_of(app))
        await pilot.press(*["up"] * 3)
        await pilot.press("enter")

    drive(Path(board.path), steps, size=(80, 24))
    assert state(board, "task-39") == "available"


def test_all_of_a_host_are_released_with_three_keys(board: dibs.Board) -> None:
    web = of_host(board, "web-3")
    for n in range(12):
        web.add(f"task-{n}")
        web.claim(f"task-{n}", owner=f"agent-{n % 3}", ttl=2)
    board.add("other")
    board.claim("other", owner="web-9", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 12)
        await pilot.press("8")
        await until(pilot, lambda: "12 claims" in text_of(app))
        await pilot.press("X")
        await asked(app, pilot, "y — force-release")
        await pilot.press("y")
        await until(pilot, lambda: "12 done" in text_of(app))

    drive(Path(board.path), steps)
    assert {task.state for task in board.snapshot().tasks.values()} == {"available", "claimed"}
    assert state(board, "other") == "claimed"


def test_a_dead_workers_task_is_released_with_two_keys(board: dibs.Board) -> None:
    waiting(board, "alive", "task-7", "waits")
    board.claim("alive", owner="web-1", ttl=600)
    board.claim("task-7", owner="web-3", ttl=2)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: bool(app.model.stale))
        await until(
            pilot, lambda: screen.table is not None and screen.table.panel in ("stale", "all")
        )
        await pilot.press("X")
        await asked(app, pilot, "y — force-release")
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-7") == "available")

    drive(Path(board.path), steps, config=Config())
    assert state(board, "alive") == "claimed"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_what_a_long_plan_does_stays_in_sight_and_what_is_odd_comes_first(
    board: dibs.Board, size: tuple[int, int]
) -> None:
    for n in range(60):
        board.add(f"task-{n:02}")
        board.claim(f"task-{n:02}", owner="w", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "asterisk", "X")
        await until(pilot, lambda: "60 odd, set apart" in text_of(app))
        for key in ("pagedown", "end", "pageup"):
            await pilot.press(key)
            assert "this cannot be undone" in text_of(app)
            assert "The process is not stopped" in text_of(app)
            assert "Cancel" in text_of(app)

    drive(Path(board.path), steps, size=size)


def test_ages_in_a_plan_go_on(board: dibs.Board) -> None:
    for n in range(2):
        board.add(f"task-{n}")
        board.claim(f"task-{n}", owner="w", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "asterisk", "X")
        await until(pilot, lambda: "2 odd, set apart" in text_of(app))
        ages = set()

        def older() -> bool:
            line = next(line for line in text_of(app).split("\n") if "ALIVE" in line)
            ages.add(line.partition("ALIVE")[0].split()[-1])
            return len(ages) > 1

        await until(pilot, older)

    drive(Path(board.path), steps)
