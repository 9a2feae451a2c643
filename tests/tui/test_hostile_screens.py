"""Hostile text in every field, on every screen, on a real terminal: nothing of it acts there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

import dibs
from tests.tui import hostile
from tests.tui.sequences import Stream, parse
from tests.tui.terminal import Terminal, environment, terminal

MILD = {"one": "plain text", "two": "more of it", "three": "a b c"}
PAGE_DOWN, END, ESC, ENTER = "\x1b[6~", "\x1b[F", "\x1b", "\r"
QUIET = "bell = false\n"


class Tour(NamedTuple):
    """What one look at everything wrote, and whether it went on to its end."""

    stream: Stream
    code: int


def board(path: Path, cases: Mapping[str, str]) -> Path:
    """A board with these texts in every field, and things that happened just now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "CASES", cases)
        hostile.board(path)
    tell(path, cases)
    config = path.parent / "config/dibs/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(QUIET)
    return path


def tell(path: Path, cases: Mapping[str, str]) -> None:
    """Somebody's journal with every case in every field."""
    with (path / ".dibs/journal/theirs.jsonl").open("a") as journal:
        for n, text in enumerate(cases.values()):
            short = text[:300]
            event = {"at": time.time(), "verb": short, "id": f"c{n}", "src": short, "dst": short}
            journal.write(json.dumps(event | {"by": short, "reason": text[:3000]}) + "\n")
            known = {"verb": "park", "id": f"x{n}{short}", "src": "", "dst": ""}
            journal.write(json.dumps(event | known | {"by": short, "reason": short}) + "\n")


def look(shown: Terminal, cases: Mapping[str, str]) -> None:
    """Go through everything that shows something of the board."""
    shown.shows("● live")
    views(shown)
    shown.press("1", "i")
    for view, ident in (("2", "id^=i"), ("4", "id^=c")):
        matching(shown, view, ident)
        shown.press("g")
        for n in range(len(cases)):
            shown.press(*("jy" if n % 4 == 0 else "j"))
        shown.press(ESC)
    shown.press("i")
    for n in (2, 7, 15):
        matching(shown, "4", f"id=c{n % len(cases)}")
        shown.press(":")
        shown.shows("Search for commands")
        shown.send("copy owner")
        shown.shows("Copy the owner.")
        shown.press(ENTER)
        shown.lacks("Search for commands")
        shown.press(ESC)
    matching(shown, "2", "id^=i2")
    whole(shown, ENTER, *"12345")
    whole(shown, "t", END)
    shown.press(ESC, "?", ESC)
    shown.press(*":copy", ESC, "s", ESC, "c", ESC, "*", "p", "p", ESC)


def views(shown: Terminal) -> None:
    """Every list, some screens of each."""
    for view in "1234567890":
        shown.press(view)
        for _ in range(4):
            before = shown.lines[5:]
            shown.press(PAGE_DOWN)
            if shown.lines[5:] == before:
                break


def matching(shown: Terminal, view: str, terms: str) -> None:
    shown.press(view, "/")
    shown.send(terms)
    shown.shows(terms)
    shown.press(ENTER)


def whole(shown: Terminal, *keys: str) -> None:
    """One task on a screen of its own, and back."""
    shown.send(keys[0])
    shown.shows("1 overview")
    shown.press(*keys[1:], ESC)
    shown.lacks("1 overview")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def foul(home: Path) -> Path:
    """The board with every case."""
    return board(home / "foul", hostile.CASES)


@pytest.fixture(scope="module")
def mild(home: Path) -> Stream:
    """What a look at a board writes that holds nothing but plain words."""
    path = board(home / "mild", MILD)
    with terminal(home, path, columns=120, rows=44) as shown:
        look(shown, MILD)
        shown.send("q")
        assert shown.leaves(3) == 0
        return parse(bytes(shown.raw))


@pytest.fixture(scope="module")
def tour(home: Path, foul: Path) -> Stream:
    """What the same look writes on the board with every case."""
    with terminal(home, foul, columns=120, rows=44) as shown:
        look(shown, hostile.CASES)
        tell(foul, hostile.CASES)
        shown.press("0", "1")
        shown.send("q")
        assert shown.leaves(3) == 0, shown.text
        return parse(bytes(shown.raw))


def harmless(told: Stream, mild: Stream) -> None:
    """Nothing but what plain words cause, in sequences and in text."""
    assert told.kinds <= mild.kinds, told.kinds - mild.kinds
    assert not hostile.forbidden(told.text)


def test_no_control_of_the_directory_reaches_the_terminal(tour: Stream, mild: Stream) -> None:
    harmless(tour, mild)
    for name in ("\\x1b]52;c;", "[@click=app.quit]x[/]", "\\u202e", "日本語", "[bold red]"):
        assert name in tour.text, "the tour has not been there"


def test_what_is_copied_is_clean(tour: Stream) -> None:
    assert "a\\x1b]52;c;ZXZpbA==\\x07b" in tour.copied
    assert len(tour.copied) > 40
    assert not hostile.forbidden("".join(tour.copied))
