"""Watches a live owner for one beat period, or a minute, before its claim can be taken."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dibs_tui.text.ages import short

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

_LEAST, _MOST = 3.0, 60.0


class OwnerWatch:
    """Says how much of the wait is left, and whether a heartbeat came since it began."""

    def __init__(self, model: BoardModel, name: str) -> None:
        self._model = model
        self._name = name
        self._beat = self._last_beat()
        self._period = self._expected()
        self._until = time.monotonic() + min(_MOST, self._period)

    @property
    def left(self) -> float:
        """Seconds left."""
        return max(0.0, self._until - time.monotonic())

    def message(self) -> str:
        """What it waits for, for the hint; empty when it is over."""
        if not self.left:
            return ""
        due = f", due every {short(self._period)}" if self._period > _MOST else ""
        seen = f"waiting for a heartbeat{due}"
        seen = "a heartbeat came: its owner is alive" if self.beaten else seen
        return f"{seen}: {self.left:.0f} s left"

    @property
    def beaten(self) -> bool:
        """Whether a heartbeat came since it began: the owner is alive."""
        return self._last_beat() > self._beat

    def _last_beat(self) -> int:
        holder = self._model.holders.get(self._name)
        return holder.beat if holder is not None else 0

    def _expected(self) -> float:
        """Seconds within which a live owner beats: by its usual cadence, or a third of its ttl."""
        history = self._model.beat_histories.get(self._name)
        holder = self._model.holders.get(self._name)
        cadence = history.cadence / 1e9 if history is not None else 0.0
        return max(_LEAST, 1.2 * (cadence or (holder.ttl / 3 if holder else 10.0)))
