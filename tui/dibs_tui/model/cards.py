"""The texts for a board that has no rows to show, or whose rows cannot be trusted."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from dibs.model.health import Trouble
from dibs_tui.text.ages import short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs.model.health import Health
    from dibs_tui.model.board import BoardModel

_PATIENCE = 3.0
_UNREADABLE = (Trouble.NEWER_FORMAT, Trouble.OLDER_FORMAT, Trouble.BAD_SETTINGS)
"""With these, rows seen before may be wrong too: the rules for reading them have changed."""
_NEXT = {
    Trouble.MISSING: "Create a board there:  dibs -d {place} init",
    Trouble.NOT_MOUNTED: "The board appears as soon as it is mounted.",
    Trouble.DENIED: "The board appears as soon as it can be read.",
    Trouble.NOT_A_BOARD: "Name another board:  dibs BOARD",
    Trouble.NEWER_FORMAT: "Install a newer version of dibs on this machine.",
    Trouble.OLDER_FORMAT: "Stop the workers, then:  dibs -d {place} upgrade",
    Trouble.BAD_SETTINGS: "Fix the settings, or remove the file to use the defaults.",
    Trouble.FAILED: "The storage has a fault. See the line above.",
}


_STEPS = """\
No tasks yet
{name}
1  add a task      dibs {board}add hello

2  run a worker    dibs {board}run --loop -- sh -c "cat; sleep 5"

3  watch it here   it appears within a second

A busy board to try things on:  dibs demo"""
_NAME = "\n0  name the board  export DIBS_BOARD={place}\n"
_LONG = 16
"""The characters of a place from which it is named once, and not in each command."""


def _steps(path: str) -> str:
    """The first steps on an empty board, whose commands work in any directory."""
    place = clean(quote(path))
    if len(place) > _LONG:
        return _STEPS.format(name=_NAME.format(place=place), board="")
    return _STEPS.format(name="", board=f"-d {place} ")


def first_command(path: str) -> str:
    """The command that adds the first task to a board."""
    return f"dibs -d {clean(quote(path))} add hello"


def trouble_of(health: Health, path: str, now: float) -> str:
    """Why the rows cannot be trusted now, in one line; empty while they can."""
    since = f"rows are {short(now - health.fresh)} old" if health.fresh else "no rows yet"
    if health.trouble:
        cause, place = clean(health.cause), clean(path)
        where = "" if place in cause else f"{place}: "
        return f"{health.trouble.upper()} — {where}{cause} — {since}; retrying"
    waiting = now - health.busy if health.busy else 0.0
    if waiting > _PATIENCE + health.every:
        place = clean(path)
        return f"NO ANSWER from {place} for {short(waiting)} — {since}; waiting for an answer"
    return ""


def card_of(
    model: BoardModel, health: Health, trouble: str, path: str, leave: str = "q"
) -> str | None:
    """The text in place of the tables; None while there are rows to show."""
    place = clean(path)
    trouble_now = health.trouble
    if trouble_now and (trouble_now in _UNREADABLE or not health.fresh):
        title = trouble_now.value.upper()
        following = _NEXT[trouble_now].format(place=clean(quote(path)))
        return "\n\n".join((title, clean(health.cause), following, f"Retrying. {leave} quits."))
    if not health.fresh:
        return f"{trouble}\n\n{leave} quits." if trouble else f"Reading {place} …"
    if model.complete and not model.tasks and not trouble:
        if health.why_read_only:
            return f"No tasks yet\n\nRead-only: {clean(health.why_read_only)}"
        return _steps(path)
    return None
