"""The cells that the terminal should show, those it shows, and the bytes that update it.

A frame that was not sent is dropped: the next bytes lead to the newest one. So a slow link shows
fewer frames, but never an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

from dibs_tui.text.safe import is_narrow

Cell = tuple[str, str]
"""The text of a cell and its SGR codes; the cell to the right of a wide character is empty."""

_NOTHING: Cell = (" ", "?")
"""A cell whose content on the terminal is unknown."""
_GAP = 8
"""Unchanged cells between two changes that cost less to send than a move of the cursor."""
_PART = 16
"""The cells of a row that are compared together: most of a row that changed is the same."""
_UNSEEN = frozenset(("", "1", "2", "3"))
"""The attributes that a space does not show: bold, dim and italic."""

Part = tuple[int, int, Strip]
"""A piece of a frame: row, column, and the cells from there."""


def parts(update: LayoutUpdate | ChopsUpdate) -> Iterator[Part]:
    """Yield the pieces of a frame from Textual."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, left, right in update.spans:
        for end, (x, part) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if part is not None and x < right and end > left:
                yield y, x, part


class Picture:
    """The cells of one terminal."""

    def __init__(self) -> None:
        self.colours: ColorSystem | None = ColorSystem.TRUECOLOR
        self._wanted: list[list[Cell]] = []
        self._there: list[list[Cell]] = []
        self._stamps: dict[int, int] = {}
        """The rows that may differ, each with the number of the last frame that changed it."""
        self._frame = 0
        self.cursor = (0, 0)

    @property
    def behind(self) -> bool:
        """Whether something is not sent yet."""
        return bool(self._stamps)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; what the terminal shows is unknown then."""
        self._wanted = [[(" ", "")] * columns for _ in range(rows)]
        self._stamps.clear()
        self.forget()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return (len(self._wanted[0]) if self._wanted else 0), len(self._wanted)

    def forget(self) -> None:
        """Send everything again: what the terminal shows is unknown."""
        columns, rows = self.size
        self._there = [[_NOTHING] * columns for _ in range(rows)]
        self._stamps.update(dict.fromkeys(range(rows), self._frame))

    def put(self, frame: Iterable[Part]) -> None:
        """Put a frame into the picture; only cells that differ count as changed."""
        self._frame += 1
        columns, rows = self.size
        for y, x, strip in frame:
            if 0 <= y < rows and 0 <= x < columns:
                cells = self._cells(strip)[: columns - x]
                row = self._wanted[y]
                if row[x : x + len(cells)] != cells:
                    row[x : x + len(cells)] = cells
                    self._stamps[y] = self._frame

    def _cells(self, strip: Strip) -> list[Cell]:
        cells: list[Cell] = []
        for text, style, control in strip:
            if control or not text:
                continue
            codes = _codes(style, self.colours) if style is not None else ""
            if text.isascii() or is_narrow(text):
                cells += zip(text, repeat(codes))
                continue
            width, here = cell_len(text), len(cells)
            for char in text:
                size = cell_len(char)
                if size:
                    cells.append((char, codes))
                    cells += [("", codes)] * (size - 1)
                elif len(cells) > here:
                    cells[-1] = (cells[-1][0] + char, codes)
            if len(cells) - here != width:  # a cluster can be narrower than its characters
                cells[here:] = [(text, codes), *[("", codes)] * (width - 1)]
        return cells

    def bytes(self, room: int) -> str:
        """About `room` bytes that update the terminal, the most recently changed rows first."""
        out: list[str] = []
        length, codes = 0, "?"
        for y in sorted(self._stamps, key=lambda y: (-self._stamps[y], y)):
            if length >= room:
                break
            wanted, there = self._wanted[y], self._there[y]
            for start, stop in _changes(wanted, there):
                out.append(f"\x1b[{y + 1};{start + 1}H")
                for text, want in wanted[start:stop]:
                    if want != codes and not (text == " " and _same_blank(codes, want)):
                        out.append(_turn(codes, want))
                        codes = want
                    out.append(text)
                length += 8 + 2 * (stop - start)
            there[:] = wanted
            del self._stamps[y]
        if not out:
            return ""
        return "".join([*out, "\x1b[0m", f"\x1b[{self.cursor[1] + 1};{self.cursor[0] + 1}H"])


def _changes(wanted: list[Cell], there: list[Cell]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a row that differ; a wide character is never split."""
    if wanted == there:
        return
    differ = [
        at
        for part in range(0, len(wanted), _PART)
        if wanted[part : part + _PART] != there[part : part + _PART]
        for at in range(part, min(part + _PART, len(wanted)))
        if wanted[at] != there[at]
    ]
    start = last = differ[0]
    for at in [*differ[1:], len(wanted) + 2 * _GAP]:
        if at - last > _GAP:
            while start > 0 and "" in (wanted[start][0], there[start][0]):
                start -= 1
            stop = last + 1
            while stop < len(wanted) and "" in (wanted[stop][0], there[stop][0]):
                stop += 1
            yield start, stop
            start = at
        last = at


@lru_cache(2048)
def _codes(style: Style, colours: ColorSystem | None) -> str:
    """The SGR codes of a style."""
    return style._make_ansi_codes(colours) if colours is not None else ""


@lru_cache(4096)
def _turn(before: str, after: str) -> str:
    """The codes that change one style into another: only what changes, unless attributes end."""
    old, new = _parted(before), _parted(after)
    if (
        before != "?"
        and old[0] == new[0]
        and all(n or not o for o, n in zip(old, new, strict=True))
    ):
        codes = ";".join(n for o, n in zip(old[1:], new[1:], strict=True) if n != o)
        return f"\x1b[{codes}m" if codes else ""
    return f"\x1b[0m\x1b[{after}m" if after else "\x1b[0m"


@lru_cache(4096)
def _same_blank(before: str, after: str) -> bool:
    """Whether a space looks the same in both styles: only its ground is seen."""
    if before == "?":
        return False
    old, new = _parted(before), _parted(after)
    return old[2] == new[2] and _UNSEEN.issuperset((*old[0].split(";"), *new[0].split(";")))


def _parted(codes: str) -> tuple[str, str, str]:
    """Attributes, foreground and background."""
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    numbers = codes.split(";") if codes and codes != "?" else []
    while numbers:
        first = numbers[0]
        if first in ("38", "48"):
            length = 5 if numbers[1:2] == ["2"] else 3
            parts[1 if first == "38" else 2].append(";".join(numbers[:length]))
            del numbers[:length]
            continue
        code = int(first)
        where = 1 if 30 <= code <= 39 or 90 <= code <= 97 else 0
        where = 2 if 40 <= code <= 49 or 100 <= code <= 107 else where
        parts[where].append(first)
        del numbers[0]
    return ";".join(parts[0]), ";".join(parts[1]), ";".join(parts[2])
