"""What stale claims have in common: they stopped together, or share a host or an owner."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from dibs import Verdict
from dibs.model.evidence import PER_TTL
from dibs_tui.model.owners import HeldClaim, held, terms
from dibs_tui.text.ages import clock, counted, short

if TYPE_CHECKING:
    from dibs_tui.model.known_board import KnownBoard

MANY = 3
"""The number of stale claims from which a common cause is assumed."""
MOMENT = "moment="
"""The beginning of a filter word for claims that stopped together, which no term describes."""
_SECOND = 1_000_000_000
_MIN_PERIOD = 2 * _SECOND
_STRAY = 2
"""The number of claims on other hosts from which more than one host is affected."""


class MissedBeat(NamedTuple):
    """A stale claim: it stopped at some time between its last beat and the next one due."""

    beat: int
    """The time of its last beat, in nanoseconds of the board's clock."""
    due: int
    """When the next beat was due."""
    host: str
    name: str
    """The exact name."""
    stale: bool = True
    """Whether its lease has expired; else it is only known that it missed a beat."""


class Cause(NamedTuple):
    """What many stale claims have in common."""

    key: str
    what: str
    """The host, the owner, or the number of hosts; not cleaned."""
    word: str
    reason: str
    """Since when, how many, how long, and with what evidence; not cleaned."""
    terms: str
    """The filter that shows them, or a `MOMENT` word for exactly these claims."""
    claims: tuple[str, ...]
    """The exact names."""

    @property
    def is_moment(self) -> bool:
        """Whether its claims stopped together on several hosts."""
        return self.key.startswith("moment")


def missed_beat(claim: HeldClaim) -> MissedBeat:
    """The two times between which a claim stopped."""
    holder = claim.holder
    period = max(_MIN_PERIOD, int(claim.cadence or holder.ttl * _SECOND / PER_TTL))
    return MissedBeat(holder.beat, holder.beat + period, claim.host, holder.task.name, claim.stale)


class Others(NamedTuple):
    """The claims of a host that are not stale, beside stale ones."""

    total: int = 0
    beating: int = 0
    beat: int = 0
    """The time of the latest beat, in nanoseconds of the board's clock."""

    def text(self, now: int) -> str:
        """How many still beat; if none does, since when. Empty without others."""
        if self.beating or not self.total:
            beat = "beats" if self.beating == 1 else "beat"
            return f"{counted(self.beating, 'other')} still {beat}" if self.total else ""
        have = "has" if self.total == 1 else "have"
        ago = short((now - self.beat) / _SECOND)
        return f"{counted(self.total, 'other')} {have} not beaten for {ago}"


_NONE = Others()


def others_by_host(claims: Iterable[HeldClaim]) -> dict[str, Others]:
    """The claims that are not stale, by host."""
    found: dict[str, Others] = {}
    for claim in claims:
        if not claim.stale:
            total, beating, beat = found.get(claim.host, _NONE)
            beat = max(beat, claim.holder.beat)
            found[claim.host] = Others(total + 1, beating + (not claim.silent), beat)
    return found


def others_on(model: KnownBoard, hosts: Container[str]) -> dict[str, Others]:
    """The claims of these hosts that are not stale, by host."""
    stale, holders = model.stale, model.holders
    names = [n for n, one in holders.items() if n not in stale and one.host in hosts]
    return others_by_host(held(model, names=names))


def silent_hosts(model: KnownBoard) -> Iterator[HeldClaim]:
    """The claims that are not stale, of hosts of which none has beaten for long.

    One that missed its beat while others of its host beat may belong to a holder that beats rarely.
    """
    now, beating = model.now.fs, set[str]()
    for holder in model.holders.values():
        if now - holder.beat <= max(_MIN_PERIOD, holder.ttl * _SECOND / PER_TTL):
            beating.add(holder.host)
    names = [
        name
        for name, holder in model.holders.items()
        if name not in model.stale and holder.host and holder.host not in beating
        if not holder.task.is_shell_claim
    ]
    return held(model, names=names)


def simultaneous(missed: Iterable[MissedBeat]) -> Iterator[list[MissedBeat]]:
    """Groups of claims that may have stopped at the same moment."""
    found = sorted(missed)
    first_due = list(accumulate((one.due for one in reversed(found)), min))[::-1]
    start = 0
    while start < len(found):
        end = bisect_right(found, first_due[start], lo=start, key=lambda one: one.beat)
        yield found[start:end]
        start = end


def beyond_one_host(group: Iterable[MissedBeat]) -> bool:
    """Whether more than one host stopped, not counting a single stray claim elsewhere."""
    hosts = Counter(one.host for one in group)
    return hosts.total() - max(hosts.values(), default=0) >= _STRAY


def causes(model: KnownBoard, claims: Iterable[HeldClaim]) -> Iterator[Cause]:
    """The causes that many stale claims share; a claim may count for a moment and a host."""
    found = list(claims)
    yield from _moments(model, _stale(found))
    yield from _places(model, found)


def separate_causes(model: KnownBoard, claims: Iterable[HeldClaim]) -> Iterator[Cause]:
    """The causes that many stale claims share, where no claim counts for two.

    Claims of one moment have that cause, unless most of them are on one host.
    """
    found = list(claims)
    stale, taken = _stale(found), set[str]()
    for cause in _moments(model, stale):
        hosts = Counter(stale[name].host for name in cause.claims)
        if 2 * max(hosts.values()) <= len(cause.claims):
            taken.update(cause.claims)
            yield cause
    yield from _places(model, [c for c in found if c.holder.task.name not in taken])


def _stale(claims: Iterable[HeldClaim]) -> dict[str, HeldClaim]:
    return {claim.holder.task.name: claim for claim in claims if claim.stale}


def _places(model: KnownBoard, claims: Sequence[HeldClaim]) -> Iterator[Cause]:
    """The hosts with many stale claims, and the owners of those on other hosts."""
    others = others_by_host(claims)
    for kind, what, part in _by_place(_stale(claims).values()):
        if kind == "host":
            # A process is seen to be dead only on the host of this dashboard, which is running.
            dead = sum(model.stale[claim.holder.task.name] is Verdict.DEAD for claim in part)
            word = "stale" if what in others or dead else "all stale"
            word = "exited" if dead == len(part) else word
            yield _cause(model, "host", what, word, part, others.get(what, _NONE))
        else:
            yield _cause(model, "owner", what, "stale", part)


def _by_place(claims: Iterable[HeldClaim]) -> Iterator[tuple[str, str, list[HeldClaim]]]:
    """The hosts with many of these claims, and the owners with many of the others."""
    hosts: dict[str, list[HeldClaim]] = {}
    owners: dict[str, list[HeldClaim]] = {}
    for claim in claims:
        hosts.setdefault(claim.host, []).append(claim)
    for host, part in hosts.items():
        if host and len(part) >= MANY:
            yield "host", host, part
        else:
            for claim in part:
                owners.setdefault(claim.owner, []).append(claim)
    for owner, part in owners.items():
        if owner and len(part) >= MANY:
            yield "owner", owner, part


class SharedPlace(NamedTuple):
    """What many claims have in common that are not stale."""

    key: str
    what: str
    """The host, the owner, or the number of hosts; not cleaned."""
    terms: str
    """The filter that shows them; empty if they are on several hosts."""
    claims: list[HeldClaim]


def shared_places(
    claims: Sequence[HeldClaim], moments: Iterable[list[HeldClaim]]
) -> Iterator[SharedPlace]:
    """What many of these claims have in common; no claim counts for two.

    `moments` are those that may have one cause on several hosts. They have it, unless most of them
    are on one host.
    """
    taken: set[str] = set()
    for group in moments:
        hosts = Counter(claim.host for claim in group)
        if len(group) >= MANY and len(hosts) > 1 and 2 * max(hosts.values()) <= len(group):
            names = [claim.holder.task.name for claim in group]
            taken.update(names)
            yield SharedPlace(f"moment/{min(names)}", f"{len(hosts):,} hosts", "", group)
    for kind, what, part in _by_place(c for c in claims if c.holder.task.name not in taken):
        yield SharedPlace(f"{kind}/{what}", what, terms(kind, what), part)


def stopped_together(claims: Iterable[HeldClaim]) -> Iterator[list[HeldClaim]]:
    """Groups of claims that may have missed their beats at the same moment."""
    by_name = {claim.holder.task.name: claim for claim in claims}
    for group in simultaneous(map(missed_beat, by_name.values())):
        yield [by_name[one.name] for one in group]


def _moments(model: KnownBoard, stale: dict[str, HeldClaim]) -> Iterator[Cause]:
    for group in simultaneous(missed_beat(claim) for claim in stale.values()):
        hosts = sorted({one.host for one in group})
        if len(group) >= MANY and beyond_one_host(group):
            part = [stale[one.name] for one in group]
            found = _cause(model, "moment", f"{len(hosts):,} hosts", "same time", part)
            names = ", ".join(host or "—" for host in hosts[:3])
            more = f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else ""
            key = f"moment/{group[0].beat}"
            word = f"{MOMENT}{clock(max(one.beat for one in group))}"
            yield found._replace(key=key, terms=word, reason=f"{found.reason}: {names}{more}")


def _cause(
    model: KnownBoard,
    kind: str,
    what: str,
    word: str,
    part: list[HeldClaim],
    others: Others = _NONE,
) -> Cause:
    names = tuple(claim.holder.task.name for claim in part)
    beats = [claim.holder.beat for claim in part]
    age = short((model.now.fs - min(beats)) / _SECOND)
    verdicts = Counter(model.stale[name].upper() for name in names)
    evidence = ", ".join(v if n == len(names) else f"{n:,} {v}" for v, n in verdicts.most_common())
    besides = f", {text}" if (text := others.text(model.now.fs)) else ""
    exited = set(verdicts) == {Verdict.DEAD.upper()}
    count = f"{len(names):,} processes exited" if exited else counted(len(names), "claim")
    count = f"all {len(names):,} claims stopped beating" if word == "all stale" else count
    since = clock(max(beats))
    reason = f"{evidence} · {count} · oldest {age} · since {since}{besides}"
    return Cause(f"{kind}/{what}", what, word, reason, terms(kind, what), names)
