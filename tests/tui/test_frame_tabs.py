"""The tabs: a view, its key and its count at fixed cells, for every width."""

from __future__ import annotations

import pytest

from dibs_tui.model.frame.pieces import Piece, Pieces, plain
from dibs_tui.model.frame.tab_rows import count_in, tab_rows
from dibs_tui.text.safe import width

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

COUNTS: dict[str, int | None] = {
    "available": 257, "claimed": 24, "stale": 63, "failed": 47, "done": 12_400, "locks": 2,
    "problems": 9, "owners": 13,
}  # fmt: skip
WIDE = (
    " 1 all   2 available 257     3 claimed 24      4 stale 63     5 failed 47     6 done 12.4k"
    "   7 locks 2     8 problems 9     9 owners 13    0 feed"
)
DRAWN = {
    200: [WIDE],
    160: [WIDE],
    120: [
        " 1 all  2 avail 257  3 claimed 24   4 stale 63  5 failed 47  6 done 12k  7 locks 2"
        "  8 problems 9  9 owners 13  0 feed"
    ],
    80: [
        " 1 all           2 avail 257     3 claimed 24    4 stale 63      5 failed 47",
        " 6 done 12k      7 locks 2       8 problems 9    9 owners 13     0 feed",
    ],
    60: [
        " 1 all       2 avail 257 3 claim 24  4 stale 63  5 fail 47",
        " 6 done 12k  7 locks 2   8 probs 9   9 owner 13  0 feed",
    ],
}


def lines(cells: int, active: str = "all", counts: dict[str, int | None] = COUNTS) -> list[str]:
    return [plain(row).rstrip() for row in tab_rows(active, counts, cells)]


def at(row: Pieces, cell: int) -> Piece:
    """The piece on a cell."""
    end = 0
    for piece in row:
        end += width(piece.text)
        if cell < end:
            return piece
    raise AssertionError(f"the row ends at {end}")


@pytest.mark.parametrize("cells", DRAWN)
def test_the_tabs_are_where_they_were_drawn(cells: int) -> None:
    assert lines(cells) == DRAWN[cells]


def test_below_60_columns_there_are_keys_and_counts_and_the_active_name() -> None:
    assert lines(59, "stale") == [
        " 1          2 257       3 24        4 stale 63  5 47",
        " 6 12k      7 2         8 9         9 13        0",
    ]


@pytest.mark.parametrize("cells", [200, 120, 100, 60, 50])
def test_no_count_moves_a_tab(cells: int) -> None:
    full = dict.fromkeys(COUNTS, 10**9)
    none = dict.fromkeys(COUNTS)
    for counts in (full, none, {**COUNTS, "stale": 0}):
        for row, other in zip(
            tab_rows("all", counts, cells), tab_rows("all", COUNTS, cells), strict=True
        ):
            actions = [at(row, cell).action for cell in range(min(len(plain(row)), cells))]
            assert actions == [at(other, cell).action for cell in range(len(actions))]


def test_every_cell_of_a_tab_can_be_clicked() -> None:
    row, below = tab_rows("all", COUNTS, 80)
    assert {at(row, cell).action for cell in range(16, 32)} == {"panel-available"}
    assert {at(below, cell).action for cell in range(64, 80)} == {"panel-feed"}


def test_the_active_tab_has_a_ground_and_urgent_counts_have_their_ink() -> None:
    (row,) = tab_rows("stale", COUNTS, 120)
    assert {at(row, cell).ground for cell in range(35, 46)} == {"sel"}
    assert at(row, 44)[1:3] == ("alarm", True)
    (calm,) = tab_rows("all", {**COUNTS, "stale": 0}, 120)
    assert at(calm, 44)[1:3] == ("faint", False)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, ["0", "0", "0", "0"]),
        (99, ["99", "99", "99", "99"]),
        (257, ["9+", "257", "257", "257"]),
        (1234, ["1k", "1k+", "1.2k", "1,234"]),
        (12_400, ["9+", "12k", "12k", "12.4k"]),
        (124_000, ["9+", "99+", "124k", "124k"]),
        (1_240_000, ["1M", "1M+", "1.2M", "1.2M"]),
    ],
)
def test_a_count_that_does_not_fit_ends_in_a_plus(count: int, shown: list[str]) -> None:
    assert [count_in(count, cells) for cells in (2, 3, 4, 5)] == shown
