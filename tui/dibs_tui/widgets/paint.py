"""Turns the band and the lines of a table into strips for the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dibs_tui.model.columns import TRACK, column_of, fitting
from dibs_tui.model.task_line import GLYPHS, TaskLine
from dibs_tui.text.glyphs import glyph
from dibs_tui.text.safe import fit, width
from dibs_tui.widgets.inks import Inks

LEAD = 4
"""The cells before the first column: the cursor, the mark, the state's glyph, a gap."""
CURSOR, MARK, CHANGE = "▌", "■", "•"
THUMB, RAIL = "┃", "│"
"""The scroll bar's moving part, and the line that it moves on."""
_STATE_INKS = {
    "stale": "alarm",
    "failed": "fail",
    "late": "late",
    "held": "lock",
    "asked": "ask bold",
    "later": "later",
    "claimed": "ok",
    "done": "faint",
    "gone": "faint",
    "problem": "late",
}
_STRIKE = Style(strike=True)

Part = tuple[str, str]
"""A piece of clean text and its ink, with ` bold` or ` strike` after it."""


class LineLook(NamedTuple):
    """How a line is drawn, beside the texts of its cells."""

    cursor: bool
    """Whether the cursor is here, in the list that has the focus."""
    marked: bool
    changed: bool
    bar: str
    """The scroll bar on this line; empty if everything is visible."""
    dim: bool
    """Whether the board cannot be seen now: one ink for everything."""


@lru_cache(256)
def _words(ink: str) -> tuple[str, bool, bool]:
    """The name of an ink, whether it is bold, and whether it is struck through."""
    name, *rest = ink.split(" ")
    return name, "bold" in rest, "strike" in rest


class Painter:
    """Makes strips with the inks of the current theme."""

    def __init__(self, inks: Inks) -> None:
        self._inks = inks

    def style(self, ink: str, ground: str = "bg") -> Style:
        """The style of an ink such as `alarm bold` on a ground."""
        if " " not in ink:
            return self._inks.style(ink, ground)
        name, bold, strike = _words(ink)
        style = self._inks.style(name, ground, bold=bold)
        return style + _STRIKE if strike else style

    def strip(
        self, parts: Iterable[Part], cells: int, ground: str = "bg", *, dim: bool = False
    ) -> Strip:
        """Parts as one line of exactly this many cells."""
        return Strip(self._segments(parts, cells, ground, dim), cells)

    def line(self, parts: Iterable[Part], cells: int, ground: str, bar: str, dim: bool) -> Strip:
        """One line with its scroll bar."""
        segments = self._segments(parts, cells - 1, ground, dim)
        style = self.style("muted" if bar == THUMB else "line", ground)
        return Strip([*segments, Segment(bar or " ", style)], cells)

    def _segments(self, parts: Iterable[Part], cells: int, ground: str, dim: bool) -> list[Segment]:
        """Parts in exactly this many cells; neighbours in the same ink are one segment."""
        segments: list[Segment] = []
        before, text, used = "", "", 0
        for piece, ink in parts:
            ink = "faint" if dim and ink != "line" else ink
            if ink != before and text:
                segments.append(Segment(text, self.style(before, ground)))
                used += width(text)
                text = ""
            before, text = ink, text + piece
        if text:
            segments.append(Segment(text, self.style(before, ground)))
            used += width(text)
        if used < cells:
            segments.append(Segment(" " * (cells - used), self.style("text", ground)))
        return segments if used <= cells else [*Strip(segments, used).crop(0, cells)]

    def task_line(self, parts: Iterable[Part], look: LineLook, cells: int) -> Strip:
        """One line of a table: cursor, mark, cells, scroll bar."""
        cursor: Part = (CURSOR if look.cursor else " ", "accent")
        mark: Part = (CHANGE if look.changed else " ", "bright")
        mark = (MARK, "accent") if look.marked else mark
        ground = "sel" if look.cursor else "bg"
        return self.line([cursor, mark, *parts], cells, ground, look.bar, look.dim)


@lru_cache(256)
def fitted(columns: tuple[str, ...], width: int) -> list[tuple[str, int]]:
    """The columns that fit into a table of this width, each with its own width.

    Prose keeps a cell off the scroll bar.
    """
    found = fitting(columns, width - LEAD - 2)
    if any(key in _PROSE for key, _ in found):
        return found
    return fitting(tuple(key for key in columns if key not in _PROSE), width - LEAD - 1)


_PROSE = frozenset(("note", "reason", "by", "metadata"))
_BOTH_ENDS = frozenset(("owner", "host"))
"""Names that begin alike, as those of one token's workers do, differ at their ends."""


def parts_of(
    columns: tuple[str, ...], line: TaskLine, width: int, *, cursor: bool
) -> tuple[Part, ...]:
    """The glyph and every cell of a line."""
    member = line.fold == "member"
    state: Part = (f"{GLYPHS[line.state]} ", _glyph_ink(line.state))
    parts: list[Part] = [("  ", "text") if member else state]
    for key, room in fitted(columns, width):
        column = column_of(key)
        assert column is not None
        ink = column.ink(line)
        if column.middle:
            if member:
                parts += [("│ ", "line"), state]
                room -= 4
            ink = ink + " bold" if cursor and " " not in ink else ink
        both = column.middle or key in _BOTH_ENDS
        text = fit(
            column.cell(line),
            room,
            align="right" if column.right else "left",
            cut="middle" if both and line.fold in ("", "member") else "end",
        )
        if TRACK in text and key in ("lease", "state"):
            left = text.rstrip(" ").rstrip(TRACK)
            parts += [(left, ink), (text[len(left) :] + " ", "line")]
        elif ink.endswith(" strike"):
            struck = text.strip(" ")
            before = text.index(struck) if struck else 0
            after = len(text) - before - len(struck)
            parts += [(" " * before, "text"), (struck, ink), (" " * (after + 1), "text")]
        else:
            parts += [(text, ink), (" ", "text")]
    return tuple(parts)


def _glyph_ink(state: str) -> str:
    return _STATE_INKS.get(state, "muted")


class Band(NamedTuple):
    """The title row of a list: its key, its title and its counts, and the column heads."""

    key: str
    glyph: str
    """The glyph before the title, by its name; empty for none."""
    title: str
    amount: str
    ink: str
    """The ink of the count."""
    extra: str = ""
    focused: bool = False
    dim: bool = False
    uncut: bool = False
    """Whether column heads yield to the count, because it must be read in full."""


def title_of(band: Band, cells: int) -> list[Part]:
    """The parts of a band before the column heads; what else it says yields if there is no room."""
    parts: list[Part] = [(CURSOR if band.focused else " ", "accent")]
    parts.append((f"{band.key} ", "accent bold" if band.focused else "muted"))
    if band.glyph:
        parts.append((f"{glyph(band.glyph)} ", _glyph_ink(band.glyph)))
    parts += [(band.title, "bright bold"), (f" {band.amount}", band.ink)]
    extra: Part = (f"  {band.extra}", "muted")
    if band.extra and sum(width(text) for text, _ in (*parts, extra)) <= cells:
        parts.append(extra)
    return parts


def fitted_parts(parts: Iterable[Part], cells: int) -> list[Part]:
    """The parts cut to this many cells, and filled up to them."""
    found: list[Part] = []
    for text, ink in parts:
        size = width(text)
        if size > cells:
            text, size = fit(text, cells), cells
        if text:
            found.append((text, ink))
        cells -= size
        if cells <= 0:
            return found
    return [*found, (" " * cells, "text")]


class Head(NamedTuple):
    """The head of a column: its text, its first cell, and its key."""

    text: str
    start: int
    key: str


def heads_of(columns: tuple[str, ...], sort: str, descending: bool, width: int) -> list[Head]:
    """The column heads, with an arrow at the sort column: ↓ for falling values."""
    found, left = [], LEAD
    for key, room in fitted(columns, width):
        column = column_of(key)
        assert column is not None
        text = column.title
        if key == sort:
            text += "↓" if descending != column.falls else "↑"
        # An arrow may take the gap beside its column.
        text = fit(text, min(len(text), room + (key == sort)))
        found.append(Head(text, left + room - len(text) if column.right else left, key))
        left += room + 1
    return found


def band(
    painter: Painter, shown: Band, columns: tuple[str, ...], sort: tuple[str, bool], cells: int
) -> Strip:
    """The band of a table as a strip; the head of the ids yields to the title."""
    ground = "focus" if shown.focused else "bar"
    heads = heads_of(columns, *sort, cells) if columns else []
    if shown.uncut:
        need = sum(width(text) for text, _ in title_of(shown, 0))
        heads = heads[:1] + [head for head in heads[1:] if head.start > need]
    at = heads[1].start - 1 if len(heads) > 1 else cells
    title = title_of(shown, at)
    title += [(f"  {head.text}", "text bold") for head in heads[:1] if head.key == sort[0]]
    parts = fitted_parts(title, max(0, at))
    for head in heads[1:]:
        gap = " " * max(0, head.start - at)
        parts += [(gap, "text"), (head.text, "text bold" if head.key == sort[0] else "muted")]
        at = max(at, head.start) + len(head.text)
    return painter.strip(parts, cells, ground, dim=shown.dim)


def list_band(painter: Painter, shown: Band, heads: Sequence[Head], width: int) -> Strip:
    """The band of a list as a strip; the heads count from the second cell."""
    at = max(0, heads[0].start) if heads else width - 1
    parts = fitted_parts(title_of(shown, at), at)
    for head in heads:
        parts += [(" " * (head.start + 1 - at), "text"), (head.text, "muted")]
        at = head.start + 1 + len(head.text)
    return painter.strip(parts, width, "focus" if shown.focused else "bar", dim=shown.dim)
