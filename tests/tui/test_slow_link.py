"""Over a slow link keys are answered: little output is queued, and no frame is outdated."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

import dibs
from dibs_tui.lifecycle.output.picture import Picture
from tests.tui.slow_link import SlowTerminal, SlowTerminalWithoutAnswers
from tests.tui.terminal import DIBS, environment

FAST, SLOW = (30_000, 0.3), (8_000, 1.0)
"""Bytes a second, and the seconds within which a key must be answered there."""


@contextmanager
def dashboard(home: Path, kind: type[SlowTerminal], rate: int) -> Iterator[SlowTerminal]:
    """A board with many rows whose ages change, at the end of a slow link."""
    board = dibs.open(home / "board", create=True)
    for n in range(60):
        board.add(f"task-{n:02}")
    for n in range(20):
        board.claim(owner=f"web-{n}", ttl=3600)
    linked = type("Linked", (kind,), {"rate": rate})
    shown = linked([*DIBS, home / "board"], environment(home))
    try:
        shown.shows("● live", "task-2")
        yield shown
    finally:
        shown.end()


def under_way(shown: SlowTerminal, key: str, *texts: str) -> int:
    """The bytes that came before the answer to a key; the link decides how long they take."""
    with shown.still:
        before = len(shown.raw)
        shown.send_at_once(key)
    shown.shows(*texts)
    return len(shown.raw) - before


@pytest.mark.parametrize("kind", [SlowTerminal, SlowTerminalWithoutAnswers])
@pytest.mark.parametrize(("rate", "limit"), [FAST, SLOW])
def test_a_key_is_answered_in_time_over_the_link(
    tmp_path: Path, kind: type[SlowTerminal], rate: int, limit: float
) -> None:
    with dashboard(tmp_path, kind, rate) as shown:
        shown.send("2")
        shown.shows("task-50")
        took = []
        for key, text in [("3", "3 ● claimed 20"), ("2", "2 ○ available 40")] * 3:
            took.append(under_way(shown, key, text))
            time.sleep(1)  # so that ages are drawn in between
        assert max(took) <= limit * rate, took


@pytest.mark.parametrize(("rate", "limit"), [FAST, SLOW])
def test_a_key_held_down_does_not_fill_the_link(tmp_path: Path, rate: int, limit: float) -> None:
    with dashboard(tmp_path, SlowTerminal, rate) as shown:
        shown.send("2")
        shown.shows("task-50")
        for n in range(120):
            shown.send_at_once("j" if n % 40 < 20 else "k")
            time.sleep(0.02)
        assert under_way(shown, "3", "3 ● claimed 20") <= limit * rate
        shown.send("q")
        assert shown.leaves() == 0


# The picture

NO_WRAP = "\x1b[?7l"

WORDS = ("task", " ", "日本", "é", "▲", "x" * 9, "한", "a\u0301")
STYLES = [Style.parse(s) for s in ("red", "bold red on blue", "#ff8800 on #101010", "reverse", "")]


def strip(dice: random.Random, width: int) -> Strip:
    """Words in random styles, in exactly this many cells."""
    segments = [Segment(dice.choice(WORDS), dice.choice(STYLES)) for _ in range(width)]
    return Strip(segments).adjust_cell_length(width, STYLES[0])


def drawn(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Every cell with the style that is seen; a space without a line has only its ground."""
    return [
        [_seen(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)
    ]


def _seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    if cell.data == " " and not (cell.underscore or cell.strikethrough or cell.reverse):
        return cell.data, cell.bg
    return tuple(cell)


@pytest.mark.fast("dibs_tui.lifecycle.output")
@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_add_up_to_the_newest_picture(seed: int) -> None:
    """Compared with a terminal that gets each picture in full, whatever was left out."""
    dice = random.Random(seed)
    columns, rows = 24, 6
    picture, screen = Picture(), pyte.Screen(columns, rows)
    picture.colours = ColorSystem.TRUECOLOR
    stream = pyte.Stream(screen)
    stream.feed(NO_WRAP)
    picture.resize(columns, rows)
    newest = {}
    for _ in range(12):
        for y in dice.sample(range(rows), dice.randint(1, rows)):
            newest[y] = strip(dice, columns)
            picture.put([(y, 0, newest[y])])
        stream.feed(picture.bytes(dice.choice((1, 60, 10_000))))
    while picture.behind:
        stream.feed(picture.bytes(dice.choice((1, 60, 10_000))))
    full, other = Picture(), pyte.Screen(columns, rows)
    full.resize(columns, rows)
    full.put((y, 0, cells) for y, cells in newest.items())
    pyte.Stream(other).feed(NO_WRAP + full.bytes(1 << 20))
    assert drawn(screen) == drawn(other)


@pytest.mark.fast("dibs_tui.lifecycle.output")
@pytest.mark.parametrize(
    ("style", "sent"),
    [("bold red", False), ("italic", False), ("on blue", True), ("underline", True),
     ("strike", True), ("reverse", True)],
)  # fmt: skip
def test_the_style_of_a_space_is_sent_only_if_it_is_seen(style: str, sent: bool) -> None:
    def size(gap: str) -> int:
        picture = Picture()
        picture.resize(9, 1)
        words = Style.parse("green")
        segments = [Segment("word", words), Segment(" ", Style.parse(gap)), Segment("more", words)]
        picture.put([(0, 0, Strip(segments))])
        return len(picture.bytes(1 << 20))

    assert (size(style) > size("green")) == sent


@pytest.mark.fast("dibs_tui.lifecycle.output")
def test_unchanged_cells_are_not_sent_again() -> None:
    picture = Picture()
    picture.resize(80, 24)
    frame = [(y, 0, Strip([Segment(f"row {y}".ljust(80), STYLES[1])])) for y in range(24)]
    picture.put(frame)
    full = picture.bytes(1 << 20)
    picture.put(frame)
    assert not picture.behind
    picture.put([(3, 0, Strip([Segment("row 4".ljust(80), STYLES[1])]))])
    assert 0 < len(picture.bytes(1 << 20)) < len(full) / 24
    picture.forget()
    assert len(picture.bytes(1 << 20)) == len(full)
