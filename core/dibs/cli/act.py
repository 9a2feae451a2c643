"""The operator's verbs: each on exactly the name that was seen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, say_task
from dibs.errors import NotExact

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice


def force_release(voice: Voice, args: argparse.Namespace) -> int:
    """Take a claim or a lease from its holder."""
    board = board_of(args)
    _exact(board, args.name)
    say_task(voice, "released", board.force_release(args.name, args.reason))
    return 0


def requeue(voice: Voice, args: argparse.Namespace) -> int:
    """Let a failed or finished task wait again."""
    board = board_of(args)
    _exact(board, args.name)
    say_task(voice, "requeued", board.requeue(args.name, args.reason))
    return 0


def park(voice: Voice, args: argparse.Namespace) -> int:
    """Set a task apart."""
    board = board_of(args)
    _exact(board, args.name)
    say_task(voice, "parked", board.park(args.name, args.reason))
    return 0


def prioritise(voice: Voice, args: argparse.Namespace) -> int:
    """Give a waiting task another place in the queue."""
    board = board_of(args)
    _exact(board, args.name)
    say_task(voice, "prioritised", board.reprioritise(args.name, args.level))
    return 0


def undo(voice: Voice, args: argparse.Namespace) -> int:
    """Take back the last act that the journal tells of, if nothing has moved since."""
    say_task(voice, "undone", board_of(args).undo(args.id))
    return 0


def _exact(board: Board, name: str) -> None:
    """A bare id is answered with the name to give."""
    from dibs.cli.boards import is_exact

    if is_exact(name):
        return
    names = ", ".join(entry.claim for entry in board.entries_of(board.find(name)))
    hint = f"give one of these: {names}" if names else "and nothing on this board has that id"
    raise NotExact(f"{name!a} is not the exact name of anything: {hint}")
