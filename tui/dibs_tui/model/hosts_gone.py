"""Hosts that stopped and whose claims other workers reaped: what self-healing leaves to say."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.events import BY_OPERATOR
from dibs.model.reasons import PAST, lost_host
from dibs_tui.text.ages import clock, counted
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Event

_MANY = 3
"""From so many reaped claims on, a host without any other is gone; one or two may be workers."""
_SIGN = 5.0
"""Seconds by which a sign of life must be later than the last heartbeat of a reaped claim."""
_KEPT = 1000
"""The most hosts and the most owners of one host that are kept; hosts may be invented."""
_NAMED = 3


class GoneHost(NamedTuple):
    """A host that stopped; or several that are said in one line."""

    what: str
    """The host, or the number of hosts; not cleaned."""
    since: float
    """When the last of its reaped claims was beaten, in seconds of the board's clock."""
    workers: int
    claims: int
    hosts: tuple[str, ...]

    @property
    def text(self) -> str:
        """How much was lost with it."""
        workers = counted(self.workers, "worker")
        return f"{workers}, {counted(self.claims, 'claim')} reaped{self._named}"

    @property
    def sentence(self) -> str:
        """What happened, for a notice."""
        return f"{clean(self.what, 60)} gone since {clock(self.since)[:5]} · {self.text}"

    @property
    def _named(self) -> str:
        if len(self.hosts) < 2:
            return ""
        more = len(self.hosts) - _NAMED
        names = ", ".join(clean(host, 60) for host in self.hosts[:_NAMED])
        return f": {names}" + (f" and {more:,} more" if more > 0 else "")


class _LostClaims:
    """What was reaped of one host."""

    def __init__(self) -> None:
        self.beat = self.at = self.sign = 0.0
        self.first = inf
        """The first of the last beats of its claims."""
        self.owners: set[str] = set()
        self.claims = 0

    @property
    def is_back(self) -> bool:
        return self.sign > self.beat + _SIGN


class HostsGone:
    """The hosts whose claims were reaped, until they are back, seen, or half an hour has passed."""

    def __init__(self) -> None:
        self._lost: dict[str, _LostClaims] = {}
        self._seen: dict[str, float] = {}
        """The last beat of each host that the operator has read of."""

    def begin(self) -> None:
        """The log is searched from now on, which reports the reaps of the last half hour."""
        self._lost.clear()

    def note(self, event: Event) -> None:
        """Note a reap by a worker or a janitor; an operator's own is no news."""
        found = lost_host(event)
        if found is None or event.reason.startswith(BY_OPERATOR):
            return
        lost = self._lost.get(found.host)
        if lost is not None and event.at < lost.first:
            return  # an earlier loss: the host beat again after that
        self._lost.pop(found.host, None)
        if lost is None or found.beat > lost.at or (lost.is_back and found.beat > lost.beat):
            lost = _LostClaims()
        lost.first = min(lost.first, found.beat)
        self._lost[found.host] = lost
        lost.beat, lost.at = max(lost.beat, found.beat), max(lost.at, event.at)
        lost.claims += 1
        if event.before is not None and len(lost.owners) < _KEPT:
            lost.owners.add(event.before.owner)
        if len(self._lost) > _KEPT:
            del self._lost[next(iter(self._lost))]

    def note_sign(self, host: str, at: float) -> None:
        """Note that a worker of a host beat or waited then, in seconds of the board's clock."""
        lost = self._lost.get(host)
        if lost is not None:
            lost.sign = max(lost.sign, at)

    def gone(self, now: float, alive: Container[str]) -> list[GoneHost]:
        """The hosts that are gone, the one that was lost last in front; many are one line."""
        found = [
            GoneHost(host, lost.beat, len(lost.owners), lost.claims, (host,))
            for host, lost in self._lost.items()
            if lost.claims >= _MANY
            and lost.at >= now - PAST
            and not lost.is_back
            and host not in alive
            and lost.beat > self._seen.get(host, 0.0)
        ]
        found.sort(key=lambda each: -each.since)
        return [_together(found)] if len(found) >= _MANY else found

    def see(self, found: Iterable[GoneHost]) -> None:
        """The operator has read of these hosts."""
        for host in (host for each in found for host in each.hosts):
            lost = self._lost.get(host)
            if lost is not None:
                self._seen[host] = lost.beat


def _together(found: list[GoneHost]) -> GoneHost:
    return GoneHost(
        f"{len(found):,} hosts",
        max(each.since for each in found),
        sum(each.workers for each in found),
        sum(each.claims for each in found),
        tuple(host for each in found for host in each.hosts),
    )
