"""What the dashboard says when there is no table to show, and when the rows cannot be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs_tui.ages import short
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.seen import Status

_PATIENCE = 3.0
_NEXT = {
    "missing": "Make it, or give another directory: dibs init",
    "denied": "Ask for permission to read it, or run as its user.",
    "not a board": "Give the directory that holds the tasks.",
    "newer": "Update dibs: pip install --upgrade dibs",
    "failed": "The disk or its mount has a fault; the cause is above.",
}


def trouble_of(status: Status, path: str, now: float) -> str:
    """Why the rows are not to be trusted now, in one line; empty while they are."""
    since = (
        f"rows are as of {short(now - status.fresh)} ago" if status.fresh else "nothing seen yet"
    )
    if status.trouble:
        cause, place = clean(status.cause), clean(path)
        where = "" if place in cause else f"{place}: "
        return f"{status.trouble.upper()} — {where}{cause} — {since}; trying again for ever"
    waiting = now - status.busy if status.busy else 0.0
    if waiting > _PATIENCE + status.every:
        place = clean(path)
        return f"NO ANSWER from {place} for {short(waiting)} — {since}; waiting for the disk"
    return ""


def card_of(model: BoardModel, status: Status, trouble: str, path: str) -> str | None:
    """The words in place of the tables; None where there is something to show."""
    place = clean(path)
    if not status.fresh:
        if status.trouble:
            word, cause = status.trouble, clean(status.cause)
            return f"{word.upper()}\n\n{cause}\n\n{_NEXT[word]}\n\nTrying again; q leaves."
        return f"{trouble}\n\nq leaves." if trouble else f"Looking at {place} …"
    if model.whole and not model.tasks and not trouble:
        return (
            f"EMPTY\n\nThere are no tasks in {place}\n\n"
            f"Put one there:  dibs -d {place} add task-1\n"
            f"or look at a living board:  dibs demo"
        )
    return None
