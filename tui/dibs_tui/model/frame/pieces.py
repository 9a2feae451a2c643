"""Rows of pieces of text, each in an ink, at given cells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dibs_tui.text.safe import fit, width


class Piece(NamedTuple):
    """A piece of clean text in one look."""

    text: str
    ink: str = "muted"
    """A name of `settings.themes.INKS`."""
    bold: bool = False
    ground: str = ""
    """The ink behind it; empty for the ground of the row."""
    struck: bool = False
    action: str = ""
    """What a click on it does; empty for nothing."""


Pieces = tuple[Piece, ...]


def size(pieces: Iterable[Piece]) -> int:
    """The cells that these pieces take."""
    return sum(width(piece.text) for piece in pieces)


def plain(pieces: Iterable[Piece]) -> str:
    """The text of the pieces."""
    return "".join(piece.text for piece in pieces)


def cut(pieces: Iterable[Piece], cells: int) -> Pieces:
    """The pieces in at most this many cells, the last one cut with `…`."""
    found: list[Piece] = []
    for piece in pieces:
        taken = width(piece.text)
        if taken > cells:
            if cells > 0:
                found.append(piece._replace(text=fit(piece.text, cells)))
            elif found:  # show that something is missing
                last = found[-1]
                found[-1] = last._replace(text=fit(f"{last.text} ", width(last.text), cut="end"))
            break
        found.append(piece)
        cells -= taken
    return tuple(found)


class RowPlan:
    """One row that is filled piece by piece, each group of pieces at its own cells."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self._groups: list[tuple[int, Pieces]] = []

    def left(self, at: int, *pieces: Piece, room: int | None = None) -> int:
        """Put pieces from this cell on, in at most `room` cells; returns the next cell."""
        most = self.cells - at if room is None else min(room, self.cells - at)
        found = cut(pieces, max(0, most)) if size(pieces) > most else pieces
        self._groups.append((at, found))
        return at + size(found)

    def right(self, edge: int, *pieces: Piece) -> int:
        """Put pieces whose last cell is this one; returns the first cell."""
        at = edge + 1 - size(pieces)
        self._groups.append((at, pieces))
        return at

    def row(self) -> Pieces:
        """The pieces from the first cell on; a group that would overlap an earlier one is left
        out."""
        found: list[Piece] = []
        at = 0
        for start, pieces in sorted(self._groups, key=lambda group: group[0]):
            if start < at or start + size(pieces) > self.cells:
                continue
            if start > at:
                found.append(Piece(" " * (start - at)))
            found += pieces
            at = start + size(pieces)
        return tuple(found)


def folded(pieces: Iterable[Piece], cells: int, rows: int) -> list[Pieces]:
    """The pieces on at most so many rows of this width, broken at spaces where that is possible."""
    found: list[list[Piece]] = [[]]
    left = cells
    for piece in pieces:
        for word in re.findall(r"\s*\S+|\s+$", piece.text):
            if width(word) > left and len(found) < rows and found[-1]:
                found.append([])
                word, left = word.lstrip(), cells
            left -= width(word)
            found[-1].append(piece._replace(text=word))
    return [cut(row, cells) for row in found]
