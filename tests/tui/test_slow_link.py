"""Over a slow link keys are answered: little is under way, and no frame that is old by then."""

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
from dibs_tui.output.picture import Picture
from tests.tui.slow_link import SlowTerminal, SlowTerminalWithoutAnswers
from tests.tui.terminal import DIBS, environment

FAST, SLOW = (30_000, 0.3), (8_000, 1.0)
"""Bytes a second, and the seconds within which a key must be answered there."""


@contextmanager
def dashboard(home: Path, kind: type[SlowTerminal], rate: int) -> Iterator[SlowTerminal]:
    """A board with many rows whose ages go on, at the end of a link."""
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
    """Bytes that came before the answer to a key: how long they take is up to the link alone."""
    with shown.still:
        before = len(shown.raw)
        shown.send(key)
    shown.shows(*texts)
    return len(shown.raw) - before


@pytest.mark.parametrize("kind", [SlowTerminal, SlowTerminalWithoutAnswers])
@pytest.mark.parametrize(("rate", "limit"), [FAST, SLOW])
def test_a_key_is_answered_within_what_the_link_carries_in_time(
    tmp_path: Path, kind: type[SlowTerminal], rate: int, limit: float
) -> None:
    with dashboard(tmp_path, kind, rate) as shown:
        shown.send("2")
        shown.shows("1 all  2 available", "task-50")
        took = []
        for key, text in [("3", "─ 3 ● claimed 20"), ("2", "─ 2 ○ available 40")] * 3:
            took.append(under_way(shown, key, text))
            time.sleep(1)  # so that ages are painted in between
        assert max(took) <= limit * rate, took


@pytest.mark.parametrize(("rate", "limit"), [FAST, SLOW])
def test_keys_that_are_held_down_do_not_fill_the_link(
    tmp_path: Path, rate: int, limit: float
) -> None:
    with dashboard(tmp_path, SlowTerminal, rate) as shown:
        shown.send("2")
        shown.shows("1 all  2 available", "task-50")
        for n in range(120):
            shown.send("j" if n % 40 < 20 else "k")
            time.sleep(0.02)
        assert under_way(shown, "3", "─ 3 ● claimed 20") <= limit * rate
        shown.send("q")
        assert shown.leaves() == 0


# The picture

NO_WRAP = "\x1b[?7l"

WORDS = ("task", " ", "日本", "é", "▲", "x" * 9, "한", "a\u0301")
STYLES = [Style.parse(s) for s in ("red", "bold red on blue", "#ff8800 on #101010", "reverse", "")]


def strip(dice: random.Random, width: int) -> Strip:
    """Some words in some looks, in exactly so many cells."""
    segments = [Segment(dice.choice(WORDS), dice.choice(STYLES)) for _ in range(width)]
    return Strip(segments).adjust_cell_length(width, STYLES[0])


def drawn(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Every cell with its look."""
    return [
        [tuple(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_lead_to_the_newest_picture(seed: int) -> None:
    """Against a terminal that gets each picture whole: the same cells, whatever was left out."""
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
    whole, other = Picture(), pyte.Screen(columns, rows)
    whole.resize(columns, rows)
    whole.put((y, 0, cells) for y, cells in newest.items())
    pyte.Stream(other).feed(NO_WRAP + whole.bytes(1 << 20))
    assert drawn(screen) == drawn(other)


def test_what_has_not_changed_is_not_sent_again() -> None:
    picture = Picture()
    picture.resize(80, 24)
    frame = [(y, 0, Strip([Segment(f"row {y}".ljust(80), STYLES[1])])) for y in range(24)]
    picture.put(frame)
    whole = picture.bytes(1 << 20)
    picture.put(frame)
    assert not picture.behind
    picture.put([(3, 0, Strip([Segment("row 4".ljust(80), STYLES[1])]))])
    assert 0 < len(picture.bytes(1 << 20)) < len(whole) / 24
    picture.forget()
    assert len(picture.bytes(1 << 20)) == len(whole)
