"""Acts on many tasks: what a filter lists, what is left out and why, the results, stopping."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

import dibs
from dibs import cli
from dibs.files.engine import FilesBoard, open_directory
from dibs.model.events import LEDGER
from dibs_tui.app import DibsApp
from dibs_tui.model.rows import plain
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.matches import MatchesScreen
from dibs_tui.settings.config import Config
from dibs_tui.text.safe import width
from dibs_tui.widgets.page import Page
from tests.patience import PATIENCE
from tests.tui.dialogs import asked, fill, hint, of_host, state, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesBoard:
    """A board without the brake, because a busy machine looks like a storage fault."""
    without_waiting(monkeypatch, tmp_path)
    monkeypatch.setattr("dibs_tui.model.brake.Brake.why", lambda self, at: "")
    return open_directory(tmp_path / "board", create=True)


def waiting(board: FilesBoard, *idents: str) -> None:
    for ident in idents:
        board.add(ident)


async def filtered(app: DibsApp, pilot: Pilot[None], terms: str) -> None:
    assert app.board_screen is not None
    assert not app.board_screen.set_filter(terms)
    await pilot.pause()


def ids(app: DibsApp) -> set[str]:
    """The marked ids in the table of available tasks."""
    assert app.board_screen is not None
    return {task.id for task in app.board_screen.body.tables["available"].marks.values()}


def test_all_matches_are_those_listed_by_the_filter_at_that_moment(board: FilesBoard) -> None:
    waiting(board, "mail-1", "mail-2", "news-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "M")
        await until(pilot, lambda: "no filter is set" in text_of(app))
        await filtered(app, pilot, "mail")
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MatchesScreen))
        assert "mail lists 2 tasks: 2 available" in text_of(app)
        waiting(board, "mail-later")
        table = app.board_screen.body.tables["available"]  # type: ignore[union-attr]
        await until(pilot, lambda: table.length == 3)
        await pilot.press("P")
        await until(pilot, lambda: "2 will be parked" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: "2 parked" in text_of(app))

    drive(Path(board.location.where), steps)
    found = {name: state(board, name) for name in ("mail-1", "mail-2", "mail-later", "news-1")}
    assert found == {
        "mail-1": "failed", "mail-2": "failed", "mail-later": "available", "news-1": "available",
    }  # fmt: skip


def test_matches_that_an_act_does_not_apply_to_are_left_out_and_counted(board: FilesBoard) -> None:
    waiting(board, "mail-1", "mail-2")
    board.claim("mail-2", owner="w", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await filtered(app, pilot, "mail")
        await pilot.press("M")
        await until(pilot, lambda: "lists 2 tasks: 1 claimed, 1 available" in text_of(app))
        lines = [line.split("│") for line in text_of(app).split("\n")]
        assert ["R", "requeue", "0"] in [part.split() for line in lines for part in line]
        await pilot.press("R")
        await until(pilot, lambda: "only for" in text_of(app))
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MatchesScreen))
        await pilot.press("plus")
        await until(pilot, lambda: isinstance(app.screen, ActScreen))
        await until(pilot, lambda: hint(app).startswith("y"))
        assert "1 of 2 not included: 1 claimed" in text_of(app)
        assert "u undoes it." in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.location.where), steps, size=(80, 24))
    assert board.find("mail-1")[0].priority == 6


def test_tasks_that_need_care_are_left_out_until_included_by_a_typed_count(
    board: FilesBoard,
) -> None:
    waiting(board, "expired-1", "expired-2", "alive", "gone")
    for ident in ("expired-1", "expired-2", "gone"):
        board.claim(ident, owner="w", ttl=2)
    board.claim("alive", owner="w", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 3)
        await pilot.press("1", "asterisk")
        os.unlink(f"{board.location.where}/{board.find('gone')[0].name}")
        await pilot.press("X")
        doubtful = "2 will be released   left out: 1 ALIVE, 1 changed"
        await until(pilot, lambda: doubtful in text_of(app))
        assert "add the 1 ALIVE" in text_of(app)
        assert hint(app).startswith("y")
        await pilot.press("a")
        await asked(app, pilot, "type the number to confirm: 3")
        assert app.focused is not None
        assert app.focused.id == "act-typed"
        await pilot.press("3", "enter")
        await asked(app, pilot, "y — release")
        await pilot.press("y")
        await until(pilot, lambda: "3 released" in text_of(app))

    drive(Path(board.location.where), steps, size=(80, 24))
    assert [state(board, i) for i in ("expired-1", "expired-2", "alive")] == ["available"] * 3


def test_a_run_can_be_stopped_and_the_rest_stays_marked_and_is_reported(
    board: FilesBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(board, *(f"task-{n}" for n in range(6)))
    began, go_on = Event(), Event()
    park = FilesBoard.park

    def slowly(
        self: FilesBoard, name: str, reason: str, *, by: str = "", bulk: str = ""
    ) -> dibs.Task:
        task = park(self, name, reason, by=by, bulk=bulk)
        if task.id == "task-2":
            began.set()
            assert go_on.wait(PATIENCE)
        return task

    monkeypatch.setattr(FilesBoard, "park", slowly)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await fill(app, pilot, "#act-reason", "out of disk")
        await pilot.press("y")
        await until(pilot, began.is_set)
        await asked(app, pilot, "2 of 6 … Esc stops")
        await pilot.press("escape")
        go_on.set()
        await until(pilot, lambda: "3 parked · 3 not started" in text_of(app))
        assert "Park 6 tasks: stopped, 3 parked" in text_of(app)
        assert "Park 6 tasks?" not in text_of(app)
        await pilot.press("c")
        await until(pilot, lambda: "not started: the bulk act was stopped" in app.clipboard)
        await pilot.press("e")
        await asked(app, pilot, "saved: ")
        await pilot.press("escape")
        assert ids(app) == {"task-3", "task-4", "task-5"}

    drive(Path(board.location.where), steps)
    text, data = sorted(
        (tmp_path / "state/dibs/ledgers").iterdir(), key=lambda p: p.suffix == ".json"
    )
    assert len(text.read_text().splitlines()) == 6
    outcomes = json.loads(data.read_text())["outcomes"]
    assert [o["outcome"] for o in outcomes] == ["done"] * 3 + ["left"] * 3
    (line,) = [event for event in board.log.read() if event.verb == LEDGER]
    assert line.reason.startswith("park: 3 done, 3 left; not done: task-3.available (left)")
    parked = {e.id: e.reason for e in board.log.read() if e.verb == "park"}
    assert parked == dict.fromkeys(("task-0", "task-1", "task-2"), "out of disk")


def test_each_task_has_an_outcome_even_if_the_board_is_lost_before_the_run(
    board: FilesBoard, tmp_path: Path
) -> None:
    waiting(board, "task-1", "task-2", "task-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        os.rename(board.location.where, tmp_path / "away")
        await pilot.press("y")
        await until(pilot, lambda: "3 error" in text_of(app))
        # The line may wrap between its words.
        await until(pilot, lambda: "is missing" in text_of(app) and "was done" in text_of(app))
        os.rename(tmp_path / "away", board.location.where)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.location.where), steps)
    assert state(board, "task-3") == "available"


def test_the_rest_of_a_run_reports_a_missing_board_when_the_board_is_swapped(
    board: FilesBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unmounted mount leaves an empty directory, which looks as if every task were gone."""
    waiting(board, "task-1", "task-2", "task-3")
    park = FilesBoard.park

    def swapping(
        self: FilesBoard, name: str, reason: str, *, by: str = "", bulk: str = ""
    ) -> dibs.Task:
        if name.startswith("task-2"):
            os.rename(board.location.where, tmp_path / "away")
            os.mkdir(board.location.where)
        return park(self, name, reason, by=by, bulk=bulk)

    monkeypatch.setattr(FilesBoard, "park", swapping)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await pilot.press("y")
        await until(pilot, lambda: "1 parked" in text_of(app) and "2 error" in text_of(app))
        assert "the board is missing" in text_of(app)
        assert "it is gone" not in text_of(app)

    drive(Path(board.location.where), steps)


def test_a_plan_longer_than_the_screen_says_so_and_scrolls(
    board: FilesBoard,
) -> None:
    waiting(board, *(f"task-{n:02}" for n in range(40)))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "asterisk", "P")
        await asked(app, pilot, "y — park")
        await until(pilot, lambda: "PgDn more" in text_of(app) and "Cancel" in text_of(app))
        assert "task-39" not in text_of(app)
        await pilot.press(*["pagedown"] * 9)  # as long as the room for the list is a few lines
        await until(pilot, lambda: "task-39" in text_of(app))
        await pilot.press(*["up"] * 3)
        await pilot.press("enter")

    drive(Path(board.location.where), steps, size=(80, 24))
    assert state(board, "task-39") == "available"


def test_all_claims_of_a_host_are_released_with_three_keys(board: FilesBoard) -> None:
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
        await asked(app, pilot, "y — release")
        await pilot.press("y")
        await until(pilot, lambda: "12 released" in text_of(app))

    drive(Path(board.location.where), steps)
    assert {task.state for task in board.snapshot().tasks.values()} == {"available", "claimed"}
    assert state(board, "other") == "claimed"


def test_a_dead_workers_task_is_released_with_two_keys(board: FilesBoard) -> None:
    waiting(board, "alive", "task-7", "waits")
    board.claim("alive", owner="web-1", ttl=600)
    board.claim("task-7", owner="web-3", ttl=2)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: bool(app.model.stale))
        await until(
            pilot,
            lambda: screen.body.table is not None and screen.body.table.panel in ("stale", "all"),
        )
        # A key is refused until the row under the cursor has been drawn.
        await until(pilot, lambda: [task.id for task in screen.selected()[0]] == ["task-7"])
        await pilot.press("X")
        await asked(app, pilot, "y — release")
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-7") == "available")

    drive(Path(board.location.where), steps, config=Config())
    assert state(board, "alive") == "claimed"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_long_plan_keeps_its_effect_visible_and_lists_doubtful_tasks_first(
    board: FilesBoard, size: tuple[int, int]
) -> None:
    for n in range(60):
        board.add(f"task-{n:02}")
        board.claim(f"task-{n:02}", owner="w", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "asterisk", "X")
        await until(pilot, lambda: "left out: 60 ALIVE" in text_of(app))
        for key in ("pagedown", "end", "pageup"):
            await pilot.press(key)
            assert "Cannot be undone" in text_of(app)
            assert "Their next heartbeats" in text_of(app)
            assert "Cancel" in text_of(app)
        page = app.screen.query_one("#reading", Page)
        assert page.overflows
        assert max(width(plain(line)) for line in page.lines) <= page.cells, "under the scroll bar"

    drive(Path(board.location.where), steps, size=size)


def test_ages_in_a_plan_are_updated(board: FilesBoard) -> None:
    for n in range(2):
        board.add(f"task-{n}")
        board.claim(f"task-{n}", owner="w", ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "asterisk", "X")
        await until(pilot, lambda: "left out: 2 ALIVE" in text_of(app))
        ages = set()

        def older() -> bool:
            ages.update(re.findall(r"beat (\w+) ago", text_of(app)))
            return len(ages) > 1

        await until(pilot, older)

    drive(Path(board.location.where), steps)


def test_the_command_that_a_plan_shows_runs_as_it_is_printed(board: FilesBoard) -> None:
    for ident in ("mail-1", "mail-2"):
        board.add(ident)
        claim = board.claim(ident, owner="me")
        assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        table = app.board_screen.body.tables["claimed"]
        await until(pilot, lambda: table.length == 2)
        await pilot.press("asterisk", "X")
        await until(pilot, lambda: "a add the 2 ALIVE" in text_of(app))
        await pilot.press("a")
        await until(pilot, lambda: "the first of 2: c copies all" in text_of(app))
        screen = app.screen
        assert isinstance(screen, ActScreen)
        shown = f"-d {shlex.quote(board.location.where)} {screen.command().removeprefix('dibs ')}"
        assert cli.main(shlex.split(shown)) == 0

    drive(Path(board.location.where), steps, size=(120, 40))
    assert [task.state for task in board.find("mail-1")] == ["available"]
    assert [task.state for task in board.find("mail-2")] == ["claimed"]
