"""Fleet death or disk death? When many fall silent together, the storage is the suspect.

While it is, acts on many claims are locked: workers that cannot beat are not dead.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_WINDOW = 30.0
_LEAST = 4
_PART = 0.2
_SLOW = 1.0
_JUMP = 2.0
HEALTHY = 60.0
"""Seconds without a sign of trouble after which acts on many are let through again."""


class _Silence(NamedTuple):
    at: float
    host: str


class Brake:
    """Gathers the signs, and says why acts on many are locked."""

    def __init__(self) -> None:
        self._silences: deque[_Silence] = deque(maxlen=5000)
        self._suspect_at = -HEALTHY
        self._why = ""
        self._unlocked = False
        self._clock: tuple[int, int] | None = None

    def fell_silent(self, host: str, at: float, live: int) -> None:
        """A claim of that host became stale, while so many are held in all."""
        self._silences.append(_Silence(at, host))
        while self._silences and self._silences[0].at < at - _WINDOW:
            self._silences.popleft()
        hosts = {silence.host for silence in self._silences}
        count = len(self._silences)
        if len(hosts) >= 2 and count >= max(_LEAST, _PART * live):
            self._suspect(
                at,
                f"{count} claims on {len(hosts)} hosts fell silent within {_WINDOW:.0f} s: "
                "the storage or the clock is the suspect, not the workers",
            )

    def probed(self, seconds: float, at: float) -> None:
        """The board's own touch of the probe took so long."""
        if seconds > _SLOW:
            self._suspect(at, f"the storage is slow: a touch took {seconds:.1f} s")

    def sampled(self, fs: int, boot: int, at: float) -> None:
        """The board's clock was read beside the boot-time clock."""
        if self._clock is not None:
            drift = ((fs - self._clock[0]) - (boot - self._clock[1])) / 1e9
            if abs(drift) > _JUMP:
                self._suspect(at, f"the board's clock jumped by {drift:+.0f} s")
        self._clock = (fs, boot)

    def why(self, at: float) -> str:
        """Why acts on many are locked; empty while they are not."""
        if at - self._suspect_at > HEALTHY:
            self._why, self._unlocked = "", False
        return "" if self._unlocked else self._why

    def unlock(self) -> None:
        """Let acts on many through although the storage is a suspect."""
        self._unlocked = True

    def _suspect(self, at: float, why: str) -> None:
        self._suspect_at, self._why = at, why
