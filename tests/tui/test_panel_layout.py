"""The places of the panels, by the size of the screen and by what the panels contain."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs_tui.model.columns import fitting
from dibs_tui.model.layout import PATIENCE, Contents, Place, beside, places, shown
from dibs_tui.model.panels import PANELS
from dibs_tui.widgets.paint import fitted

pytestmark = pytest.mark.fast("dibs_tui.model")

FEW = {"stale": 5, "claimed": 27, "available": 258, "failed": 5, "done": 12_401}


def heights(found: dict[str, Place]) -> tuple[int, ...]:
    return tuple(found[panel].height for panel in ("stale", "claimed", "available"))


@pytest.mark.parametrize(
    ("width", "height", "contents", "is_open", "expected"),
    [
        (120, 32, FEW, False, (5, 16, 11)),
        (160, 37, FEW | {"owners": 14}, False, (5, 18, 14)),
        (200, 52, FEW | {"owners": 14, "feed": 1419}, False, (5, 27, 20)),
        (120, 32, FEW | {"stale": 65}, True, (17, 9, 6)),
        (120, 32, FEW | {"stale": 65}, False, (14, 12, 6)),
        (120, 32, FEW | {"stale": 1, "claimed": 1}, False, (1, 1, 30)),
    ],
)
def test_heights_follow_what_the_panels_contain(
    width: int, height: int, contents: dict[str, int], is_open: bool, expected: tuple[int, ...]
) -> None:
    assert heights(places(contents, width, height, is_open=is_open)) == expected


def test_the_columns_of_panels_are_those_of_the_drawn_board() -> None:
    found = places(FEW, 120, 32)
    assert (found["available"].x, found["available"].width) == (0, 52)
    assert (found["failed"].x, found["failed"].width) == (53, 67)
    found = places(FEW | {"owners": 14}, 160, 37)
    assert [(found[p].x, found[p].width) for p in ("available", "failed", "owners")] == [
        (0, 44), (45, 56), (102, 58),
    ]  # fmt: skip
    found = places(FEW | {"owners": 14, "feed": 900}, 200, 52)
    assert found["owners"] == Place(139, 0, 61, 14)
    assert found["feed"] == Place(139, 14, 61, 38)
    assert found["failed"] == Place(57, 32, 81, 5)


@given(
    st.integers(100, 300),
    st.integers(20, 90),
    st.tuples(*[st.integers(1, 200)] * 7),
    st.booleans(),
)
def test_panels_fill_the_screen_without_overlap(
    width: int, height: int, rows: tuple[int, ...], is_open: bool
) -> None:
    panels = (*shown("all", width, 40), *beside("all", width, 40))
    found = places(dict(zip(panels, rows, strict=False)), width, height, is_open=is_open)
    taken = set[tuple[int, int]]()
    for place in found.values():
        cells = {
            (x, y)
            for x in range(place.x, place.x + place.width)
            for y in range(place.y, place.y + place.height)
        }
        assert not cells & taken
        assert all(x < width and y < height for x, y in cells)
        taken |= cells
    assert len(taken) >= width * height - 2 * height
    assert all(found[panel].height >= 1 for panel in ("stale", "claimed", "available"))


@pytest.mark.parametrize(
    ("width", "height", "tables", "lists"),
    [
        (200, 60, 5, ("owners", "feed")),
        (160, 45, 5, ("owners",)),
        (120, 40, 5, ()),
        (100, 28, 5, ()),
        (99, 40, 1, ()),
        (120, 27, 1, ()),
        (60, 20, 1, ()),
    ],
)
def test_a_small_screen_has_one_table(
    width: int, height: int, tables: int, lists: tuple[str, ...]
) -> None:
    assert len(shown("all", width, height)) == tables
    assert beside("all", width, height) == lists


def test_panels_grow_at_once_and_shrink_after_a_while_without_a_key() -> None:
    contents = Contents()
    assert contents.update({"stale": 5}, 0.0, 0.0) == {"stale": 5}
    assert contents.update({"stale": 60}, 1.0, 0.0) == {"stale": 60}
    assert contents.update({"stale": 5}, 2.0, 0.0) == {"stale": 60}
    key = 20.0
    assert contents.update({"stale": 5}, key + PATIENCE - 1, key) == {"stale": 60}
    assert contents.update({"stale": 5}, key + PATIENCE + 1, key) == {"stale": 5}
    contents.update({"stale": 60}, key + PATIENCE + 2, key)
    contents.reset()
    assert contents.update({"stale": 5}, key + PATIENCE + 3, key) == {"stale": 5}


def starts(panel: str, width: int, *, grid: bool = True) -> dict[str, tuple[int, int]]:
    """The first and the last cell of each column."""
    spec, at, found = PANELS[panel], 4, {}
    for key, cells in fitted(spec.grid if grid else spec.columns, width):
        found[key] = at, at + cells - 1
        at += cells + 1
    return found


def test_stale_and_claimed_share_the_drawn_columns() -> None:
    assert starts("claimed", 120) == {
        "id": (4, 32), "owner": (34, 45), "host": (47, 55), "lease": (57, 64), "left": (66, 71),
        "held": (73, 78), "note": (80, 111), "progress": (113, 117),
    }  # fmt: skip
    for width in range(40, 300):
        one, two = starts("stale", width), starts("claimed", width)
        assert list(one.values()) == list(two.values())
    assert starts("claimed", 160)["fence"] == (93, 97)
    assert starts("available", 52) == {
        "id": (4, 31), "priority": (33, 35), "waiting": (37, 44), "tries": (46, 50),
    }  # fmt: skip


def test_columns_leave_in_their_order_and_ids_are_cut_last() -> None:
    left: list[str] = []
    keys = PANELS["claimed"].columns
    before = set(keys)
    for cells in range(200, 20, -1):
        found = dict(fitting(keys, cells))
        left += sorted(before - found.keys())
        before = set(found)
        assert found["id"] >= 18 or before == {"id", "lease"}
    assert left[:7] == ["fence", "beat", "progress", "held", "host", "note", "owner"]


@given(st.integers(8, 300), st.sampled_from(sorted(PANELS)))
def test_columns_never_overlap_and_stay_in_the_table(width: int, panel: str) -> None:
    for grid in (True, False):
        found = list(starts(panel, width, grid=grid).values())
        assert all(a[1] < b[0] for a, b in pairwise(found))
        assert found[-1][1] < max(width, 18)


def test_columns_stand_near_an_id_that_nothing_else_needs_room_for() -> None:
    assert fitting(("id", "priority", "waiting"), 160)[0] == ("id", 80)
    assert fitting(("id", "priority", "waiting"), 60)[0][1] < 60
