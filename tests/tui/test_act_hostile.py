"""Hostile text through every dialog of an act, on a real terminal: nothing of it acts there."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.patience import PATIENCE
from tests.tui import hostile
from tests.tui.sequences import Stream, parse
from tests.tui.terminal import Terminal, terminal
from tests.tui.test_hostile_screens import MILD, board, quiet

ESC, PAGE_DOWN, LOOK = "\x1b", "\x1b[6~", "\x07"


def matching(shown: Terminal, view: str, terms: str) -> None:
    """Nothing but what matches in one view."""
    shown.press(ESC, view, "/")
    shown.send(terms)
    shown.shows(terms)
    shown.press("\r")


def press_until(shown: Terminal, key: str, title: str) -> None:
    """Press a key that must not come too soon, until what it causes is seen."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(0.45)
        shown.press(key)
        with suppress(AssertionError):
            shown.shows(title, seconds=1)
            return
    raise AssertionError(f"{title!r} is not seen on\n{shown.text}")


def leave(shown: Terminal, title: str) -> None:
    """Close a dialog."""
    shown.press(ESC)
    shown.lacks(title)


def dialog(shown: Terminal, key: str, *keys: str, title: str) -> None:
    """Open one on the row under the cursor, press some keys in it, and leave it as it was."""
    press_until(shown, key, title)
    shown.lacks("looking ")
    shown.press(*keys)
    leave(shown, title)


def command(shown: Terminal, name: str, text: str) -> None:
    """One of the palette's, found by its name and known by its text."""
    press_until(shown, ":", "Search for commands")
    shown.send(name)
    shown.lacks("Leave; nothing is lost.")
    shown.shows(text)
    time.sleep(0.1)  # or it is taken for pasted
    shown.press("\r")
    shown.lacks("Search for commands")


def singles(shown: Terminal) -> None:
    """A claim, a waiting task, and the id of some event."""
    for view, key, terms, title in (
        ("4", "X", "id=c2", "Force-release"),
        ("2", "P", "id^=i", "Park"),
        ("0", "F", "id^=x", "forget"),
    ):
        matching(shown, view, terms)
        dialog(shown, key, PAGE_DOWN, "c", title=title)


def plans(shown: Terminal) -> None:
    """All that wait in one plan, its ledger, undoing it and a row's act; all claims, a purge."""
    plan(shown, "2", "id^=i", "P")
    press_until(shown, "y", "copies this ledger")
    shown.press(PAGE_DOWN, "c", "e")
    leave(shown, "copies this ledger")
    press_until(shown, "u", "as they were seen")
    shown.press(PAGE_DOWN)
    leave(shown, "as they were seen")
    matching(shown, "5", "id^=i")
    shown.press("j")
    press_until(shown, "u", "becomes again")
    shown.press("c")
    press_until(shown, "y", "again.")
    leave(shown, "again.")
    if "Acts on many" in shown.text:
        release_brake(shown)
    plan(shown, "4", "id^=c", "X")
    shown.press("a", PAGE_DOWN)
    leave(shown, "as they were seen")
    press_until(shown, "D", "purge what is done")
    leave(shown, "purge what is done")


def release_brake(shown: Terminal) -> None:
    """So many hosts that fall silent together look like a fault of the storage."""
    command(shown, "release the brake", "although the storage is a suspect")
    shown.shows("to go on; Esc leaves")
    shown.send("release\r")
    shown.lacks("to go on; Esc leaves")


def plan(shown: Terminal, view: str, terms: str, key: str) -> None:
    """An act on all matches, with what is known of each."""
    matching(shown, view, terms)
    press_until(shown, "M", "act on all matches")
    press_until(shown, key, "as they were seen")


def lists(shown: Terminal, path: Path, cases: Mapping[str, str]) -> None:
    """A list of what is there and of what is not, pasted, looked up, and its plan."""
    names = sorted(os.listdir(os.fsencode(path / "failed")))
    foul = [text[:500].encode("utf-8", "replace") for text in cases.values()]
    pasted = b"\n".join([*(b"failed/" + name for name in names), *foul])
    command(shown, "requeue a list", "Paste ids; each")
    shown.shows("Paste ids")
    shown.send(b"\x1b[200~" + pasted.replace(ESC.encode(), b"\x1a") + b"\x1b[201~")
    shown.shows([*cases.values()][-1][-3:])
    press_until(shown, LOOK, "found,")
    press_until(shown, LOOK, "as they were seen")
    shown.press(PAGE_DOWN)
    leave(shown, "as they were seen")


def told(path: Path, home: Path, cases: Mapping[str, str]) -> Stream:
    """What a walk through all dialogs of a board writes; it must be possible to leave after it."""
    quiet(home)
    with terminal(home, path, columns=120, rows=44) as shown:
        shown.shows("● live")
        shown.lacks("▲ 0 stale")
        singles(shown)
        plans(shown)
        lists(shown, path, cases)
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        return parse(bytes(shown.raw))


def test_no_dialog_lets_anything_of_the_directory_reach_the_terminal(tmp_path: Path) -> None:
    boards = {"foul": hostile.CASES, "mild": MILD}
    for name, cases in boards.items():
        board(tmp_path / name, cases)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(told, tmp_path / name, tmp_path / f"home-{name}", cases)
            for name, cases in boards.items()
        ]
        harmless(*(job.result() for job in jobs))


def harmless(foul: Stream, mild: Stream) -> None:
    """Nothing but what plain words cause, in sequences, in text and in the clipboard."""
    assert foul.kinds <= mild.kinds, foul.kinds - mild.kinds
    assert not hostile.forbidden(foul.text)
    assert len(foul.copied) > 3
    assert "\\x1b]52;c;" in foul.text
    assert not hostile.forbidden("".join(foul.copied), "\n\t")
