"""What the dashboard says when there is no table to show, and when the rows cannot be trusted."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from dibs_tui.ages import short
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.seen import Status

_PATIENCE = 3.0
_UNTRUE = ("newer", "older", "foul")
"""Trouble in which even rows seen before say nothing: how to read them has changed."""
_TITLES = {
    "newer": "newer than this dibs",
    "older": "older than this dibs",
    "foul": "foul settings",
}
_MOUNT = "It is shown as soon as it is mounted."
_NEXT = {
    "missing": "Make a board there:  dibs -d {place} init",
    "denied": "It is shown as soon as it may be read.",
    "not a board": "Give the directory that holds the tasks:  dibs DIR",
    "newer": "Update dibs:  pip install --upgrade dibs",
    "older": "Stop its workers, then:  dibs -d {place} upgrade",
    "foul": "Mend its settings, or take the file away: the defaults are good.",
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


def card_of(
    model: BoardModel, status: Status, trouble: str, path: str, leave: str = "q"
) -> str | None:
    """The words in place of the tables; None where there is something to show."""
    place = clean(path)
    word = status.trouble
    if word and (word in _UNTRUE or not status.fresh):
        title = _TITLES.get(word, word).upper()
        lost = word == "missing" and "not mounted" in status.cause
        told = _MOUNT if lost else _NEXT[word].format(place=clean(quote(path)))
        return "\n\n".join((title, clean(status.cause), told, f"Trying again; {leave} leaves."))
    if not status.fresh:
        return f"{trouble}\n\n{leave} leaves." if trouble else f"Looking at {place} …"
    if model.whole and not model.tasks and not trouble:
        return (
            "EMPTY\n\nThere are no tasks here\n\n"
            f"Put one there:  dibs -d {clean(quote(path))} add task-1\n"
            "or look at a living board:  dibs demo"
        )
    return None
