"""What is to be on the terminal, what is there, and the bytes that lead from one to the other.

A frame that was not sent is not kept: the next bytes lead to the newest picture. So a link that is
slow shows fewer pictures, but none that is old.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

Cell = tuple[str, str]
"""The text of a cell and its SGR codes; what is right of a wide character is empty."""

_NOTHING: Cell = (" ", "?")
"""A cell of which nobody knows what the terminal shows there."""
_GAP = 8
"""Cells between two changes that cost less than another move of the cursor."""


Part = tuple[int, int, Strip]
"""What is to be at a place: row, column, and the cells from there."""


def parts(update: LayoutUpdate | ChopsUpdate) -> Iterator[Part]:
    """What Textual wants to be painted."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, left, right in update.spans:
        for end, (x, part) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if part is not None and x <= right and end > left:
                yield y, x, part


class Picture:
    """The cells of one terminal."""

    def __init__(self) -> None:
        self.colours: ColorSystem | None = ColorSystem.TRUECOLOR
        self._wanted: list[list[Cell]] = []
        self._there: list[list[Cell]] = []
        self._stamps: dict[int, int] = {}
        """The rows that may differ, each with the number of the frame that changed it last."""
        self._frame = 0
        self.cursor = (0, 0)

    @property
    def behind(self) -> bool:
        """Whether something is to be sent."""
        return bool(self._stamps)

    def resize(self, columns: int, rows: int) -> None:
        """Another size; nobody knows what the terminal shows now."""
        self._wanted = [[(" ", "")] * columns for _ in range(rows)]
        self._stamps.clear()
        self.forget()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return (len(self._wanted[0]) if self._wanted else 0), len(self._wanted)

    def forget(self) -> None:
        """The terminal may show anything: all of it is to be sent."""
        columns, rows = self.size
        self._there = [[_NOTHING] * columns for _ in range(rows)]
        self._stamps.update(dict.fromkeys(range(rows), self._frame))

    def put(self, frame: Iterable[Part]) -> None:
        """The newest frame, as far as it is another than the last."""
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
            if text.isascii():
                cells += [(char, codes) for char in text]
                continue
            width, here = cell_len(text), len(cells)
            for char in text:
                size = cell_len(char)
                if size:
                    cells.append((char, codes))
                    cells += [("", codes)] * (size - 1)
                elif len(cells) > here:
                    cells[-1] = (cells[-1][0] + char, codes)
            if len(cells) - here != width:  # a cluster has another width than its characters
                cells[here:] = [(text, codes), *[("", codes)] * (width - 1)]
        return cells

    def bytes(self, room: int) -> str:
        """What brings the terminal nearer to the picture: the newest rows first, about so much."""
        out: list[str] = []
        length, codes = 0, "?"
        for y in sorted(self._stamps, key=lambda y: (-self._stamps[y], y)):
            if length >= room:
                break
            wanted, there = self._wanted[y], self._there[y]
            for start, stop in _changes(wanted, there):
                out.append(f"\x1b[{y + 1};{start + 1}H")
                for text, want in wanted[start:stop]:
                    if want != codes:
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
    """The stretches of a row that differ; no wide character is cut in two."""
    if wanted == there:
        return
    differ = [at for at, (new, old) in enumerate(zip(wanted, there, strict=True)) if new != old]
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
    """From one look to another: only the colours that change, unless an attribute ends."""
    old, new = _parted(before), _parted(after)
    if (
        before != "?"
        and old[0] == new[0]
        and all(n or not o for o, n in zip(old, new, strict=True))
    ):
        codes = ";".join(n for o, n in zip(old[1:], new[1:], strict=True) if n != o)
        return f"\x1b[{codes}m" if codes else ""
    return f"\x1b[0m\x1b[{after}m" if after else "\x1b[0m"


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
