"""Which panels a terminal of some size shows, and the place of each by what it contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

VIEWS = (
    "all", "available", "claimed", "stale", "failed", "done", "locks", "problems", "owners", "feed",
)  # fmt: skip
NARROW, LOW = 100, 28
"""Below so many columns or rows there is one table of everything."""
OWNERS, FEED = 136, 180
"""The columns from which there is room for the owners, and for the feed."""
_SIDE, _OWNERS_SIDE = 62, 58
_LEAST = {"stale": 4, "claimed": 7, "bottom": 6}
"""The rows that a panel gets first, if it has as much content."""
_STALE, _OPEN, _CLAIMED = 45, 55, 50
"""The most of the height in percent: stale claims, also with an open fold, and other claims."""
_LACKS = 3
"""A panel that lacks so few rows gets them."""
PATIENCE = 30.0
"""Seconds without a key after which a panel may become lower."""


class Place(NamedTuple):
    """Where a panel is, in cells."""

    x: int
    y: int
    width: int
    height: int


def shown(view: str, width: int, height: int) -> tuple[str, ...]:
    """The tables or the list of a view, in the order of Tab."""
    if view != "all":
        return (view,)
    if width < NARROW or height < LOW:
        return ("all",)
    return ("stale", "claimed", "available", "failed", "done")


def beside(view: str, width: int, height: int) -> tuple[str, ...]:
    """The lists beside the tables; they never have the cursor."""
    if view != "all" or width < OWNERS or height < LOW:
        return ()
    return ("owners", "feed") if width >= FEED else ("owners",)


def places(
    contents: Mapping[str, int], width: int, height: int, *, is_open: bool = False
) -> dict[str, Place]:
    """The place of each panel by its rows with the band; `is_open`: a stale fold is open."""
    if len(contents) == 1:
        return {panel: Place(0, 0, width, height) for panel in contents}
    found: dict[str, Place] = {}
    left = width
    if "feed" in contents:
        left = width - _SIDE
        owners = min(contents["owners"], height // 2)
        found["owners"] = Place(left + 1, 0, _SIDE - 1, owners)
        found["feed"] = Place(left + 1, owners, _SIDE - 1, height - owners)
    available, right = _columns(left, owners_below="owners" in contents and left == width)
    failed_x = available + 1
    middle = (right - 1 if right < left else left) - failed_x
    bottom = max(contents["available"], contents["failed"] + contents["done"])
    if right < left:
        bottom = max(bottom, contents["owners"])
    stale, claimed = _heights(contents["stale"], contents["claimed"], bottom, height, is_open)
    top = stale + claimed
    rest = height - top
    failed, done = _stacked(contents["failed"], contents["done"], rest)
    found["stale"] = Place(0, 0, left, stale)
    found["claimed"] = Place(0, stale, left, claimed)
    found["available"] = Place(0, top, available, rest)
    found["failed"] = Place(failed_x, top, middle, failed)
    found["done"] = Place(failed_x, top + failed, middle, done)
    if right < left:
        found["owners"] = Place(right, top, left - right, rest)
    return found


def _columns(width: int, *, owners_below: bool) -> tuple[int, int]:
    """The width of the available tasks, and where the owners begin; `width` without owners."""
    if owners_below:
        return 44, width - _OWNERS_SIDE
    return min(56, width * 44 // 100), width


def _heights(stale: int, claimed: int, bottom: int, height: int, is_open: bool) -> tuple[int, int]:
    """The rows of the stale and the other claims; the rest is for the bottom."""
    least_bottom = min(bottom, _LEAST["bottom"])
    least_claimed = min(claimed, _LEAST["claimed"])
    most_stale = max(_LEAST["stale"], height * (_OPEN if is_open else _STALE) // 100)
    room = height - least_bottom
    one = _capped(stale, most_stale, room - least_claimed)
    two = _capped(claimed, max(_LEAST["claimed"], height * _CLAIMED // 100), room - one)
    spare = max(0, height - one - two - bottom)
    more = min(spare, claimed - two)
    return one + min(spare - more, stale - one), two + more


def _capped(content: int, most: int, room: int) -> int:
    """The rows of a panel: at most `most`, or a few more if that shows all, if there is room."""
    wanted = content if content - most <= _LACKS else most
    return max(0, min(wanted, room))


def _stacked(upper: int, lower: int, height: int) -> tuple[int, int]:
    """The rows of two panels above each other; the lower one needs a line below its band."""
    one = min(upper, max(height // 2, height - lower))
    if height - one < 2:
        return height, 0
    return one, height - one


class Contents:
    """The rows of each panel, as the layout counts them: they grow at once and shrink later."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._shrunk = 0.0

    def update(self, rows: Mapping[str, int], now: float, key_at: float) -> dict[str, int]:
        """The rows to lay out now; `key_at` is when the last key was pressed."""
        if now - max(key_at, self._shrunk) >= PATIENCE or self._rows.keys() != rows.keys():
            self._rows, self._shrunk = dict(rows), now
        else:
            self._rows = {name: max(rows[name], self._rows[name]) for name in rows}
        return dict(self._rows)

    def reset(self) -> None:
        """Forget the rows, because the operator has changed what is shown."""
        self._rows = {}
