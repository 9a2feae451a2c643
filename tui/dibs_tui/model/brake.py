"""Fleet death or disk death? When many fall silent together, the storage is the suspect.

While it is, acts on many claims are locked: workers that cannot beat are not dead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dibs_tui.ages import clock, short
from dibs_tui.model.causes import Silence, beyond_one_host, together

if TYPE_CHECKING:
    from dibs_tui.model.seen import Status

_LEAST = 4
_PART = 0.2
_SLOW = 1.0
_QUICK = 0.5
"""Seconds that a touch may take and still tell the two clocks apart."""
_JUMP = 2.0
_STALL = 4.0
HEALTHY = 60.0
"""Seconds without a sign of trouble after which acts on many are let through again."""


class Brake:
    """Gathers the signs, and says why acts on many are locked."""

    def __init__(self) -> None:
        self._silences: deque[tuple[float, Silence]] = deque(maxlen=5000)
        self._suspect_at = -HEALTHY
        self._why = ""
        self._unlocked = False
        self._clock: tuple[int, int] | None = None

    def fell_silent(self, silences: Iterable[Silence], live: int, at: float) -> None:
        """These claims became stale just now, while so many are held in all."""
        new = set(silences)
        self._silences.extend((at, silence) for silence in new)
        while self._silences and self._silences[0][0] < at - HEALTHY:
            self._silences.popleft()
        for group in together(silence for _, silence in self._silences):
            hosts = {silence.host for silence in group}
            many = len(group) >= max(_LEAST, _PART * live) and beyond_one_host(group)
            if many and not new.isdisjoint(group):
                self._suspect(
                    at,
                    f"{len(group):,} claims on {len(hosts):,} hosts fell silent at "
                    f"{clock(max(silence.beat for silence in group))}, within one beat: "
                    "the storage or the clock is the suspect, not the workers",
                )

    def probed(self, seconds: float, at: float) -> None:
        """The board's own touch of the probe took so long."""
        if seconds > _SLOW:
            self._suspect(at, f"the storage is slow: a touch took {seconds:.1f} s")

    def touching(self, since: float, at: float) -> None:
        """Since when a touch of the probe has had no answer; 0 while none is under way."""
        if since and at - since > _SLOW:
            self._suspect(at, f"the storage stalls: a touch has no answer for {short(at - since)}")

    def fared(self, status: Status, at: float) -> None:
        """How the reader of a board that was seen whole fares."""
        waited = at - status.busy if status.busy else 0.0
        if waited > _STALL:
            self._suspect(at, f"the storage stalled: no answer for {short(waited)}")
        elif status.trouble:
            self._suspect(at, f"the storage was lost: it was {status.trouble}")

    def sampled(self, fs: int, boot: int, took: float, at: float) -> None:
        """The board's clock was read beside the boot-time clock, by a touch that took so long."""
        if took > _QUICK:  # the answer's delay would look like a jump
            return
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
