"""Helpers for tests of dialogs: open them, fill them in and read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import dibs
from dibs.files.board_files import BoardFiles
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.app import DibsApp
from dibs_tui.screens.dialog import Dialog
from tests.tui.live import until


def without_waiting(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Use an empty home directory, and take every key as deliberate: others test the pauses."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setattr("dibs_tui.widgets.window.settled", lambda at: True)
    monkeypatch.setattr("dibs_tui.screens.dialog.DEAF", 0.0)
    monkeypatch.setattr(KeyBurstGuard, "burst", False)


def of_host(board: dibs.Board, name: str) -> dibs.Board:
    """The same board as a process on another host opens it."""
    store = BoardFiles(Disk(board.location.where), dibs.Host(name, "f" * 64, "pid:[1]", "fleet"))
    store.open()
    return FilesBoard(store, board.location.where)


def state(board: dibs.Board, ident: str) -> str:
    """The current state of a task."""
    return board.find(ident)[0].state


def hint(app: DibsApp) -> str:
    """What the dialog asks for next: a key, or what is missing before it; empty for none."""
    found = app.screen
    if not isinstance(found, Dialog) or found.brief is None:
        return ""
    if found.over:
        return found.hint() or "Esc closes"
    first = next(iter(found.keys()))
    return f"{first.key} — {first.words}" if found.has_class("-sure") else found.hint()


async def asked(app: DibsApp, pilot: Pilot[None], words: str) -> None:
    """Wait until the dialog requests something."""
    await until(pilot, lambda: words in hint(app))


async def fill(app: DibsApp, pilot: Pilot[None], where: str, text: str) -> None:
    """Type a text into a field, and move the focus back to Cancel."""
    app.screen.query_one(where, Input).value = text
    app.screen.query_one("#cancel").focus()
    await pilot.pause()
