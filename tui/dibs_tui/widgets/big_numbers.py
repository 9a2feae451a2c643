"""Numbers in block digits for the wall display, in the largest size that fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_DIGITS = {
    "0": "### #.# #.# #.# ###",
    "1": ".#. ##. .#. .#. ###",
    "2": "### ..# ### #.. ###",
    "3": "### ..# ### ..# ###",
    "4": "#.# #.# ### ..# ..#",
    "5": "### #.. ### ..# ###",
    "6": "### #.. ### #.# ###",
    "7": "### ..# ..# ..# ..#",
    "8": "### #.# ### #.# ###",
    "9": "### #.# ### ..# ###",
    "k": "#.# #.# ##. #.# #.#",
    "M": "#.# ### #.# #.# #.#",
    "?": "### ..# .## ... .#.",
    ".": ". . . . #",
    "…": "..... ..... ..... ..... #.#.#",
}
"""The pixels of each character, from the top."""
_PIXELS = 5
_UNITS = ((1_000_000, "M"), (1000, "k"))


class Size(NamedTuple):
    """The cells of one pixel: columns, and half rows."""

    columns: int
    halves: int

    @property
    def rows(self) -> int:
        """The rows of a digit."""
        return -(-_PIXELS * self.halves // 2)

    def width(self, text: str) -> int:
        """The columns of a text; characters are one pixel apart."""
        return self.columns * (sum(len(_DIGITS[c]) // _PIXELS + 1 for c in text) - 1)


SIZES = (Size(4, 4), Size(3, 3), Size(2, 2), Size(1, 1))
"""From the largest."""
WHOLE = (Size(4, 4), Size(2, 2), Size(1, 2))
"""The same where half blocks cannot be drawn."""


def number(count: int) -> str:
    """A count in at most four characters: `999`, `1.2k`, `12k`, `1.2M`."""
    for least, unit in _UNITS:
        if count >= least * 0.9995:
            part = count / least
            return f"{part:.0f}{unit}" if part >= 9.95 else f"{part:.1f}{unit}"
    return str(count)


def largest(texts: Iterable[str], columns: int, rows: float, *, halves: bool) -> Size | None:
    """The largest size at which each text fits; None if none does.

    `halves`: whether half blocks can be drawn.
    """
    texts = list(texts)
    sizes = SIZES if halves else WHOLE
    fitting = (
        size
        for size in sizes
        if size.halves * _PIXELS / 2 <= rows and all(size.width(text) <= columns for text in texts)
    )
    return next(fitting, None)


def big(text: str, size: Size) -> tuple[str, ...]:
    """The text in block digits, the same width in each row."""
    pixels = [" ".join(_DIGITS[char].split(" ")[y] for char in text) for y in range(_PIXELS)]
    halves = [
        "".join(("█" if pixel == "#" else " ") * size.columns for pixel in line)
        for line in pixels
        for _ in range(size.halves)
    ]
    halves += [" " * len(halves[0])] * (len(halves) % 2)
    return tuple(map(_joined, halves[::2], halves[1::2]))


def _joined(upper: str, lower: str) -> str:
    """One row of cells for two half rows."""
    return "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))


_BLOCKS = {("█", "█"): "█", ("█", " "): "▀", (" ", "█"): "▄", (" ", " "): " "}
