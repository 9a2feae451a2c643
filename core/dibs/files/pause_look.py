"""The look for a pause that every claim makes; it costs one call while nothing is paused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.errors import storage_error
from dibs.model.names import PAUSED

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.errors import Paused


def refuse_while_paused(store: BoardFiles, *, lock: bool = False) -> None:
    """Raise `Paused` before anything is renamed, which only saves renames."""
    try:
        paused = find_pause(store, lock=lock)
    except OSError as error:
        raise storage_error(error) from error
    if paused is not None:
        raise paused


def find_pause(store: BoardFiles, *, lock: bool) -> Paused | None:
    """The error for a claim that a pause stops; None if nothing is paused here.

    Raises `OSError` if that cannot be found out: only a missing name means that there is no pause.
    """
    if store.port.missing(PAUSED):
        return None
    from dibs.files import pausing
    from dibs.model.pauses import paused_error

    store.pause_look_at = 0
    found = pausing.stops(store, lock=lock)
    return paused_error(*found) if found is not None else None
