"""Which keys are refused as accidents: those in a burst, and those on a row that just moved."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from itertools import islice
from threading import Lock

_SETTLED = 0.7
_SEEN = 0.15
_BURST = 0.015
_MANY = 3
_WITHIN = 0.08
PASTED = "ignored: keys came too fast, as if pasted"
"""Why a command was not run whose key did not come alone."""


class KeyBurstGuard:
    """Notices keys that come too fast to be typed."""

    def __init__(self) -> None:
        self._keys: deque[float] = deque(maxlen=_MANY)
        self._read: deque[float] = deque()
        """When the keys from the terminal arrived, also those that wait to be handled."""
        self._reading = Lock()
        self.used = False
        """Whether any key or mouse button was pressed yet."""

    def pressed(self, at: float) -> None:
        """Note a key by its time; Textual reports the same one again as it is forwarded."""
        self.used = True
        if not self._keys or self._keys[-1] != at:
            self._keys.append(at)

    def arrived(self, times: Iterable[float]) -> None:
        """Note the keys of one read before the first is handled; the terminal's thread calls it."""
        with self._reading:
            self._read.extend(times)

    @property
    def together(self) -> bool:
        """Whether others arrived with the last key: it was pasted, or the terminal caught up.

        The first of them is known as well, without a wait for the next.
        """
        at = self._keys[-1] if self._keys else 0.0
        with self._reading:
            while self._read and self._read[0] <= at - _BURST:
                self._read.popleft()
            first = list(islice(self._read, 2))
        return len(first) > 1 and first[1] < at + _BURST

    @property
    def burst(self) -> bool:
        """Whether the last keys came too fast: pasted, or sent by a terminal that caught up."""
        if self.together:
            return True
        keys = list(self._keys)
        if len(keys) > 1 and keys[-1] - keys[-2] < _BURST:
            return True
        return len(keys) == _MANY and keys[-1] - keys[0] < _WITHIN


def settled(moved_at: float) -> bool:
    """Whether the row has been in its place long enough to be the one that was meant."""
    return time.monotonic() - moved_at >= _SETTLED


def shown(since: float) -> float:
    """The time to give `settled` for a row that the operator's own key brought up.

    The operator expects that row there, so it has to be shown for a shorter time.
    """
    return since + _SEEN - _SETTLED
