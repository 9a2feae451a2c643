"""Where there is only ASCII, everything is drawn in it, cell by cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dibs
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.text.glyphs import MARKS, STATES, ascii_of, glyph, has_utf8, in_ascii
from dibs_tui.text.safe import width
from dibs_tui.widgets.big_numbers import SIZES, big
from tests.tui.terminal import terminal

_escapes = re.compile(rb"\x1b(\][^\a\x1b]*(\a|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[@-_])").sub


def test_every_glyph_has_one_ascii_character_and_states_differ() -> None:
    for glyph_, plain in (*STATES.values(), *MARKS.values()):
        assert width(glyph_) == len(plain) == 1
        assert plain.isascii()
        assert ascii_of(glyph_) == plain
    assert len({plain for _, plain in STATES.values()}) == len(STATES)
    assert GLYPHS["stale"] == glyph("stale") == "▲"


def test_frames_graphs_and_digits_are_drawn_in_ascii() -> None:
    assert ascii_of("╭─┤ x ├━╮") == "+-+ x +=+"
    assert ascii_of("━━━╸────") == "===-----"
    assert ascii_of("⠀⡀⣀⣤⣶⣿") == " .:-=#"
    assert ascii_of("▁▄█") == ".-#"
    for row in big("257", SIZES[0]):
        assert set(ascii_of(row)) <= {"#", " "}


def test_text_of_the_board_stays_unless_the_terminal_has_only_ascii() -> None:
    assert ascii_of("naïve 日本 ▲") == "naïve 日本 !"
    assert ascii_of("naïve 日本 ▲", strict=True) == "na?ve ???? !"
    assert ascii_of("plain") == "plain"


@pytest.mark.parametrize(
    ("environ", "has"),
    [
        ({}, True),
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "", "LC_ALL": "", "LC_CTYPE": ""}, True),
    ],
)
def test_the_locale_is_read_as_posix_says(environ: dict[str, str], has: bool) -> None:
    assert has_utf8(environ) == has


def test_the_setting_overrides_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert in_ascii("auto")
    assert in_ascii("ascii")
    assert not in_ascii("unicode")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert not in_ascii("auto")
    assert in_ascii("ascii")


@pytest.mark.parametrize(
    ("flags", "env"),
    [(("--glyphs", "ascii"), {}), ((), {"LC_ALL": "C"}), ((), {"LANG": "de_DE.ISO-8859-1"})],
    ids=["flag", "C", "ISO-8859-1"],
)
@pytest.mark.parametrize("wall", [False, True])
def test_a_terminal_gets_ascii_only(
    path: Path, board: dibs.Board, flags: tuple[str, ...], env: dict[str, str], wall: bool
) -> None:
    for n in range(6):
        board.add(f"task-{n}")
    board.claim("task-0", owner="web-1", ttl=1)
    argv = (*flags, *(("--wall",) if wall else ()), path)
    with terminal(path.parent, *argv, env=env) as shown:
        shown.shows("EXPIRED", "* live", "!", "stale")
        shown.settle()
        if not wall:
            shown.press("\r")
            shown.press("\x1b", "?")
        shown.send("\x03")
        assert shown.leaves() == 0
        drawn = _escapes(b"", bytes(shown.raw))
        assert drawn.isascii(), {char for char in drawn.decode() if not char.isascii()}


def test_one_frame_is_ascii_too(path: Path, board: dibs.Board) -> None:
    board.add("task-0")
    with terminal(path.parent, "--once", "--glyphs", "ascii", path) as shown:
        assert shown.leaves() == 0
        assert b"task-0" in shown.raw
        assert bytes(shown.raw).isascii()
