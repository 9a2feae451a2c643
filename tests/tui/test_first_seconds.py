"""While a board is still being read, no screen shows a number that is not known yet."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

import pytest

from dibs import Delta, Health, Rates, Sample
from dibs_tui.model.board import BoardModel
from dibs_tui.model.cards import card_of
from dibs_tui.model.frame.graph_band import band_of, band_rows, drain_text, graphs_of
from dibs_tui.model.frame.pieces import plain
from dibs_tui.model.frame.tab_rows import tab_rows
from dibs_tui.model.frame.tally import Tally
from dibs_tui.model.hour import hour
from dibs_tui.model.problems import count, problems
from dibs_tui.model.wall import COUNTED, under
from dibs_tui.settings.config import Config
from dibs_tui.widgets.big_numbers import SIZES, WHOLE, big
from dibs_tui.widgets.feed import Feed
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.owners import Owners
from dibs_tui.widgets.table import TaskTable
from tests.tui.board_models import NOW, SECOND, task_of

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

FAILED = tuple(task_of(f"failed/t{n}.f3a3.w-{n:010X}") for n in range(3))


def opened() -> BoardModel:
    """A board whose watch has started."""
    model = BoardModel(lambda: NOW.boot)
    model.apply(Delta(now=NOW, complete=False))
    return model


def begin(model: BoardModel) -> None:
    """Report what is not over, in two parts as of a large board."""
    first, second = (task_of(f"{ident}.available") for ident in "ab")
    model.apply(Delta(added=(first,), more=True, complete=False))
    model.apply(Delta(added=(second,), complete=False))


def complete(model: BoardModel) -> None:
    """Report the rest."""
    model.apply(Delta(added=FAILED[:2], more=True, complete=False))
    model.apply(Delta(added=FAILED[2:], rates=Rates()))


def counts(model: BoardModel, tally: Tally) -> list[int | None]:
    found = tally.counts(known=True)
    return [found[view] for view in ("available", "stale", "failed", "done", "problems", "owners")]


def test_a_count_is_shown_from_when_every_such_task_was_reported() -> None:
    model = opened()
    tally = Tally(model, lambda: count(problems(model, Config(failing_again=3))))
    assert counts(model, tally) == [None] * 6
    model.apply(Delta(added=(task_of("a.available"),), more=True, complete=False))
    assert counts(model, tally) == [None] * 6
    model.apply(Delta(added=(task_of("b.available"),), complete=False))
    assert counts(model, tally) == [2, 0, None, None, None, 0]
    model.apply(Delta(added=FAILED[:2], more=True, complete=False))
    assert counts(model, tally) == [2, 0, None, None, None, 0]
    model.apply(Delta(added=FAILED[2:], rates=Rates()))
    assert counts(model, tally) == [2, 0, 3, 0, 1, 0], "the problems too, and not a second later"


def test_a_watch_that_starts_again_leaves_the_counts_that_are_known() -> None:
    model = opened()
    begin(model)
    complete(model)
    model.apply(Delta(complete=False))
    assert counts(model, Tally(model, lambda: 0))[2:4] == [3, 0]


def test_a_tab_has_dots_until_its_count_is_known_and_nothing_while_there_is_no_board() -> None:
    model = opened()
    begin(model)
    tally = Tally(model, lambda: 0)
    (row,) = tab_rows("all", tally.counts(known=True), 120)
    assert "2 avail 2" in plain(row)
    assert "5 failed …" in plain(row)
    assert "8 problems …" in plain(row)
    (row,) = tab_rows("all", tally.counts(known=False), 120)
    assert "2 avail   " in plain(row)
    assert "…" not in plain(row)


@pytest.mark.parametrize("view", ["all", "failed"])
def test_the_band_says_nothing_of_a_log_that_is_not_read_yet(view: str) -> None:
    model = opened()
    assert drain_text(model) == ("", "muted")
    begin(model)
    band = band_of(model, view, graphs_of(model, view, 120), 0)
    assert band.total == (None if view == "failed" else 2)
    assert band.change is None
    text = "\n".join(map(plain, band_rows(band, 120)))
    assert "0/min" not in text
    assert "±0" not in text
    assert not any(0x2800 < ord(char) < 0x2900 for char in text), "there is no graph"
    assert drain_text(model) == ("", "muted")
    assert set(hour(model, 60).backlog) == {None}
    complete(model)
    band = band_of(model, view, graphs_of(model, view, 120), 0)
    assert band.total == (3 if view == "failed" else 2)
    assert "0/min" in "\n".join(map(plain, band_rows(band, 120)))


def test_a_board_without_any_event_has_no_past() -> None:
    model = opened()
    begin(model)
    rates = Rates()
    rates.begins = float("inf")
    model.apply(Delta(rates=rates))
    graphs = graphs_of(model, "all", 120)
    assert graphs.levels[:-1] == (None,) * 59
    assert graphs.levels[-1] == 2
    assert band_of(model, "all", graphs, 0).change is None
    model.apply(Delta(now=Sample(NOW.fs, NOW.boot - 60 * SECOND)))  # a minute later
    assert graphs_of(model, "all", 120).levels[:-1] == (None,) * 59


def test_the_wall_says_that_it_reads() -> None:
    model = opened()
    begin(model)
    words = {state: under(model, [], state) for state in COUNTED}
    assert words == {"stale": "", "failed": "reading …", "claimed": "", "available": ""}
    complete(model)
    assert "reading" not in under(model, [], "failed")
    for size in (*SIZES, *WHOLE):
        rows = big("…", size)
        assert len({len(row) for row in rows}) == 1
        assert rows[-1].strip()


def lists(model: BoardModel) -> Iterator[ListView[Any]]:
    yield Owners(model)
    yield Feed(model)


def test_no_list_says_that_there_is_none_before_that_is_known() -> None:
    model = opened()
    for found in lists(model):
        assert found.count_text() == "…"
        assert found.nothing().startswith("reading")
    table = TaskTable("failed", model)
    assert table._count_text(0) == "…"
    assert table._count_text(2) == "2 …"
    begin(model)
    complete(model)
    for found in lists(model):
        assert found.count_text() == "none"
        assert not found.nothing().startswith("reading")
    assert table._count_text(3) == "3"
    assert table._count_text(0) == "none"


@pytest.mark.parametrize("place", ["/srv/q", "/srv/queues/render-of-the-night", "/a b"])
def test_the_first_steps_name_the_board(place: str) -> None:
    model = BoardModel(lambda: NOW.boot)
    model.apply(Delta(now=NOW))
    text = card_of(model, Health(fresh=1.0, live=True), "", place) or ""
    quoted = quote(place)
    if f"export DIBS_BOARD={quoted}\n" in text:
        assert "dibs add hello" in text
    else:
        assert f"dibs -d {quoted} add hello" in text
        assert f"dibs -d {quoted} run --loop" in text
    assert all(len(line) <= 76 for line in text.split("\n"))
