"""Helpers for tests of storage trouble in a terminal: the banner, the keys and the recovery."""

from __future__ import annotations

from pathlib import Path

import dibs
from tests.tui.terminal import Terminal, verb


def three_tasks(place: Path) -> Path:
    """A board with one claimed and two available tasks."""
    board = dibs.open(place / "board", create=True)
    for n in (1, 2, 3):
        board.add(f"task-{n}")
    board.claim("task-1", owner="web-1", ttl=3600)
    return place / "board"


def brightness(shown: Terminal, text: str) -> int:
    """The brightness of a text that is on the screen once; 0 if it is not there."""
    for y, line in enumerate(shown.lines):
        if text in line:
            colour = shown.cells(y)[line.index(text)].fg
            return sum(bytes.fromhex(colour))
    return 0


def troubled(shown: Terminal, *words: str) -> None:
    """Wait until the banner has these words and the rows are dim."""
    bright = shown.wait_for(lambda: brightness(shown, "task-2"))
    shown.shows(*words)
    shown.wait_for(lambda: 0 < brightness(shown, "task-2") < 0.75 * bright)


def answers(shown: Terminal) -> None:
    """Check that keys are answered meanwhile."""
    for key, text in [("2", "▌2 ○ available"), ("3", "▌3 ● claimed")] * 5:
        shown.send(key)
        shown.shows(text)
    shown.send("1")


def recovered(shown: Terminal, path: Path, *gone: str) -> None:
    """Wait until the banner is gone, and check that changes are shown again."""
    for word in gone:
        shown.lacks(word)
    verb(path, "add", "task-9")
    shown.shows("task-9", "● live")
