"""Long messages: the reason comes first, and everything can be read in full."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.errors import BadName
from dibs.model.filters import parse
from dibs_tui.app import DibsApp
from dibs_tui.model.frame.notice_row import RowNotice, notice_row, shared_notice
from dibs_tui.model.frame.pieces import Piece, folded, plain
from dibs_tui.model.frame.status_row import Listed, Said, status_row
from dibs_tui.screens.read_messages import MessagesScreen
from dibs_tui.text.safe import width
from dibs_tui.widgets.filterbar import FilterBar
from tests.tui.live import drive, filled, text_of, until

LONG = " ".join(f"word{n}" for n in range(60)) + " end-of-it"
SIZES = [(80, 24), (120, 40), (200, 60)]
WRONG = {
    "id<abcdefghijklmnopqrstuvwxyz": "id is text: compare it with =, !=, ^=, ~ or !~",
    "age~12345678901234567890123": "age is a number: compare it with =, !=, <, <=, > or >=",
    "=abcdefghijklmnopqrstuvwxyz": "not a filter: write field=value, age>5m or a part of the id",
    "colouring=abcdefghijklmnopq": "there is no field 'colouring': use one of",
    "age>soon-and-very-soon-indeed-and-so-on": "is not a time: write it as 90s, 5m, 2h or 1d",
}


@pytest.mark.parametrize(("term", "reason"), WRONG.items())
def test_what_is_wrong_with_a_filter_begins_with_the_reason(term: str, reason: str) -> None:
    with pytest.raises(BadName) as wrong:
        parse((term,))
    assert reason in str(wrong.value)
    assert str(wrong.value).index(reason) <= 30, "a word of the user before it is cut"


@pytest.mark.parametrize("term", [term for term in WRONG if "colour" not in term])
@pytest.mark.parametrize("size", SIZES)
def test_what_is_wrong_with_a_filter_is_read_in_full_while_it_is_typed(
    path: Path, board: dibs.Board, term: str, size: tuple[int, int]
) -> None:
    filled(board, 1)
    with pytest.raises(BadName) as wrong:
        parse((term,))
    words = str(wrong.value).split()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        app.screen.query_one(FilterBar).value = term
        await until(pilot, lambda: all(word in last_rows(app) for word in words))
        await pilot.press("escape")
        await until(pilot, lambda: "? help" in text_of(app).split("\n")[-1])

    drive(path, steps, size=size)


def last_rows(app: DibsApp) -> str:
    return " ".join(text_of(app).split("\n")[-2:])


def test_pieces_are_folded_at_spaces_into_at_most_so_many_rows() -> None:
    parts = (Piece("✗ ", "alarm"), Piece("one two three", "text"), Piece("  four", "muted"))
    assert [plain(row).strip() for row in folded(parts, 10, 3)] == ["✗ one two", "three", "four"]
    assert [plain(row) for row in folded(parts, 40, 3)] == ["✗ one two three  four"]
    cut = folded(parts, 10, 2)
    assert plain(cut[-1]).endswith("…")
    assert [plain(row) for row in folded([Piece("x" * 25)], 10, 3)] == ["x" * 9 + "…"]


@pytest.mark.parametrize("cells", [60, 80, 120, 200])
def test_a_row_that_cuts_what_was_said_names_the_key_that_reads_all(cells: int) -> None:
    row = plain(status_row(Said(LONG, "error"), (), Listed(row=1, rows=2), cells, "l"))
    assert row.endswith("l reads all")
    assert width(row) <= cells
    assert "reads all" not in plain(status_row(Said("short"), (), Listed(), cells, "l"))
    back = RowNotice("back", f"← {LONG}", "last", "Esc hides")
    row = plain(notice_row([back], cells, "l"))
    assert row.endswith("l reads all  Esc hides")
    assert width(row) <= cells
    short = RowNotice("back", "← a", "b", "Esc hides")
    assert "reads all" not in plain(notice_row([short], cells, "l"))


def test_a_shared_row_names_the_key_for_what_it_leaves_out() -> None:
    pause = RowNotice("pause", "‖ PAUSED", "3 claims go on", "B resumes", "deploying")
    assert plain(shared_notice([pause], 60, "l")).endswith("  B  l")
    assert plain(shared_notice([RowNotice("back", "← a", "", "Esc hides")], 60, "l")) == "← a  Esc"


@pytest.mark.parametrize("size", SIZES)
def test_the_last_messages_and_the_notices_are_read_in_full(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board, 1)
    board.pause_claims(reason="a reason that is long " * 4 + "and ends here")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.notify("the first of them", markup=False)
        app.notify(LONG, markup=False, severity="error")
        await until(pilot, lambda: "reads all" in text_of(app))
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, MessagesScreen))
        found = app.screen
        assert isinstance(found, MessagesScreen)
        text = " ".join(found.text.split())
        assert LONG in text
        assert text.index("PAUSED") < text.index(LONG) < text.index("the first of them")
        assert "and ends here" in text
        await until(pilot, lambda: "end-of-it" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(path, steps, size=size)


def test_a_fact_about_a_row_that_is_cut_is_read_in_full(path: Path, board: dibs.Board) -> None:
    board.add("a")
    board.park(board.find("a")[0].name, LONG[:300] + " end-of-it")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("5")
        await until(pilot, lambda: "l reads all" in text_of(app))
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, MessagesScreen))
        await until(pilot, lambda: "end-of-it" in text_of(app))

    drive(path, steps, size=(80, 24))


def test_over_a_dialog_a_long_message_takes_up_to_three_rows(path: Path, board: dibs.Board) -> None:
    filled(board, 1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        app.notify(" ".join(["word"] * 30) + " end-of-it", markup=False)
        await until(pilot, lambda: "end-of-it" in text_of(app))
        app.notify("short", markup=False)
        await until(pilot, lambda: " short  +1" in text_of(app))
        assert "end-of-it" not in text_of(app)

    drive(path, steps, size=(80, 24))
