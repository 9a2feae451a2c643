"""Every ink is readable on every ground, and each kind of terminal gets what it can show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from dibs_tui.settings.themes import FEW, INKS, STATE_INKS, THEMES, themes
from dibs_tui.source.board_source import BoardSource
from dibs_tui.widgets.inks import Depth, Inks
from tests.tui.colours import LEAST, SYSTEMS, contrast, seen
from tests.tui.terminal import Terminal, terminal

GROUNDS = ("bg", "bar", "raise", "focus", "sel")
TEXT = (
    *("faint", "muted", "text", "bright", "accent", "ok-text", "late", "alarm", "alarm-on-sel"),
    *("fail", "ask", "lock", "later", "pause"),
)
GLYPHS = ("ok", "l1", "l2", "l3", "l4", "l5")
GRAPHS = ("b1", "b2", "b3")
"""These are on the ground of the screen and on that of the head."""
BADGES = ("pause", "alarm", "muted", "ok", "late", "accent")
GLYPH = 3.0
"""The least contrast of a glyph or a bar."""
TABLE = {
    233: "bg", 234: "bar", 235: "raise", 236: "sel", 237: "line", 246: "faint", 248: "muted",
    253: "text", 255: "bright", 75: "accent", 71: "ok", 114: "ok-text", 215: "late", 203: "alarm",
    210: "alarm-on-sel", 174: "fail", 183: "ask", 80: "lock", 110: "later", 221: "pause",
}  # fmt: skip
"""What the dark theme is among 256 colours."""


def kinds() -> Iterator[tuple[str, str, float]]:
    """Each ink with a ground that it is on, and the contrast that it needs there."""
    for ground in GROUNDS:
        yield from ((ink, ground, LEAST) for ink in TEXT)
        yield from ((ink, ground, GLYPH) for ink in GLYPHS)
    for ground in ("bg", "bar"):
        yield from ((ink, ground, GLYPH) for ink in GRAPHS)
    yield from (("bg", ground, LEAST) for ground in BADGES)


@pytest.mark.parametrize("theme", THEMES, ids=[theme.name for theme in THEMES])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_ink_is_readable_on_every_ground(theme: object, system: ColorSystem) -> None:
    inks = Inks(next(t for t in THEMES if t is theme).variables)
    found = []
    for ink, ground, least in kinds():
        style = inks.style(ink, ground)
        assert style.color is not None
        assert style.bgcolor is not None
        has = contrast(seen(style.color, system), seen(style.bgcolor, system))
        if has < least:
            found.append(f"{ink} on {ground}: {has:.2f}")
    assert not found


def test_every_ink_is_tested() -> None:
    assert {ink for ink, _, _ in kinds()} | {"raise", "focus", "sel", "bar", "line"} == set(INKS)
    assert set(STATE_INKS.values()) <= set(TEXT)


def test_256_colours_are_those_of_the_table() -> None:
    sent = {ink: Color.parse(by.dark).downgrade(ColorSystem.EIGHT_BIT) for ink, by in INKS.items()}
    assert {number: sent[ink].number for number, ink in TABLE.items()} == {n: n for n in TABLE}


def test_16_colours_are_those_of_the_table_in_every_theme() -> None:
    for theme in themes(FEW):
        for ink, by in INKS.items():
            sent = Color.parse(theme.variables[ink]).downgrade(ColorSystem.STANDARD)
            assert sent.number == by.few, ink
    assert (INKS["ok"].few, INKS["ok-text"].few) == (2, 10), "green stays green"


def test_16_colours_make_an_alarm_bold_and_grey_text_bright_under_the_cursor() -> None:
    inks = Inks(themes(FEW)[0].variables, Depth(few=True))
    assert inks.style("alarm").bold
    assert not inks.style("fail").bold
    assert inks.style("faint", "sel").color == inks.style("bright", "sel").color


def test_without_colours_attributes_say_it() -> None:
    inks = Inks(THEMES[0].variables, Depth(none=True))
    quiet = inks.style("text")
    assert (quiet.color, quiet.bgcolor, quiet.reverse, quiet.bold) == (None, None, None, None)
    assert inks.style("alarm").bold
    assert not inks.style("text", "raise").reverse
    for ground in ("sel", "focus", "alarm", "pause"):
        assert inks.style("text", ground).reverse


# What a terminal really gets

_FEW = frozenset((*range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)))
_find_colours = re.compile(rb"\x1b\[([0-9;]*)m").findall


def sent(shown: Terminal) -> set[str]:
    """The colours that the terminal got: the kind of each, or its number among the 16."""
    found = set()
    for codes in _find_colours(bytes(shown.raw)):
        numbers = codes.decode().split(";")
        while numbers:
            first = numbers.pop(0)
            if first in ("38", "48"):
                kind, length = ("24-bit", 4) if numbers[:1] == ["2"] else ("256", 2)
                found.add(kind)
                del numbers[:length]
            elif first.isdigit() and int(first) in _FEW:
                found.add("16")
    return found


DEPTHS = {
    "24-bit": {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
    "256": {"TERM": "tmux-256color", "COLORTERM": ""},
    "16": {"TERM": "xterm-16color", "COLORTERM": ""},
    "linux": {"TERM": "linux", "COLORTERM": ""},
    "none": {"NO_COLOR": "1"},
}
FRAMES = {
    "24-bit": "ff5f5f",
    "256": "ff5f5f",
    "16": "brightred",
    "linux": "brightred",
    "none": "default",
}
KINDS = {"24-bit": {"24-bit"}, "256": {"256"}, "16": {"16"}, "linux": {"16"}, "none": set[str]()}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_terminal_gets_the_colours_that_it_has(path: Path, board: dibs.Board, depth: str) -> None:
    board.add("task-1")
    board.add("task-2")
    board.claim("task-1", owner="web-1", ttl=1)
    board.claim("task-2", owner="web-2", ttl=3600)
    with terminal(path.parent, "--wall", path, env=DEPTHS[depth]) as wall:
        wall.shows("EXPIRED", "● claimed")
        wall.settle()
        corner = wall.cells(0)[0]
        assert corner.bg == FRAMES[depth]
        assert corner.reverse == (depth == "none")
        assert sent(wall) == KINDS[depth]
        if depth in ("16", "linux"):
            y = next(n for n, line in enumerate(wall.lines) if "● claimed" in line)
            at = wall.lines[y].index("●")
            assert wall.cells(y)[at].fg == "brightgreen"
            assert wall.cells(y - 2)[at].fg == "green"
            x = wall.lines[y].index("▲")
            assert (wall.cells(y)[x].fg, wall.cells(y)[x].bold) == ("brightred", True)
        if depth == "none":
            y = next(n for n, line in enumerate(wall.lines) if "▲ stale" in line)
            assert wall.cells(y)[wall.lines[y].index("▲")].bold


def test_colours_can_be_off_by_the_setting_alone(path: Path, board: dibs.Board) -> None:
    app = DibsApp(BoardSource(str(path)), Config(colour=False))
    assert app.no_color
    assert app.ansi_color
