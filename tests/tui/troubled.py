"""A dashboard in a terminal whose storage makes trouble: what it says, and that it mends."""

from __future__ import annotations

from pathlib import Path

import dibs
from tests.tui.terminal import Terminal, verb


def three_tasks(place: Path) -> Path:
    """A board with one claim and two waiting tasks."""
    board = dibs.open(place / "board", create=True)
    for n in (1, 2, 3):
        board.add(f"task-{n}")
    board.claim("task-1", owner="web-1", ttl=3600)
    return place / "board"


def brightness(shown: Terminal, text: str) -> int:
    """How bright the characters of a text are that stands on the screen once; 0 where it is not."""
    for y, line in enumerate(shown.lines):
        if text in line:
            colour = shown.cells(y)[line.index(text)].fg
            return sum(bytes.fromhex(colour))
    return 0


def troubled(shown: Terminal, *words: str) -> None:
    """The banner says these words, and the rows are dim."""
    bright = shown.wait_for(lambda: brightness(shown, "task-2"))
    shown.shows(*words)
    shown.wait_for(lambda: 0 < brightness(shown, "task-2") < 0.75 * bright)


def answers(shown: Terminal) -> None:
    """Keys are answered meanwhile."""
    for key, text in [("2", "─ 2 ○ available"), ("3", "─ 3 ● claimed")] * 5:
        shown.send(key)
        shown.shows(text)
    shown.send("1")


def recovered(shown: Terminal, path: Path, *gone: str) -> None:
    """The banner has gone by itself, and what happens is seen again."""
    for word in gone:
        shown.lacks(word)
    verb(path, "add", "task-9")
    shown.shows("task-9", "● live")
