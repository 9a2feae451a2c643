"""Hostile text in every dialog of an act, on a real terminal: the terminal acts on none of it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.patience import PATIENCE
from tests.tui import hostile
from tests.tui.sequences import Stream, parse
from tests.tui.terminal import Terminal, terminal
from tests.tui.test_hostile_screens import MILD, board, quiet

ESC, PAGE_DOWN, LOOK = "\x1b", "\x1b[6~", "\x07"
IGNORED = "ignored:"


def matching(shown: Terminal, view: str, terms: str) -> None:
    """Show only the tasks that match in one view."""
    shown.press(ESC, view, "/")
    shown.send(terms)
    shown.shows(terms)
    shown.press("\r")


def press_once(shown: Terminal, key: str, title: str) -> None:
    """Press a key and wait for its effect; again only if the board reports that it ignored it.

    For a key that means something else in the dialog that it opens. A dialog that is shown late
    would get it too.
    """
    seen = ""
    while seen != title:
        shown.lacks(IGNORED)  # a dialog that opens draws the notice of an earlier key again
        time.sleep(0.45)
        shown.press(key)
        seen = shown.wait_for(partial(first_of, shown, title, IGNORED))


def first_of(shown: Terminal, *texts: str) -> str:
    """The first of these texts that is on the screen; empty if none is."""
    seen = shown.text
    return next((text for text in texts if text in seen), "")


def press_until(shown: Terminal, key: str, title: str) -> None:
    """Press a key, again if it came too soon, until its effect is seen.

    For a key that means nothing in the dialog that it opens.
    """
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
    """Open a dialog on the row under the cursor, press some keys in it, and leave it."""
    press_until(shown, key, title)
    shown.lacks("checking the evidence")
    shown.lacks("loading …")
    shown.press(*keys)
    leave(shown, title)


def command(shown: Terminal, name: str, text: str) -> None:
    """Run a palette command, found by its name, and wait for its text."""
    press_once(shown, ":", "Search for commands")
    shown.send(name)
    shown.lacks("Show all panels")  # the first of all commands; Enter runs the first one shown
    shown.shows(text)
    time.sleep(0.1)  # sooner, the keys would count as pasted
    shown.press("\r")
    shown.lacks("Search for commands")


def singles(shown: Terminal) -> None:
    """Open the dialogs of a claim, an available task, and the id of an event."""
    for view, key, terms, title in (
        ("4", "X", "id=c2", "Force-release"),
        ("2", "P", "id^=i", "Park"),
        ("0", "F", "id^=x", "Forget"),
    ):
        matching(shown, view, terms)
        dialog(shown, key, PAGE_DOWN, "c", title=title)


def plans(shown: Terminal) -> None:
    """Plan an act on all available tasks, its undo, an undo of one row, all claims, and a purge."""
    plan(shown, "2", "id^=i", "P")
    press_until(shown, "y", "copy results")
    shown.press(PAGE_DOWN, "c", "e")
    leave(shown, "copy results")
    press_once(shown, "u", "will be ")
    shown.press(PAGE_DOWN)
    leave(shown, "will be ")
    matching(shown, "5", "id^=i")
    shown.wait_for(lambda: re.search(r"failed [1-9]\d* of \d+ match", shown.text))
    shown.press("j")  # without a row, `u` would show the last act on the board
    press_once(shown, "u", "last act on i")
    shown.press("c")
    press_until(shown, "y", "again.")
    leave(shown, "again.")
    if " BRAKE " in shown.text:
        allow_bulk_acts(shown)
    plan(shown, "4", "id^=c", "X")
    shown.press("a", PAGE_DOWN)
    leave(shown, "will be ")
    press_until(shown, "D", "Purge done tasks")
    leave(shown, "Purge done tasks")


def allow_bulk_acts(shown: Terminal) -> None:
    """Bulk acts are locked, because so many stale hosts look like a fault of the storage."""
    command(shown, "allow bulk acts", "although the storage is suspect")
    shown.shows("LOCKED")
    word = shown.wait_for(lambda: re.findall(r"type `(\w+)`", shown.text))[0]
    shown.send(f"{word}\r")
    shown.lacks(f"type `{word}`")


def plan(shown: Terminal, view: str, terms: str, key: str) -> None:
    """Plan an act on all matches, and show what is known about each."""
    matching(shown, view, terms)
    press_until(shown, "M", "Act on all matches")
    press_until(shown, key, "will be ")


def lists(shown: Terminal, path: Path, cases: Mapping[str, str]) -> None:
    """Paste a list of names, known and unknown, look them up, and open their plan."""
    names = sorted(os.listdir(os.fsencode(path / "failed")))
    texts = [text[:500].encode("utf-8", "replace") for text in cases.values()]
    pasted = b"\n".join([*(b"failed/" + name for name in names), *texts])
    command(shown, "requeue a list", "Paste ids, check")
    shown.shows("paste ids")
    shown.send(b"\x1b[200~" + pasted.replace(ESC.encode(), b"\x1a") + b"\x1b[201~")
    shown.shows([*cases.values()][-1][-3:])
    press_once(shown, LOOK, "to requeue,")
    press_once(shown, LOOK, "will be ")
    shown.press(PAGE_DOWN)
    leave(shown, "will be ")


def written(path: Path, home: Path, cases: Mapping[str, str]) -> Stream:
    """Everything written while all dialogs of a board are opened; the dashboard must quit after."""
    quiet(home)
    with terminal(home, path, columns=120, rows=44) as shown:
        shown.shows("● live")
        shown.lacks("4 stale 0")
        singles(shown)
        plans(shown)
        lists(shown, path, cases)
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        return parse(bytes(shown.raw))


def test_no_dialog_lets_control_sequences_of_the_directory_reach_the_terminal(
    tmp_path: Path,
) -> None:
    boards = {"hostile": hostile.CASES, "mild": MILD}
    for name, cases in boards.items():
        board(tmp_path / name, cases)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(written, tmp_path / name, tmp_path / f"home-{name}", cases)
            for name, cases in boards.items()
        ]
        harmless(*(job.result() for job in jobs))


def harmless(out: Stream, mild: Stream) -> None:
    """Check sequences, text and clipboard: nothing but what plain words also cause."""
    assert out.kinds <= mild.kinds, out.kinds - mild.kinds
    assert not hostile.forbidden(out.text)
    assert len(out.copied) > 3
    assert "\\x1b]52;c;" in out.text
    assert not hostile.forbidden("".join(out.copied), "\n\t")
