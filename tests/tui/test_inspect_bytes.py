"""How many bytes the pane beside the table costs the terminal, as over a slow ssh link."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import dibs
from dibs_tui.settings import memory
from dibs_tui.settings.memory import Remembered
from tests.tui.terminal import Terminal, terminal

MOVES = 3
MOST = 45_000
"""Bytes; a full screen of that size takes about as many."""
QUIET = 0.3
"""Seconds within which the pane finds what is slow to find."""


def test_a_cursor_move_redraws_only_what_changed(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    for n in range(2 * MOVES):
        board.add(f"task-{n}", f"payload {n}\n".encode() * 8)
        board.claim(f"task-{n}", owner=f"web-{n}", ttl=600, metadata=json.dumps({"n": n}))
    seen = Remembered(panel="claimed", pane=True)
    memory.save(seen, board.location.where, {"XDG_STATE_HOME": str(tmp_path / "state")})
    with terminal(tmp_path, tmp_path / "board", columns=200, rows=60) as shown:
        shown.shows("● live", "● task-0  web-0", "ALIVE")
        spent = [moved(shown, n) for n in range(1, MOVES)]
    assert median(spent) < MOST


def moved(shown: Terminal, to: int) -> int:
    """The bytes written until the pane shows everything about the task that the cursor moves to."""
    shown.settle(QUIET)
    before = len(shown.raw)
    shown.send("j")
    shown.shows(f"● task-{to}  web-{to}", "ALIVE")
    shown.settle(QUIET)
    return len(shown.raw) - before
