"""Draws the cells of a terminal as SVG, and as PNG: blocks and braille as shapes, text as text.

No common font has braille, and lines drawn by a font have gaps between rows. So both are drawn.
"""

from __future__ import annotations

import importlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from rich._palettes import EIGHT_BIT_PALETTE, STANDARD_PALETTE
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.style import Style
from textual.strip import Strip

WIDTH, HEIGHT = 9, 18
"""The pixels of a cell."""
FONT = "DejaVu Sans Mono"
_SIZE, _BASE = 15, 14
INK, GROUND = "#dcdfe2", "#111315"
"""The colours of text that has none."""
_DIM = 0.55
_COLOURS = 256
"""The colours that a picture keeps."""
_STEPS = (0.5, 0.75, 0.25)
"""The steps between ink and ground at the edges of letters, the most wanted first."""
_BRAILLE = range(0x2800, 0x2900)
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""The column and row of each bit's dot."""
_EIGHTHS = "▁▂▃▄▅▆▇█"
_LINES: dict[str, tuple[str, int]] = {
    "─": ("lr", 1), "━": ("lr", 3), "│": ("ud", 1), "┃": ("ud", 3), "╸": ("l", 3), "╺": ("r", 3),
    "╭": ("rd", 1), "╮": ("ld", 1), "╰": ("ru", 1), "╯": ("lu", 1), "├": ("rud", 1),
    "┤": ("lud", 1), "┬": ("lrd", 1), "┴": ("lru", 1), "┼": ("lrud", 1), "┌": ("rd", 1),
    "┐": ("ld", 1), "└": ("ru", 1), "┘": ("lu", 1),
}  # fmt: skip
"""Lines, each with the sides that it leads to and its strength."""


class Cell(NamedTuple):
    """One cell; that to the right of a wide character is empty."""

    text: str
    ink: str = INK
    ground: str = GROUND
    bold: bool = False
    underline: bool = False
    strike: bool = False


def cells_of(strip: Strip, colours: ColorSystem | None) -> list[Cell]:
    """The cells of a line as a terminal of so many colours shows them."""
    found: list[Cell] = []
    for text, style, control in strip:
        if control:
            continue
        look = _look(style or Style(), colours)
        for char in text:
            size = cell_len(char)
            if size:
                found += [look._replace(text=char), *[look] * (size - 1)]
            elif found:
                found[-1] = found[-1]._replace(text=found[-1].text + char)
    return found


def _look(style: Style, colours: ColorSystem | None) -> Cell:
    """An empty cell in this style."""
    ink, ground = _hex(style.color, colours, INK), _hex(style.bgcolor, colours, GROUND)
    if style.dim:
        ink = blend(ink, ground, _DIM)
    if style.reverse:
        ink, ground = ground, ink
    return Cell("", ink, ground, bool(style.bold), bool(style.underline), bool(style.strike))


def _hex(color: Color | None, colours: ColorSystem | None, none: str) -> str:
    if color is None or color.is_default or colours is None:
        return none
    sent = color.downgrade(colours)
    if sent.number is None:
        return sent.get_truecolor().hex
    palette = STANDARD_PALETTE if colours is ColorSystem.STANDARD else EIGHT_BIT_PALETTE
    return palette[sent.number].hex


def blend(ink: str, ground: str, part: float) -> str:
    """This part of an ink on a ground."""
    one, two = ([int(c[n : n + 2], 16) for n in (1, 3, 5)] for c in (ink, ground))
    return "#" + "".join(
        f"{round(a * part + b * (1 - part)):02x}" for a, b in zip(one, two, strict=True)
    )


def svg(rows: Sequence[Sequence[Cell]]) -> str:
    """A picture of these rows."""
    width, height = WIDTH * max(map(len, rows)), HEIGHT * len(rows)
    shapes = (shape for y, row in enumerate(rows) for shape in _row(row, y * HEIGHT))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="{FONT}" font-size="{_SIZE}" shape-rendering="crispEdges">'
        f'<rect width="{width}" height="{height}" fill="{GROUND}"/>{"".join(shapes)}</svg>'
    )


def _row(row: Sequence[Cell], y: int) -> Iterator[str]:
    """The grounds of a row, then what stands on them."""
    for start, end in _runs([cell.ground for cell in row]):
        if row[start].ground != GROUND:
            size = f'width="{(end - start) * WIDTH}" height="{HEIGHT}"'
            yield f'<rect x="{start * WIDTH}" y="{y}" {size} fill="{row[start].ground}"/>'
    for start, end in _runs([(cell.ink, cell.bold, cell.underline, cell.strike) for cell in row]):
        cell, letters, places, shapes = row[start], "", [], ""
        for x, (text, *_) in enumerate(row[start:end], start):
            shape = _shape(text, x * WIDTH, y)
            if shape is not None:
                shapes += shape
            elif text.strip():
                letters += text[0]
                places.append(str(x * WIDTH))
        if shapes:
            yield f'<path d="{shapes}" fill="{cell.ink}"/>'
        if letters:
            weight = ' font-weight="bold"' if cell.bold else ""
            at = f'x="{" ".join(places)}" y="{y + _BASE}"'
            yield f'<text {at} fill="{cell.ink}"{weight}>{escape(letters)}</text>'
        for wanted, line in ((cell.underline, y + HEIGHT - 2), (cell.strike, y + HEIGHT // 2)):
            if wanted:
                yield _rect(start * WIDTH, line, (end - start) * WIDTH, 1, cell.ink)


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>'


def _runs(looks: Sequence[object]) -> Iterator[tuple[int, int]]:
    """The ranges of equal values."""
    start = 0
    for at in range(1, len(looks) + 1):
        if at == len(looks) or looks[at] != looks[start]:
            yield start, at
            start = at


def _shape(text: str, x: int, y: int) -> str | None:
    """The path of a block, a line or braille; None for text."""
    if len(text) != 1:
        return None
    if ord(text) in _BRAILLE:
        return "".join(_dots(ord(text) - _BRAILLE.start, x, y))
    if text in _EIGHTHS:
        height = HEIGHT * (_EIGHTHS.index(text) + 1) / 8
        return _box(x, y + HEIGHT - height, WIDTH, height)
    if text == "▀":
        return _box(x, y, WIDTH, HEIGHT / 2)
    if text in "▌▐▎▏▕":
        width = {"▌": WIDTH / 2, "▐": WIDTH / 2, "▎": 2, "▏": 1, "▕": 1}[text]
        return _box(x + (WIDTH - width if text in "▐▕" else 0), y, width, HEIGHT)
    if text in _LINES:
        return "".join(_arms(*_LINES[text], x, y))
    return None


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"


def _dots(bits: int, x: int, y: int) -> Iterator[str]:
    for bit, (column, row) in enumerate(_DOTS):
        if bits >> bit & 1:
            yield _box(x + 1 + column * 4.5, y + 1.5 + row * 4.5, 2.6, 2.6)


def _arms(sides: str, strength: int, x: int, y: int) -> Iterator[str]:
    """The arms of a line from the middle of its cell."""
    half = strength / 2
    middle_x, middle_y = x + WIDTH / 2, y + HEIGHT / 2
    for side in sides:
        if side in "lr":
            start = x if side == "l" else middle_x - half
            yield _box(start, middle_y - half, WIDTH / 2 + half, strength)
        else:
            start = y if side == "u" else middle_y - half
            yield _box(middle_x - half, start, strength, HEIGHT / 2 + half)


def png(rows: Sequence[Sequence[Cell]]) -> bytes:
    """A picture of these rows with few colours and no more bytes than needed."""
    out = io.BytesIO()
    image = pixels(svg(rows)).quantize(palette=palette([rows]), dither=0)
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def pixels(picture: str) -> Any:
    """The picture as an image of Pillow."""
    resvg_py: Any = importlib.import_module("resvg_py")
    image: Any = importlib.import_module("PIL.Image")
    data = resvg_py.svg_to_bytes(svg_string=picture, font_family=FONT, monospace_family=FONT)
    return image.open(io.BytesIO(bytes(data))).convert("RGB")


def palette(pictures: Iterable[Sequence[Sequence[Cell]]]) -> Any:
    """The colours of these pictures: every ink, and steps from it to the grounds that it is on.

    A palette that is learnt from the pixels would lose the inks of a few cells.
    """
    image: Any = importlib.import_module("PIL.Image")
    pairs = Counter(
        (cell.ink, cell.ground) for rows in pictures for row in rows for cell in row if cell.text
    )
    common = [pair for pair, _ in pairs.most_common()]
    colours = dict.fromkeys([GROUND, *(colour for pair in common for colour in pair)])
    for part in _STEPS:
        colours |= dict.fromkeys(blend(ink, ground, part) for ink, ground in common)
    kept = [*colours][:_COLOURS]
    kept += [GROUND] * (_COLOURS - len(kept))
    found = image.new("P", (1, 1))
    found.putpalette([int(colour[n : n + 2], 16) for colour in kept for n in (1, 3, 5)])
    return found
