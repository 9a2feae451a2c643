"""When a key may act: not on a row that just moved, not in a burst, not where acts are locked."""

from __future__ import annotations

import time
from collections import deque

_SETTLED = 0.7
_SEEN = 0.15
_BURST = 0.015
_MANY = 3
_WITHIN = 0.08


class Hands:
    """The keys of the last moments, by when they came."""

    def __init__(self) -> None:
        self._keys: deque[float] = deque(maxlen=_MANY)
        self.used = False
        """Whether anybody has touched a key or the mouse yet."""

    def pressed(self, at: float) -> None:
        """A key came; the same one is told again on its way through the screen."""
        self.used = True
        if not self._keys or self._keys[-1] != at:
            self._keys.append(at)

    @property
    def burst(self) -> bool:
        """Whether the last keys came faster than fingers: pasted, or a terminal that caught up."""
        keys = list(self._keys)
        if len(keys) > 1 and keys[-1] - keys[-2] < _BURST:
            return True
        return len(keys) == _MANY and keys[-1] - keys[0] < _WITHIN


def settled(moved_at: float) -> bool:
    """Whether the row has stood still long enough to be meant."""
    return time.monotonic() - moved_at >= _SETTLED


def shown(since: float) -> float:
    """A row shown since then, as `settled` counts it: the operator looks for it where it came.

    It came by a key of the operator, not by a change of the board, so it needs less time.
    """
    return since + _SEEN - _SETTLED
