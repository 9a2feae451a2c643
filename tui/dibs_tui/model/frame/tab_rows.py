"""The tabs: each view with its key and its count in fixed cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dibs_tui.model.frame.pieces import Piece, Pieces, cut, size
from dibs_tui.model.layout import VIEWS
from dibs_tui.text.ages import UNREAD, many

ONE_ROW, NAMED, SHORT = 120, 60, 80
"""The columns from which the tabs take one row, have names at all, and have their full names."""
_WIDE = 160
_SHORT = {"available": "avail"}
_SHORTEST = {
    "available": "avail", "claimed": "claim", "failed": "fail", "problems": "probs",
    "owners": "owner",
}  # fmt: skip
_CELLS = dict(zip(VIEWS, (0, 4, 4, 3, 3, 4, 2, 2, 3, 0), strict=True))
_WIDE_CELLS = dict(zip(VIEWS, (0, 5, 5, 4, 4, 5, 3, 3, 3, 0), strict=True))
"""The cells of each count where the tabs take one row."""
_MANY = 10_000
_GRID = 4
"""The most cells of a count where they take two."""
INKS = {
    "available": "text",
    "claimed": "ok-text",
    "stale": "alarm",
    "failed": "fail",
    "done": "faint",
    "locks": "lock",
    "problems": "late",
    "owners": "text",
}
_BOLD = ("stale",)


class Tab(NamedTuple):
    """One tab: the view, its pieces and the cells that it takes."""

    view: str
    pieces: Pieces
    cells: int


def count_in(count: int, cells: int) -> str:
    """A count in at most this many cells; one that is cut ends in `+`."""
    for text in (f"{count:,}" if count < _MANY else "", many(count), *_rounded_down(count)):
        if 0 < len(text) <= cells:
            return text
    return f"{'9' * (cells - 1)}+"


def _rounded_down(count: int) -> Iterator[str]:
    """Shorter spellings of a count from 1,000 on."""
    unit, size_ = ("k", 1000) if count < 1_000_000 else ("M", 1_000_000)
    number = count / size_
    if 1 <= number < 1000:
        if number < 10:
            yield f"{int(number * 10) / 10}{unit}"
            yield f"{int(number)}{unit}+"
        yield f"{int(number)}{unit}"


def tab_rows(active: str, counts: Mapping[str, int | None], cells: int) -> list[Pieces]:
    """One row of tabs, or two; a count that is None is still being read."""
    tabs = list(_tabs(active, counts, cells))
    rows = [tabs] if cells >= ONE_ROW else [tabs[:5], tabs[5:]]
    return [cut((piece for tab in row for piece in tab.pieces), cells) for row in rows]


def height(cells: int) -> int:
    """How many rows the tabs take."""
    return 1 if cells >= ONE_ROW else 2


def _tabs(active: str, counts: Mapping[str, int | None], cells: int) -> Iterator[Tab]:
    """Every tab, from one cell before its key to the next tab."""
    one_row = cells >= ONE_ROW
    gap = 3 if cells >= _WIDE else 1
    for number, view in enumerate(VIEWS):
        name = _name(view, active, cells)
        wide = (_WIDE_CELLS if cells >= _WIDE else _CELLS)[view]
        if one_row:
            room = 3 + len(name) + (1 + wide + gap - 1 if wide else 1 + gap // 3)
        else:
            column = number % 5
            room = cells * (column + 1) // 5 - cells * column // 5
            wide = min(wide and _GRID, room - 3 - len(name) - bool(name))
        shown = _count_piece(view, counts[view], wide) if view in counts and wide > 0 else None
        yield Tab(view, _tab(view, name, active, shown, room), room)


def _name(view: str, active: str, cells: int) -> str:
    if cells >= _WIDE:
        return view
    if cells >= SHORT:
        return _SHORT.get(view, view)
    if cells >= NAMED or view == active:
        return _SHORTEST.get(view, view)
    return ""


def _count_piece(view: str, count: int | None, cells: int) -> Piece:
    if count is None:
        return Piece(UNREAD, "faint")
    ink = INKS[view] if count else "faint"
    return Piece(count_in(count, cells), ink, bold=bool(count) and view in _BOLD)


def _tab(view: str, name: str, active: str, count: Piece | None, room: int) -> Pieces:
    is_active = view == active
    ground, action = "sel" if is_active else "", f"panel-{view}"
    key = Piece(
        f" {(VIEWS.index(view) + 1) % 10} ",
        "accent" if is_active else "faint",
        bold=is_active,
        ground=ground,
        action=action,
    )
    found = [key]
    if name:
        ink = "bright" if is_active else "muted"
        found.append(Piece(f"{name} ", ink, bold=is_active, ground=ground, action=action))
    if count is not None:
        found.append(count._replace(ground=ground, action=action))
    found = list(cut(found, room))
    found.append(Piece(" " * (room - size(found)), "muted", ground=ground, action=action))
    return tuple(found)
