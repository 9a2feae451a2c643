"""A storage that answers slowly: not so that the board counts as lost, but each read takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs_tui.text.ages import short

if TYPE_CHECKING:
    from dibs import Health

_SLOW = 1.0
"""Seconds from which an answer is slow."""
_FOR = 60.0
"""Seconds for which a slow answer counts."""
_SEVERAL = 3
"""So many slow answers are no accident."""


class SlowStorage:
    """Counts the reads of the last minute that took long."""

    def __init__(self) -> None:
        self._waits: dict[float, float] = {}
        """How long each slow read took so far, by the monotonic time of its start."""

    def note(self, health: Health, at: float) -> None:
        """Note the health of the watch, at least once a second."""
        if health.busy and at - health.busy > _SLOW:
            self._waits[health.busy] = at - health.busy
        for start in [start for start in self._waits if start < at - _FOR]:
            del self._waits[start]

    @property
    def why(self) -> str:
        """What is slow, in one line; empty if it is not."""
        if len(self._waits) < _SEVERAL:
            return ""
        longest = short(max(self._waits.values()))
        return (
            f"{len(self._waits)} reads of the last minute took over {short(_SLOW)}, "
            f"up to {longest}: beats may be late"
        )
