"""The graph band: half an hour of the backlog and of the flow, from what the log counted."""

from __future__ import annotations

import pytest

from dibs import Pause, Rates, Waiter
from dibs.model.delta import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.frame.braille import graph
from dibs_tui.model.frame.graph_band import (
    band_of,
    band_rows,
    cells_of,
    drain_text,
    graphs_key,
    graphs_of,
)
from dibs_tui.model.frame.history import bucket_of, flow, levels
from dibs_tui.model.frame.pieces import plain
from dibs_tui.model.frame.tally import Tally
from tests.tui.board_models import NOW, SECOND, claim, event, put, still

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

AT = NOW.fs / SECOND


def added(model: BoardModel, ago: float, count: int = 1, ident: str = "t") -> None:
    for _ in range(count):
        model.note(event("add", ident, dst=f"{ident}.available", ago=ago))


def rows(model: BoardModel, cells: int = 120, view: str = "all") -> list[str]:
    band = band_of(model, view, graphs_of(model, view, cells), 13)
    return [plain(row).ljust(cells) for row in band_rows(band, cells)]


@pytest.mark.parametrize(
    ("values", "top", "shown"),
    [
        ([0, 0], 4, [" "]),
        ([1, 1], 1000, ["⣀"]),
        ([4, 4], 4, ["⣿"]),
        ([2, 0], 4, ["⡄"]),
        ([0, 3, 4], 4, ["⢰⡇"]),
        ([None, 4], 4, ["⢸"]),
        ([1, 2], 1, ["⣠"]),
    ],
)
def test_a_graph_has_four_heights_in_a_cell_and_a_dot_for_anything_above_nothing(
    values: list[float | None], top: float, shown: list[str]
) -> None:
    assert graph(values, top) == shown


def test_three_rows_are_filled_from_the_bottom() -> None:
    assert graph([12, 4], 12, rows=3) == ["⡇", "⡇", "⣿"]
    assert graph([6, 8], 12, rows=3) == [" ", "⣼", "⣿"]


def test_the_backlog_of_the_past_follows_from_the_count_now_and_the_log() -> None:
    rates = Rates()
    for ago, verb, src, dst in (
        (1000, "add", "", "a.available"),
        (500, "claim", "a.available", "a.f1.w-0123456789.claimed"),
        (400, "fail", "a.f1.w-0123456789.claimed", "a.f1a1n99.later"),
        (200, "due", "a.f1a1n99.later", "a.f1a1.available"),
        (100, "park", "a.f1a1.available", "failed/a.f1a1.me-0123456789"),
        (90, "intent", "failed/a.f1a1.me-0123456789", "a.f1a1.available"),
    ):
        rates.note_move(verb, src, dst, AT - ago)
    waiting = levels(rates, ("available", "later"), 5, AT, 60)
    assert waiting[0] == 5
    this = bucket_of(AT, 60)
    places = [bucket_of(AT - ago, 60) - this - 1 for ago in (600, 450, 300)]
    assert [waiting[place] for place in places] == [6, 5, 6]
    assert waiting[-1] == 5
    assert levels(rates, ("failed",), 1, AT, 60)[-6:] == [0, 0, 1, 1, 1, 1]


def test_before_the_log_began_nothing_is_known() -> None:
    rates = Rates()
    rates.begins = AT - 600
    found = levels(rates, ("available",), 3, AT, 60)
    assert found[:39] == [None] * 39
    assert found[41:] == [3] * 19
    assert flow(rates, "claims", AT, 60)[:39] == [None] * 39


def test_a_log_that_says_too_much_never_makes_a_negative_backlog() -> None:
    rates = Rates()
    for n in range(9):
        rates.note_move("add", "", f"t{n}.available", AT - 60)
    assert levels(rates, ("available",), 2, AT, 60)[0] == 0


@pytest.mark.parametrize(("cells", "graph_cells"), [(120, 30), (160, 45), (200, 60), (230, 60)])
def test_every_part_of_the_band_has_its_cells(cells: int, graph_cells: int) -> None:
    model = still()
    put(model, *(f"t{n}.available" for n in range(7)))
    added(model, 10, 7)
    model.note(event("claim", "x", ago=5))
    model.apply(Delta(waiters=(Waiter("w-1", "w"), Waiter("v-1", "v", state="paused"))))
    first, second, third = rows(model, cells)
    g = cells_of(cells)
    assert g == graph_cells
    assert first[1:15] == "backlog      7"
    assert second[1:15].strip() == "+7 in 30 min"
    assert first[g + 15] != " ", "the current bucket is at the right edge"
    assert [row[g + 19 : g + 26].strip() for row in (first, second, third)] == [
        "claims", "done", "failed",
    ]  # fmt: skip
    assert first[: g + 34].endswith("0.1/min")
    assert first[2 * g + 34] != " "
    assert first[2 * g + 38 :].split() == ["?", "0", "questions"]
    assert third[2 * g + 38 :].split() == ["○", "1", "idle", "of", "13"]


def test_a_flow_is_a_rate_per_minute_over_two_minutes() -> None:
    rates = Rates()
    for second in range(600):
        rates.note("claim", AT - second)
        rates.note("done", AT - 300 if second < 4 else 0)
    claims, dones = flow(rates, "claims", AT, 60), flow(rates, "dones", AT, 60)
    assert claims[-1] == pytest.approx(60, rel=0.02)
    assert claims[-10] == pytest.approx(60, rel=0.02)
    assert claims[0] == 0
    assert [value for value in dones if value] == [2.0] * 4


def test_the_flows_have_one_common_scale() -> None:
    model = still()
    for second in range(120):
        model.note(event("claim", "x", ago=second))
        if second % 4 == 0:
            model.note(event("done", "x", ago=second))
    first, second_, third = rows(model)
    assert [row[94] for row in (first, second_, third)] == ["⣾", "⣀", " "]


@pytest.mark.parametrize(
    ("view", "label"), [("all", "backlog"), ("available", "available"), ("failed", "failed")]
)
def test_the_view_decides_what_is_drawn(view: str, label: str) -> None:
    model = still()
    put(model, "a.available", "b.f0n2000000000.later", "failed/c.f1.w-0123456789")
    assert rows(model, view=view)[0].split()[:2] == [label, "2" if view == "all" else "1"]


def test_the_graph_shifts_once_per_bucket() -> None:
    model = still()
    added(model, 100)
    before = graphs_key(model, "all", 120)
    assert graphs_key(model, "all", 120) == before
    assert bucket_of(AT, 60) != bucket_of(AT + 30, 60)
    assert len({bucket_of(AT + second, 60) for second in range(60)}) <= 3
    added(model, 0)
    assert graphs_key(model, "all", 120) != before


@pytest.mark.parametrize(
    ("adds", "dones", "begins", "words"),
    [
        ({300: 40}, {200: 40, 30: 20}, None, "empty in 11m"),
        ({70: 40}, {30: 18}, 70, "empty in 1m10s"),
        ({30: 40}, {10: 9}, 30, ""),
        ({400: 40, 30: 9, 20: 9}, {30: 9, 20: 9}, None, "not draining"),
        ({400: 40}, {30: 1}, None, "not draining"),
        ({400: 40}, {}, None, "not draining"),
        ({}, {}, 20, ""),
    ],
    ids=["ten minutes", "newest", "just begun", "balanced", "too few", "no worker", "nothing yet"],
)
def test_tasks_that_were_added_at_once_do_not_hide_that_the_queue_shrinks(
    adds: dict[float, int], dones: dict[float, int], begins: float | None, words: str
) -> None:
    model = still()
    put(model, *(f"t{n}.available" for n in range(12)))
    put(model, *(f"t{n}.f1a1n{NOW.fs // SECOND + 600}.later" for n in range(12, 22)))
    model.rates.begins = begins and NOW.fs / SECOND - begins
    for verb, events in (("add", adds), ("done", dones)):
        for ago, many in events.items():
            for _ in range(many):
                model.note(event(verb, "x", ago=ago))
    assert drain_text(model)[0] == words
    assert rows(model)[2][1:15].strip() == words


def test_a_paused_board_says_for_how_long_instead() -> None:
    model = still()
    put(model, "a.available")
    model.apply(Delta(pauses=(Pause("0123456789", "ada@h", "", AT - 720),)))
    assert drain_text(model) == ("paused 12m", "pause")


def test_a_bucket_that_begins_now_has_a_rate() -> None:
    rates = Rates()
    rates.note_move("claim", "a.available", "a.f1.w-0123456789.claimed", AT - 100)
    for now in (0.0, AT - AT % 75):
        assert len(flow(rates, "claims", now, 48, 3600)) == 48


def test_owners_whose_claims_are_all_stale_are_not_counted_as_workers() -> None:
    model = still()
    claim(model, "a", "dead", beats=(500.0,))
    claim(model, "b", "works")
    claim(model, "c", "both", beats=(500.0,))
    claim(model, "d", "both")
    tally = Tally(model, lambda: 0)
    assert tally.counts(known=True)["owners"] == 3
    assert tally.workers == 2
