"""The title row: each part stands at the same cells whatever the others say."""

from __future__ import annotations

import pytest

from dibs_tui.model.frame.pieces import plain
from dibs_tui.model.frame.title_row import BADGES, Title, title_row

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

LIVE = Title("/srv/queues/render", "● live", "ok-text", "0s", False, "ada@web-1", "23:04:12")


def line(title: Title, cells: int) -> str:
    row = plain(title_row(title, cells))
    assert len(row) <= cells
    return row.ljust(cells)


@pytest.mark.parametrize(
    ("cells", "edges"),
    [
        (200, {"23:04:12": 2, "ada@web-1": 12, "0s": 30, "● live": 34}),
        (120, {"23:04:12": 2, "ada@web-1": 12, "0s": 30, "● live": 34}),
        (100, {"23:04:12": 2, "ada@web-1": 12, "0s": 30, "● live": 34}),
        (99, {"23:04:12": 2, "0s": 12, "● live": 16}),
        (72, {"23:04:12": 2, "0s": 12, "● live": 16}),
        (71, {"23:04:12": 2, "0s": 12, "●": 16}),
    ],
)
def test_each_part_ends_at_its_cell(cells: int, edges: dict[str, int]) -> None:
    row = line(LIVE, cells)
    assert row.startswith(" dibs /srv/queues/render ")
    for words, edge in edges.items():
        assert row[: cells - edge + 1].endswith(words)
    assert ("ada" in row) == (cells >= 100)
    assert ("live" in row) == (cells >= 72)


@pytest.mark.parametrize("cells", [120, 100, 80, 60])
def test_nothing_moves_when_a_value_changes(cells: int) -> None:
    changed = LIVE._replace(age="59m", is_late=True, clock="00:00:00", user="x" * 40)
    at = 30 if cells >= 100 else 12
    for title in (LIVE, changed):
        row = line(title, cells)
        assert row[: cells - 2 + 1].endswith(title.clock)
        assert row[: cells - at + 1].endswith(title.age)
        assert row.index("●") == line(LIVE, cells).index("●")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (160, " PAUSED   POLLING   FROZEN "),
        (120, " PAUSED   POLLING   FROZEN "),
        (60, " PAUSED  +2"),
    ],
)
def test_badges_stand_in_their_order_in_one_place(cells: int, words: str) -> None:
    row = line(LIVE._replace(badges=("PAUSED", "POLLING", "FROZEN")), cells)
    edge = 44 if cells >= 100 else 19
    assert row[: cells - edge + 1].endswith(words)


def test_a_badge_counts_down() -> None:
    row = line(LIVE._replace(badges=("UNLOCKED 4m50s",)), 80)
    assert " UNLOCKED 4m50s " in row


def test_every_badge_has_a_ground_of_its_own_row() -> None:
    pieces = title_row(LIVE._replace(badges=tuple(BADGES)), 250)
    grounds = {piece.text.strip(): piece.ground for piece in pieces if piece.ground}
    assert grounds == BADGES | {"REAPING": "muted"}, "the brake stops it"


@pytest.mark.parametrize("cells", range(1, 130))
def test_a_long_path_is_cut_in_the_middle_and_every_width_is_drawn(cells: int) -> None:
    title = LIVE._replace(path="/srv/" + "深い/" * 60 + "end", badges=tuple(BADGES))
    row = plain(title_row(title, cells))
    assert "\n" not in row
    if cells >= 60:
        assert "…" in row
        assert " PAUSED " in row


@pytest.mark.parametrize(("cells", "shown"), [(160, True), (120, True), (80, True), (60, False)])
def test_the_traits_of_the_storage_follow_the_path_where_there_is_room(
    cells: int, shown: bool
) -> None:
    title = LIVE._replace(traits=("sshfs", "whole seconds"), mode="↻ 1.5s")
    row = line(title, cells)
    assert ("render  sshfs · whole seconds  " in row) == shown
    assert row.rstrip().endswith("23:04:12")


def test_reaping_that_the_brake_has_stopped_is_not_green() -> None:
    title = Title("/b", "● live", "ok-text", "0s", clock="23:04:12", badges=("BRAKE", "REAPING"))
    grounds = {piece.text.strip(): piece.ground for piece in title_row(title, 120)}
    assert (grounds["BRAKE"], grounds["REAPING"]) == ("alarm", "muted")
    grounds = {
        piece.text.strip(): piece.ground
        for piece in title_row(title._replace(badges=("REAPING",)), 120)
    }
    assert grounds["REAPING"] == "ok"


def test_a_long_address_is_cut_before_what_a_change_survives() -> None:
    where = (
        "postgresql://ada@db.example/tasks?host=/var/run/postgresql&application_name=dibs-render"
    )
    row = line(LIVE._replace(path=where, traits=("durable: 2 standbys",)), 160)
    assert "  durable: 2 standbys " in row
    assert " dibs postgresql://ada@" in row
    narrow = line(LIVE._replace(path=where, traits=("durable: 2 standbys",)), 80)
    assert "durable" not in narrow
