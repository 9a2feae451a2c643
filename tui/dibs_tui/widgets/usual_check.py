"""Learns how long each kind of task usually takes, without stopping the dashboard."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from dibs import Board, DibsError
from dibs.model.usual import LEAST, VERBS, learn

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

_EVERY = 300.0
_SPARE = 100
"""Reading the log may take at most 1/100 of the time."""


class UsualCheck:
    """Reads the newest part of the log in its own thread while a claim is old enough to matter."""

    def __init__(self, model: BoardModel) -> None:
        self.thread: Thread | None = None
        self._model = model
        self._due = 0.0

    def ask(self, open_board: Callable[[], Board]) -> None:
        """Read the log if that is due and a claim lasts for long enough."""
        if time.monotonic() < self._due or (self.thread is not None and self.thread.is_alive()):
            return
        before = self._model.now.fs - int(LEAST * 1e9)
        if not any(holder.since <= before for holder in self._model.holders.values()):
            return
        self.thread = Thread(target=self._learn, args=(open_board,), name="dibs-usual", daemon=True)
        self.thread.start()

    def _learn(self, open_board: Callable[[], Board]) -> None:
        start = time.monotonic()
        with suppress(DibsError):  # the health of the board says why
            self._model.durations = learn(open_board().log.newest_first(verbs=VERBS))
        self._due = time.monotonic() + max(_EVERY, _SPARE * (time.monotonic() - start))
