"""A live owner, watched for one beat period before its claim may be taken from it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

_LEAST, _MOST = 3.0, 60.0


class Watch:
    """Begins at once; says how long it lasts, and whether the claim has beaten meanwhile."""

    def __init__(self, model: BoardModel, name: str) -> None:
        self._model = model
        self._name = name
        self._beat = self._last_beat()
        self._until = time.monotonic() + self._period()

    @property
    def left(self) -> float:
        """Seconds that it still lasts."""
        return max(0.0, self._until - time.monotonic())

    def told(self) -> str:
        """What is being waited for, in words; empty when it is over."""
        if not self.left:
            return ""
        seen = "it beats, its owner is at work" if self.beaten else "watching for a beat"
        return f"{seen}, {self.left:.0f} s more …"

    @property
    def beaten(self) -> bool:
        """Whether a beat came since it began: the owner is at work."""
        return self._last_beat() > self._beat

    def _last_beat(self) -> int:
        facts = self._model.facts.get(self._name)
        return facts.beat if facts is not None else 0

    def _period(self) -> float:
        """Seconds within which a live owner beats again: by its cadence, or a third of its ttl."""
        rhythm = self._model.rhythms.get(self._name)
        facts = self._model.facts.get(self._name)
        cadence = rhythm.cadence / 1e9 if rhythm is not None else 0.0
        return min(_MOST, max(_LEAST, 1.2 * (cadence or (facts.ttl / 3 if facts else 10.0))))
