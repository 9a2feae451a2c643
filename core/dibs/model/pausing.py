"""What ends or restores a pause: its name, and the line of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.errors import BadName, short
from dibs.model.events import PAUSE
from dibs.model.names import PAUSED
from dibs.model.pauses import is_pause_name, pause_of_text

if TYPE_CHECKING:
    from dibs.model.events import Event


def check_name(name: str) -> str:
    """The name of a pause, also given as the log has it; else `BadName`."""
    name = name.removeprefix(f"{PAUSED}/") if isinstance(name, str) else name
    if not isinstance(name, str) or not is_pause_name(name):
        raise BadName(
            f"{short(name)} is not the name of a pause: give the one that `pause` printed"
        )
    return name


def not_undoable(event: Event, name: str, now: float, *, here: bool) -> str:
    """Why a pause, or its end, cannot be undone now; empty if it can.

    `here` is whether the pause of that name is in force.
    """
    if not is_pause_name(name):
        return "the log does not show which pause it was"
    if event.verb == PAUSE:
        return "" if here else "it has ended since"
    if here:
        return "it is in force again"
    pause = pause_of_text(name, event.by, event.at, event.reason)
    if pause is None:
        return "the log does not say for how long or for which hosts"
    return "its end has passed" if pause.ended(now) else ""
