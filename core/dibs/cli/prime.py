"""What an agent must know now: its claims, what it has lost, and how to work with the board."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dibs.cli import mine
from dibs.cli.boards import board_of
from dibs.model.errors import DibsError
from dibs.model.sessions import session_of

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.mine import Loss
    from dibs.cli.say import Voice
    from dibs.model.entries import Entry
    from dibs.model.snapshot import Snapshot

HOW = (
    "Claim before any side effect (file, commit, message): `dibs claim --owner ME --ttl 300` takes "
    "the next task, `dibs claim ID` a given one, `dibs acquire NAME` a lock. Each prints CLAIM, "
    "its exact name: keep it.\n"
    "`dibs beat CLAIM` at least every third of the ttl, with `--ttl 20m` before a longer step. End "
    "with `dibs done CLAIM`, `dibs fail CLAIM --reason WHY`, `dibs ask CLAIM QUESTION` or `dibs "
    "release CLAIM`.\n"
    "Exit code 5: the claim is lost, stop that work at once. 4: nothing to claim."
)
BEATEN = "Each tool call here beats your claims, before and after it."
MORE = "`dibs prime` shows this again; `dibs help agents` is the full page."
_UNKNOWN = "It is unknown which claims are yours: `dibs prime --owner ME` shows those of ME."
_EXAMPLE = "`dibs prime`"
_ROOM = 260
"""The characters that a list of claims may take, so that an agent does not read a long board."""


def prime(voice: Voice, args: argparse.Namespace) -> int:
    """Print the board, the caller's claims, what is available, the pauses and how to work."""
    board = board_of(args)
    session = session_of(os.environ)
    args.mine = True
    try:
        rows = mine.mine(board, args)
        known = True
    except DibsError:  # without a session the rest still helps
        rows, known = [], False
    losses = mine.lost(board, session, rows) if session and args.owner is None else []
    snapshot = board.snapshot(ended=False)
    if voice.json:
        how = "\n".join(_how(voice))
        voice.result("", _fields(board, snapshot, session, rows, losses) | {"how": how})
        return 0
    from dibs.cli.look import counted
    from dibs.cli.pausing import lines

    counts = ", ".join(counted(snapshot.counts(), snapshot.next_start())) or "no tasks"
    text = [f"dibs board {board.location.label}: {counts}", *lines(snapshot)]
    text += listed(rows, losses) if known else [voice.runnable(_UNKNOWN)]
    if "DIBS_CLAIM" in os.environ:
        text.append(f"You work under `dibs run`, which beats: {os.environ['DIBS_CLAIM']}")
    for line in "\n".join([*text, *_how(voice)]).split("\n"):
        voice.result(line, {})
    return 0


def _how(voice: Voice) -> list[str]:
    """How to work with the board, and how to name it where it had to be named."""
    example = voice.runnable(_EXAMPLE)
    named = [] if example == _EXAMPLE else [f"Name the board in each command: {example}."]
    return [HOW, *named, MORE]


def listed(rows: Sequence[Entry], losses: Sequence[Loss]) -> Iterator[str]:
    """One line for each claim and for each lost one, as many as an agent should read."""
    room = _ROOM
    lines = [f"LOST, stop that work: {loss.claim} ({loss.why})" for loss in losses]
    lines += [_line(row) for row in rows if row.claim not in {loss.claim for loss in losses}]
    if not lines:
        yield "You have no claims."
    for n, line in enumerate(lines):
        room -= len(line)
        if room < 0 and n:
            yield f"… and {len(lines) - n} more: `dibs ls --mine`"
            return
        yield line


def _line(row: Entry) -> str:
    left = max(0.0, (row.ttl or 0.0) - (row.age or 0.0))
    if row.state == "stale":
        return f"STALE, its lease has expired: {row.claim}"
    return f"Yours: {row.claim} ({row.kind}, {left:.0f} s left of {row.ttl:g} s)"


def _fields(
    board: Board, snapshot: Snapshot, session: str, rows: Sequence[Entry], losses: Sequence[Loss]
) -> dict[str, object]:
    from dibs.cli.pausing import fields
    from dibs.cli.say import fields_of

    return {
        "status": "primed",
        "board": board.location.label,
        "session": session or None,
        "claims": [fields_of(row, board.settings.max_attempts) for row in rows],
        "lost": [loss._asdict() for loss in losses],
        "counts": {state: count for state, count in snapshot.counts().items() if count},
        "pauses": [fields(pause) for pause in snapshot.pauses],
    }
