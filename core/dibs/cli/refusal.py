"""How an error is reported: a line for a person, an object for a script, an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dibs.cli.stdio import mute
from dibs.model.errors import BoardMissing, DibsError, Held, NotABoard, NothingToClaim, Paused

if TYPE_CHECKING:
    from dibs.cli.say import Voice
    from dibs.model.task import Task


USAGE = 2


def report(voice: Voice, error: DibsError) -> int:
    """Print an error as text or JSON, with the board that it is about; returns its exit code."""
    board = _board(voice)
    try:
        if voice.json:
            voice.result("", ({"board": board} if board else {}) | fields(error))
        sys.stdout.flush()
    except OSError:  # the exit code still reports it
        mute(1)
    text = voice.runnable(str(error))
    known = not voice.board or board in text or error.exit_code == USAGE
    voice.words(text if known else f"{text} (board {board})")
    return error.exit_code


def _board(voice: Voice) -> str:
    """The board that was used, or was to be used; empty if it is unknown."""
    from dibs.board import locate

    if voice.args is None or voice.board:
        return voice.board.get("board", "")
    try:
        return locate(voice.args.board).where if voice.args.board else ""
    except DibsError:
        return ""


def fields(error: DibsError) -> dict[str, object]:
    """An error as JSON fields; `status` is its kind."""
    found: dict[str, object] = {"status": status(error), "error": str(error)}
    if isinstance(error, Held):
        found |= {
            "id": error.task.id,
            "claim": _printed(error.task),
            "owner": error.owner,
            "fence": error.task.fence,
            "remaining": round(error.remaining, 3),
            "retry": round(error.retry, 3),
            "metadata": error.metadata,
        }
        found |= {"slots": error.slots} if error.slots > 1 else {}
    if isinstance(error, Paused):
        from dibs.cli.pausing import fields as terms

        found |= terms(error.pause)
    found |= error.details or {}
    now: tuple[Task, ...] | None = getattr(error, "now", None)
    if now is not None:
        found["now"] = [row(task) for task in now]
    return found


def row(task: Task) -> dict[str, object]:
    """One row of `now`: what is there instead."""
    name = _printed(task)
    return {
        "id": task.id,
        "state": task.state,
        "claim": name,
        "owner": task.owner,
        "fence": task.fence,
    }


def _printed(task: Task) -> str:
    """The name to give to a verb, in the form of all other objects."""
    return task.stem if task.live and not task.is_shell_claim else task.name


def status(error: DibsError) -> str:
    """The stable word for an error: the name of its public type, in lower case with dashes.

    Subtypes of a missing board or of an unusable one share the word of their base type.
    """
    if isinstance(error, NothingToClaim):
        return "empty"  # the word of `dibs claim` for it
    kinds = [c for c in type(error).__mro__ if c.__module__ == DibsError.__module__]
    name = next((c for c in (BoardMissing, NotABoard) if c in kinds), kinds[0]).__name__
    return "".join(f"-{c.lower()}" if c.isupper() and n else c.lower() for n, c in enumerate(name))
