"""How one line of a table becomes a strip of the screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dibs_tui.model.columns import COLUMNS, fitting
from dibs_tui.model.line import GLYPHS, Line
from dibs_tui.text import fit

LEAD = 3
"""Cells before the first column: the mark, the glyph of the state, a gap."""
_COLOURED = ("state", "left", "past", "evidence", "reason")
_FAINT = ("metadata", "host", "fence", "tries", "held")
_BOLD = Style(bold=True)

Styles = Callable[[str], Style]
"""The style of a component of the table, by its name."""


class Look(NamedTuple):
    """Everything about a line that is not its text."""

    state: str
    cursor: str
    """`cursor` where keys act on it, `cursor-away` in a table without the focus, else empty."""
    marked: bool
    flash: bool


@lru_cache(256)
def fitted(columns: tuple[str, ...], width: int) -> list[tuple[str, int]]:
    """The columns that a table of so many cells has room for, each with its own."""
    return fitting(columns, width - LEAD)


def cells_of(columns: tuple[str, ...], line: Line, width: int) -> tuple[str, ...]:
    """The text of every cell."""
    cells = []
    for key, room in fitted(columns, width):
        column = COLUMNS[key]
        cells.append(
            fit(
                column.cell(line),
                room,
                align="right" if column.right else "left",
                cut="middle" if column.middle else "end",
            )
        )
    return tuple(cells)


def strip(
    styles: Styles, columns: tuple[str, ...], cells: tuple[str, ...], look: Look, width: int
) -> Strip:
    """One line: mark, glyph, cells."""
    base = styles("table--text")
    if look.flash:
        base += styles("table--flash")
    if look.marked:
        base += styles("table--marked")
    if look.cursor:
        base += styles(f"table--{look.cursor}")
    plain = look.cursor == "cursor"
    own = base if plain else base + styles(f"table--{look.state}")
    faint = base if plain else base + styles("table--muted")
    segments, before, text = [], own, f"{'▌' if look.marked else ' '}{GLYPHS[look.state]} "
    for (key, _), cell in zip(fitted(columns, width), cells, strict=True):
        style = own if key in _COLOURED or look.state == "gone" else base
        style = faint if key in _FAINT else style
        if style is not before:
            segments.append(Segment(text, before))
            before, text = style, ""
        text += f"{cell} "
    segments.append(Segment(text, before))
    return Strip(segments).adjust_cell_length(width, base)


def header(
    styles: Styles, columns: tuple[str, ...], sort: str, descending: bool, width: int
) -> Strip:
    """The titles, with an arrow at the one that the table is sorted by: ↓ where its values fall."""
    style = styles("table--header")
    segments = [Segment(" " * LEAD, style)]
    for key, room in fitted(columns, width):
        column = COLUMNS[key]
        falls = descending != column.falls
        arrow = ("↓" if falls else "↑") if key == sort else ""
        text = fit(column.title + arrow, room, align="right" if column.right else "left")
        segments.append(Segment(f"{text} ", style + _BOLD if arrow else style))
    return Strip(segments).adjust_cell_length(width, style)
