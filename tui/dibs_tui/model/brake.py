"""Locks bulk acts while the storage or the clock looks faulty.

When many claims on several hosts stop beating together, the storage is a likelier cause than the
workers. Workers that cannot beat are not dead, so their claims must not be released in bulk.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import TYPE_CHECKING

from dibs.model.health import Trouble
from dibs_tui.model.causes import MissedBeat, beyond_one_host, simultaneous
from dibs_tui.text.ages import clock, short

if TYPE_CHECKING:
    from dibs.model.health import Health

_MIN_CLAIMS = 4
_MIN_SHARE = 0.2
_SLOW = 1.0
_QUICK = 0.5
"""A probe that takes longer than these seconds does not show whether the clock jumped."""
_JUMP = 2.0
_STALL = 4.0
HEALTHY = 60.0
"""Seconds without a sign of trouble after which bulk acts are unlocked."""
_BACK = 20.0
"""The same after a short outage of the board, at least."""


def _words(trouble: Trouble) -> str:
    return "the storage failed" if trouble is Trouble.FAILED else trouble.value


class Brake:
    """Collects signs of a storage or clock fault, and says why bulk acts are locked."""

    def __init__(self) -> None:
        self._stopped: frozenset[str] = frozenset()
        """The claims that stopped beating together, as long as none of them is back."""
        self._judged: set[str] = set()
        """Stale claims that no longer count: one that stopped with them is back, or a person said
        that the storage is well."""
        self._suspect_at = -HEALTHY
        self._why = ""
        self._unlocked = False
        self._clock: tuple[int, int] | None = None
        self._away = 0.0
        """Since when the board is unavailable; 0 if it is not."""
        self._before = -HEALTHY
        """When the last sign of trouble was before that."""
        self._trouble = ""

    def note_stale(
        self, missed: Iterable[MissedBeat], live: int, at: float, back: Collection[str] = ()
    ) -> None:
        """Judge all claims that missed their beats; `live` is the number of all live claims.

        `back`: claims that did and beat again. It does not matter when a claim stopped: this
        dashboard may have been opened later. Until one of those that stopped together is stale
        there is nothing to take from its holder, and all of them may only beat rarely.
        """
        if not self._stopped.isdisjoint(back):
            self._judged |= self._stopped
            self._suspect(at, "claims that stopped beating together come back: wait for the others")
        if self._stopped:  # it was so until now
            self._suspect_at = max(self._suspect_at, at)
        found = list(missed)
        self._judged &= {one.name for one in found}
        stopped: set[str] = set()
        for group in simultaneous(one for one in found if one.name not in self._judged):
            hosts = {one.host for one in group}
            enough = len(group) >= max(_MIN_CLAIMS, _MIN_SHARE * live)
            if enough and any(one.stale for one in group) and beyond_one_host(group):
                stopped |= {one.name for one in group}
                self._suspect(
                    at,
                    f"{len(group):,} claims on {len(hosts):,} hosts stopped beating at "
                    f"{clock(max(one.beat for one in group))}, within one heartbeat: "
                    "suspect the storage or the clock, not the workers",
                )
        self._stopped = frozenset(stopped)

    def note_read_only(self, why: str, at: float) -> None:
        """Note that the storage takes no changes, and that all claims have missed their beats."""
        self._suspect(at, f"no worker can beat: {why}")

    def note_probe(self, seconds: float, at: float) -> None:
        """Note how long the last write to the board's probe file took."""
        if seconds > _SLOW:
            self._suspect(at, f"the storage is slow: a test write took {seconds:.1f} s")

    def note_health(self, health: Health, at: float) -> None:
        """Note the health of the watch on a board that was seen in full before."""
        if health.touching and at - health.touching > _SLOW:
            waited = short(at - health.touching)
            self._suspect(at, f"the storage is stalled: no answer to a test write for {waited}")
        waiting = at - health.busy if health.busy else 0.0
        if waiting > _STALL:
            self._suspect(at, f"the storage stalled: no answer for {short(waiting)}")
        elif health.trouble:
            if not self._away:
                self._away, self._before = at, self._suspect_at
            self._trouble = _words(health.trouble)
            self._suspect(at, f"the board is unavailable: {_words(health.trouble)}")
        elif self._away:
            gone, self._away = at - self._away, 0.0
            self._why = f"the board was unavailable for {short(gone)}: {self._trouble}"
            # What expires in a short outage has a short lease, and its holder beats again as soon.
            until = at + min(HEALTHY, max(_BACK, 2 * gone))
            self._suspect_at = max(self._before, min(self._suspect_at, until - HEALTHY))

    def note_clock(self, fs: int, boot: int, took: float, at: float) -> None:
        """Note a reading of the board's clock and of the boot-time clock, and how long it took."""
        if took > _QUICK:  # the delay of the answer would look like a jump
            return
        if self._clock is not None:
            drift = ((fs - self._clock[0]) - (boot - self._clock[1])) / 1e9
            if abs(drift) > _JUMP:
                self._suspect(at, f"the board's clock jumped by {drift:+.0f} s")
        self._clock = (fs, boot)

    def why(self, at: float) -> str:
        """Why bulk acts are locked; empty while they are not."""
        if at - self._suspect_at > HEALTHY and not self._stopped:
            self._why, self._unlocked = "", False
        return "" if self._unlocked else self._why

    def returned(self, held: Container[str], missed: Container[str]) -> list[str]:
        """The claims that stopped together and are held without one of `missed`: they beat."""
        return [name for name in self._stopped if name in held and name not in missed]

    @property
    def stopped(self) -> int:
        """The number of claims that stopped together; bulk acts are locked until one is back."""
        return len(self._stopped)

    def left(self, at: float) -> float:
        """Seconds until bulk acts are unlocked, if no sign of trouble follows and none lasts."""
        return max(0.0, self._suspect_at + HEALTHY - at)

    def unlock(self) -> None:
        """Allow bulk acts although the storage is suspect."""
        self._unlocked = True
        self._judged |= self._stopped
        self._stopped = frozenset()

    def _suspect(self, at: float, why: str) -> None:
        self._suspect_at, self._why = at, why
