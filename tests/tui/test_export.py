"""`e` saves what a list shows, as CSV or JSON, and harms neither files nor spreadsheets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import dibs
from dibs import Event
from dibs_tui.acting.new_file import write_new
from dibs_tui.app import DibsApp
from dibs_tui.model.export import defused, fields_of, text_of
from dibs_tui.screens.enter_line import EnterLine
from tests.tui.board_models import claim, still
from tests.tui.live import drive, filled, table, until

EVIL = "\x1b]52;c;AA\x07\u202e"


async def exported(app: DibsApp, pilot: Pilot[None], name: str) -> str:
    """Press `e`, give the file a name; returns the name that was offered."""
    await pilot.press("e")
    await until(pilot, lambda: isinstance(app.screen, EnterLine))
    await pilot.pause()
    line = app.screen.query_one(Input)
    offered, line.value = line.value, name
    await pilot.press("enter")
    return offered


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_filtered_rows_are_saved_in_their_order(
    path: Path, board: dibs.Board, tmp_path: Path
) -> None:
    filled(board, 30)
    board.claim("task-11", owner="=cmd()", ttl=600, metadata=f"{EVIL}x,y")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.board_screen.set_filter("task-1")
        await pilot.press("1", "2")
        offered = await exported(app, pilot, str(tmp_path / "a.csv"))
        assert offered.startswith(f"dibs-{path.name}-available-20")
        assert offered.endswith(".csv")
        await until(pilot, (tmp_path / "a.csv").exists)
        await until(pilot, lambda: len(rows_of(tmp_path / "a.csv")) == 9)
        listed = [task.id for task in table(app, "available").all_shown()]
        assert [row["id"] for row in rows_of(tmp_path / "a.csv")] == listed
        await pilot.press("3")
        await exported(app, pilot, str(tmp_path / "b.csv"))
        await until(
            pilot, lambda: (tmp_path / "b.csv").exists() and len(rows_of(tmp_path / "b.csv")) == 1
        )
        (row,) = rows_of(tmp_path / "b.csv")
        assert row["owner"] == "'=cmd()"
        assert row["metadata"].endswith("x,y")
        assert row["metadata"].isprintable()

    drive(path, steps)


@pytest.mark.parametrize("view", ["8", "9", "0"])
def test_problems_owners_and_feed_are_saved_too(
    path: Path, board: dibs.Board, tmp_path: Path, view: str
) -> None:
    filled(board, 3)
    board.claim("task-00", owner="web-3", ttl=1)
    board.park("task-01.available", "broken")
    file = tmp_path / "x.json"

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.model.count("stale") == 1)
        await pilot.press(view)
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: bool(screen.body.lists[screen.body.view].listed_rows()))
        await exported(app, pilot, str(file))
        await until(pilot, lambda: file.exists() and bool(file.read_text()))
        found = json.loads(file.read_text())
        assert found["board"] == str(path)
        assert found["view"] == screen.body.view
        assert any("task-00" in str(row) or "web-3" in str(row) for row in found["rows"])

    drive(path, steps)


def test_an_existing_file_is_left_as_it_is_and_the_operator_is_told(
    path: Path, board: dibs.Board, tmp_path: Path
) -> None:
    filled(board, 3)
    taken = tmp_path / "a.csv"
    taken.write_text("mine")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("e")
        await until(pilot, lambda: any("no rows here" in toast.words for toast in app.toasts))
        await pilot.press("2")
        await exported(app, pilot, str(taken))
        await until(pilot, lambda: any("exists" in toast.words for toast in app.toasts))
        await exported(app, pilot, str(tmp_path / "a.txt"))
        await pilot.pause()
        assert isinstance(app.screen, EnterLine)
        assert "must end in .csv or .json" in str(app.screen.query_one("#enter-hint").render())

    drive(path, steps)
    assert taken.read_text() == "mine"


def test_a_new_file_follows_no_link_and_is_private(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "elsewhere")
    assert "exists" in write_new(str(link), "x")
    assert not (tmp_path / "elsewhere").exists()
    assert write_new(str(tmp_path / "a.csv"), "\ud800ä") == ""
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o600
    assert "No such file" in write_new(str(tmp_path / "no" / "a.csv"), "x")
    assert write_new("a\0b", "x")


def test_a_write_that_fails_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    assert "exists" in write_new(str(full), "x")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@", " =", "\uff1d", "\n+"])
def test_formulas_are_defused(start: str) -> None:
    cell = str(defused(f"{start}1+1"))
    assert cell.startswith("'") or not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d"))
    assert cell.isprintable()


def test_numbers_stay_numbers_and_json_keeps_the_exact_text() -> None:
    assert defused(-1.5) == -1.5
    event = Event(-5.0, "fail", f"t{EVIL}", "", "", "=x", '"quoted", \n')
    fields = fields_of(still(), event)
    assert fields is not None
    data = text_of([fields], ".json", {"board": "/b"})
    assert data.isascii()
    assert "\x1b" not in data
    (row,) = json.loads(data)["rows"]
    assert (row["id"], row["by"], row["reason"]) == (event.id, event.by, event.reason)


def test_every_row_of_a_list_has_the_same_columns() -> None:
    model = still()
    names = [claim(model, f"t{n}", "web") for n in range(3)]
    rows = [fields_of(model, model.tasks[name]) for name in names]
    assert None not in rows
    lines = text_of([row for row in rows if row], ".csv", {}).splitlines()
    assert lines[0].startswith("id,kind,state,claim,owner")
    assert len(lines) == 4
