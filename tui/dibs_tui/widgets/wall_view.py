"""Draws the wall display: a frame, large counts, one line per cause, and graphs of one hour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from dibs_tui.model.frame.braille import graph, top_of
from dibs_tui.model.hour import Hour
from dibs_tui.model.wall import COUNTED, WallLine, peak
from dibs_tui.settings.themes import STATE_INKS
from dibs_tui.text.ages import UNREAD
from dibs_tui.text.glyphs import BRAILLE, glyph
from dibs_tui.text.safe import fit, width
from dibs_tui.widgets.big_numbers import big, largest, number

if TYPE_CHECKING:
    from dibs_tui.widgets.inks import Inks

FRAME = 2
"""The columns of the frame on each side."""
_LEFT = 4
"""The first column of what stands in the frame."""
_GAP = 4
"""The columns between two graphs."""
_SHORT = 30
"""The rows from which blank rows set the numbers apart."""
_KEPT = 8
"""The rows that graphs keep before blank rows between causes go."""
_LEAST = 2
"""The least rows of a graph."""
_WHOLE, _ENOUGH = 5, 24
"""The rows of the smallest digits without half blocks, and the rows of a screen for them."""
_NARROW = 60
"""The columns from which there are two graphs."""

Piece = tuple[int, str, Style]
"""A text with its first column and its style."""


class WallPicture(NamedTuple):
    """Everything that the wall says, in words."""

    path: str
    mode: str
    mode_ink: str
    clock: str
    ground: str
    """The ground of the frame: `alarm`, `pause` or `bar`."""
    counts: Mapping[str, int | None]
    """None for a count that is still being read."""
    known: bool
    """Whether the counts are those of now; else they are shown faint."""
    under: dict[str, str]
    lines: Sequence[WallLine]
    ages: Sequence[str]
    clear: str
    """What was looked at if there are no causes; empty while that is not known."""
    backlog: str
    goes_on: tuple[str, str]
    """How the backlog goes on, with its ink."""
    done: str
    failed: str
    hour: Hour
    left: str
    right: str
    """The ends of the last row."""


def buckets(columns: int) -> int:
    """The buckets of an hour at this width: two to each cell of a graph."""
    return 2 * _graph_width(columns)


def drawn(
    picture: WallPicture, inks: Inks, columns: int, rows: int, *, in_ascii: bool
) -> list[Strip]:
    """The rows of the screen."""
    middle = list(_middle(picture, inks, columns, rows, in_ascii=in_ascii))[: max(0, rows - 2)]
    middle += [()] * (rows - 2 - len(middle))
    side = Segment(" " * FRAME, inks.style("text", picture.ground))
    inner = columns - 2 * FRAME
    framed = [
        Strip([side, *_row(((x - FRAME, text, look) for x, text, look in row), inner, inks), side])
        for row in middle
    ]
    ends = [first_row(picture, inks, columns), *framed, _last(picture, inks, columns)]
    return ends[:rows]


def _row(pieces: Iterable[Piece], columns: int, inks: Inks, ground: str = "bg") -> list[Segment]:
    """One row; what does not fit is cut, and a piece never covers the one before."""
    base, at = inks.style("text", ground), 0
    found: list[Segment] = []
    for x, text, look in pieces:
        if x < at or x >= columns or not text:
            continue
        text = _cut_to(text, columns - x)
        found += [Segment(" " * (x - at), base), Segment(text, look)]
        at = x + width(text)
    return [*found, Segment(" " * (columns - at), base)]


def _cut_to(text: str, cells: int, cut: Literal["end", "middle"] = "end") -> str:
    """The text in at most this many cells."""
    return text if width(text) <= cells else fit(text, cells, cut=cut)


def first_row(picture: WallPicture, inks: Inks, columns: int) -> Strip:
    """The path, how the board is watched, and the clock."""
    ground = picture.ground
    ink, mode_ink = ("text", picture.mode_ink) if ground == "bar" else ("bg", "bg")
    clock_at = columns - FRAME - width(picture.clock)
    mode_at = clock_at - 4 - width(picture.mode)
    room = (mode_at if mode_at > 2 * FRAME + 8 else clock_at) - FRAME - 2
    pieces = [
        (FRAME, _cut_to(picture.path, max(1, room), "middle"), inks.style(ink, ground, bold=True)),
        (mode_at, picture.mode, inks.style(mode_ink, ground)),
        (clock_at, picture.clock, inks.style(ink, ground, bold=True)),
    ]
    return Strip(_row(pieces, columns, inks, ground))


def _last(picture: WallPicture, inks: Inks, columns: int) -> Strip:
    """What is locked, and the keys that work."""
    look = inks.style("faint" if picture.ground == "bar" else "bg", picture.ground)
    at = columns - FRAME - width(picture.right)
    pieces = [(FRAME, picture.left, look), (max(FRAME, at), picture.right, look)]
    if at < FRAME + width(picture.left) + 2:
        del pieces[0]
    return Strip(_row(pieces, columns, inks, picture.ground))


def _middle(
    picture: WallPicture, inks: Inks, columns: int, rows: int, *, in_ascii: bool
) -> Iterator[Sequence[Piece]]:
    """The rows within the frame, from the second row of the screen."""
    top = [(), *_counts(picture, inks, columns, rows, in_ascii=in_ascii), ()]
    yield from top
    room = rows - 2 - len(top) - (rows >= _SHORT)
    lines = list(_lines(picture, inks, columns))
    if not lines:
        lines = [_clear(picture, inks)]
    graph, spaced = _share(len(lines), room)
    shown = _cut(lines, room - (graph + 2 if graph else 0), inks) if not spaced else lines
    for line in shown:
        yield line
        if spaced:
            yield ()
    if graph:
        yield ()
        rest = room - (2 * len(shown) if spaced else len(shown)) - 2
        yield from _graphs(picture, inks, columns, rest)


def _share(lines: int, room: int) -> tuple[int, bool]:
    """The rows that graphs get at least, and whether blank rows stand between the lines."""
    kept = min(_KEPT, room // 3)
    if kept < _LEAST:
        return 0, False
    return kept, lines > 1 and 2 * lines + 2 + kept <= room and kept == _KEPT


def _cut(lines: list[Sequence[Piece]], room: int, inks: Inks) -> list[Sequence[Piece]]:
    """The lines that fit, the last one with the number of those that do not."""
    if len(lines) <= room:
        return lines
    shown = max(0, room - 1)
    more = (_LEFT, f"+ {len(lines) - shown:,} more", inks.style("muted"))
    return [*lines[:shown], (more,)] if room > 0 else []


# The counts


def _counts(
    picture: WallPicture, inks: Inks, columns: int, rows: int, *, in_ascii: bool
) -> Iterator[Sequence[Piece]]:
    pitch = (columns - 2 * _LEFT) // len(COUNTED)
    texts = {s: UNREAD if n is None else number(n) for s, n in picture.counts.items()}
    most = max(rows / 6, _WHOLE) if in_ascii and rows >= _ENOUGH else rows / 6
    size = largest(texts.values(), pitch - 2, most, halves=not in_ascii)
    digits = {s: big(t, size) if size is not None else (t,) for s, t in texts.items()}
    places = [(state, _LEFT + n * pitch) for n, state in enumerate(COUNTED)]
    looks = {state: _ink(picture, state) for state in COUNTED}
    for y in range(len(digits[COUNTED[0]])):
        yield [
            (x, digits[state][y].rstrip(), inks.style(_BLOCKS.get(looks[state], looks[state])))
            for state, x in places
        ]
    if rows >= _SHORT:
        yield ()
    yield [
        (x, _cut_to(f"{glyph(state)} {state}", pitch - 1), inks.style(looks[state], bold=True))
        for state, x in places
    ]
    yield [
        (x, under_count(state, picture.under[state], pitch - 2), inks.style("faint"))
        for state, x in places
    ]


def under_count(state: str, text: str, cells: int) -> str:
    """The line under a count in so many cells: counts such as `1 idle` leave it in full."""
    while width(text) > cells and ", " in text and state in _COUNTS:
        text = text.rpartition(", ")[0]
    return _cut_to(text, cells)


_COUNTS = ("claimed", "available")
"""The states under which there are counts; under the others is a name or a reason."""
_BLOCKS = {"ok-text": "ok"}
"""The inks of glyphs where those of text differ."""


def _ink(picture: WallPicture, state: str) -> str:
    return STATE_INKS[state] if picture.counts[state] and picture.known else "faint"


# The causes


def _lines(picture: WallPicture, inks: Inks, columns: int) -> Iterator[Sequence[Piece]]:
    name_width = 20 if columns >= 100 else max(8, columns // 5)
    word_at = _LEFT + 2 + name_width + 1
    age_end = word_at + 17
    for line, age in zip(picture.lines, picture.ages, strict=True):
        look = inks.style(line.ink)
        start = (_LEFT, glyph(line.glyph), look)
        if not line.word:
            yield start, (_LEFT + 2, line.name, inks.style("text"))
            continue
        yield (
            start,
            (_LEFT + 2, _cut_to(line.name, name_width, "middle"), inks.style("bright", bold=True)),
            (word_at, line.word, inks.style(line.ink, bold=line.ink != "muted")),
            (age_end - width(age), age, inks.style("bright", bold=True)),
            (age_end + 2, _cut_to(line.text, max(0, columns - age_end - 6)), inks.style("text")),
        )


def _clear(picture: WallPicture, inks: Inks) -> Sequence[Piece]:
    if not picture.clear:
        return ()
    words = f"{glyph('done')} {'no problem' if picture.counts['failed'] else 'all clear'}"
    return (
        (_LEFT, words, inks.style("ok-text", bold=True)),
        (_LEFT + width(words) + 3, picture.clear, inks.style("muted")),
    )


# The graphs


def _graph_width(columns: int) -> int:
    whole = max(2, columns - 2 * _LEFT)
    return (whole - _GAP) // 2 if columns >= _NARROW else whole


def _graphs(picture: WallPicture, inks: Inks, columns: int, rows: int) -> Iterator[Sequence[Piece]]:
    cells, hour = _graph_width(columns), picture.hour
    words, ink = picture.goes_on
    fails = "fail" if any(digit in picture.failed for digit in "123456789") else "muted"
    backlog = [("backlog", "muted"), (picture.backlog, "bright"), ("", ""), (words, ink)]
    flow = [("done", "muted"), (picture.done, "ok-text"), ("", ""), ("", "")]
    flow += [("failed", "muted"), (picture.failed, fails)]
    most = max((count or 0 for count in hour.backlog), default=0)
    peaks = f"{most:,.0f}", peak(max(hour.both, default=0))
    high, fast = (f"peak {words}   last hour" for words in peaks)
    if all(count is None for count in hour.backlog):  # the log is not read yet
        high = fast = ""
    titles = [
        _title(backlog, high, _LEFT, cells, inks),
        _title(flow, fast, _LEFT + cells + _GAP, cells, inks),
    ]
    two = columns >= _NARROW
    yield [piece for title in titles[: 1 + two] for piece in title]
    lefts = _backlog(hour, rows, inks)
    rights = _flow(hour, rows, inks) if two else [[]] * rows
    for left, right in zip(lefts, rights, strict=True):
        row: list[Piece] = []
        for start, parts in ((_LEFT, left), (_LEFT + cells + _GAP, right)):
            at = start
            for text, look in parts:
                row.append((at, text, look))
                at += len(text)
        yield row


def _title(
    words: Iterable[tuple[str, str]], end: str, at: int, cells: int, inks: Inks
) -> Iterator[Piece]:
    x = at
    for word, ink in words:
        if word:
            yield x, word, inks.style(ink, bold=ink != "muted")
        x += width(word) + 1
    end_at = at + cells - width(end)
    if end_at > x:
        yield end_at, end, inks.style("faint")


def _backlog(hour: Hour, rows: int, inks: Inks) -> Iterator[list[tuple[str, Style]]]:
    """The rows of the backlog, in three inks from the bottom to the top."""
    for n, row in enumerate(graph(hour.backlog, top_of(hour.backlog), rows)):
        yield [(row, inks.style(("b3", "b2", "b1")[n * 3 // rows]))]


def _flow(hour: Hour, rows: int, inks: Inks) -> Iterator[list[tuple[str, Style]]]:
    """The rows of done on top of failed; a cell has the ink of what fills more of it."""
    top = top_of(hour.both)
    both, failed = graph(hour.both, top, rows), graph(hour.failed, top, rows)
    ok, bright, fail = inks.style("ok"), inks.style("ok-text"), inks.style("fail")
    for n, (row, base) in enumerate(zip(both, failed, strict=True)):
        done = ok if n * 3 >= rows else bright
        looks = (
            fail if base_cell != " " and 2 * _dots(base_cell) >= _dots(cell) else done
            for cell, base_cell in zip(row, base, strict=True)
        )
        cells = zip(row, looks, strict=True)
        yield [("".join(c for c, _ in part), look) for look, part in groupby(cells, _LOOK)]


_LOOK: Callable[[tuple[str, Style]], Style] = itemgetter(1)


def _dots(cell: str) -> int:
    """The dots of a cell."""
    return 0 if cell == " " else (ord(cell) - BRAILLE).bit_count()
