"""What the tests of dialogs share: how they are opened, filled in and read."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

import dibs
from dibs.disk import Disk
from dibs.store import Store
from dibs_tui.acting.hands import Hands
from dibs_tui.app import DibsApp
from tests.tui.live import until


def without_waiting(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A home of one's own, and no pauses before a key is taken for meant: others test those."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setattr("dibs_tui.acting.operator.settled", lambda at: True)
    monkeypatch.setattr("dibs_tui.screens.ask.DEAF", 0.0)
    monkeypatch.setattr(Hands, "burst", False)


def of_host(board: dibs.Board, name: str) -> dibs.Board:
    """The same board as a process on another host sees it."""
    store = Store(Disk(board.path), dibs.Host(name, "f" * 64, "pid:[1]", "fleet"))
    store.open()
    return dibs.Board(store, board.path)


def state(board: dibs.Board, ident: str) -> str:
    """The state of a task now."""
    return board.find(ident)[0].state


def hint(app: DibsApp) -> str:
    """What the dialog asks for; empty where there is none."""
    found = app.screen.query("#act-hint, #ask-hint")
    return str(found.first(Static).render()) if found else ""


async def asked(app: DibsApp, pilot: Pilot[None], words: str) -> None:
    """Wait until the dialog asks for something."""
    await until(pilot, lambda: words in hint(app))


async def fill(app: DibsApp, pilot: Pilot[None], where: str, text: str) -> None:
    """Put a text into a field, and the focus back on Cancel."""
    app.screen.query_one(where, Input).value = text
    app.screen.query_one(Button).focus()
    await pilot.pause()
