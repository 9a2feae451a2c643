"""Find what is wrong in the folder of pauses, and pauses that are over."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import pausing
from dibs.model.answers import Finding
from dibs.model.errors import storage_error
from dibs.model.names import PAUSED
from dibs.model.pauses import described_end

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles


def pauses(store: BoardFiles) -> Iterator[Finding]:
    """Files that pause nothing, an empty folder, and pauses that have ended by themselves."""
    try:
        if store.port.missing(PAUSED):
            return
        if not store.port.stat(PAUSED).folder:
            yield Finding(
                "stranger", PAUSED, "not a folder, so the board cannot be paused: move it"
            )
            return
        names, now = store.ended(PAUSED), pausing.seconds(store)
        for name in names:
            path = f"{PAUSED}/{name}"
            pause = pausing.read(store, name)
            if pause is None:
                yield Finding("stranger", path, "not a pause, so it pauses nothing: move it away")
            elif now and pause.ended(now):
                text = described_end(pause, now)
                yield Finding("pause", path, text, partial(_remove, store, path), fault=False)
        if not names:
            text = "left by a process that was killed while it paused or resumed"
            yield Finding("draft", PAUSED, text, partial(store.port.rmdir, PAUSED))
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error) from error


def _remove(store: BoardFiles, path: str) -> bool:
    """Remove a pause that is over, and the folder if it was the last one."""
    removed = store.remove(path)
    pausing.remove_folder(store)
    return removed
