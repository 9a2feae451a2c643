"""Why claims are silent: many of one moment, of one host or of one owner have one cause."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.ages import clock, counted, short
from dibs_tui.model.owners import Held, terms

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

MANY = 3
"""From so many claims on, their common silence has a common cause."""
MOMENT = "moment="
"""How a word for the claims of one moment begins: no filter term could tell them from others."""
_SECOND = 1_000_000_000
_LEAST = 2 * _SECOND
_STRAY = 2
"""From so many claims on other hosts on, it is no single host that stopped."""
_PART = 3
"""A worker of dibs beats so often within its ttl."""


class Silence(NamedTuple):
    """A claim that fell silent at some time within one beat period after it was last heard."""

    beat: int
    """When it was last heard of, in nanoseconds of the board's clock."""
    until: int
    """When it would have been heard of again."""
    host: str
    name: str
    """The exact name."""


class Cause(NamedTuple):
    """One thing that many claims are silent for."""

    key: str
    what: str
    """The host, the owner, or how many hosts; not cleaned."""
    word: str
    reason: str
    """When, how many, how long, and by what evidence; not cleaned."""
    terms: str
    """The filter that shows them, or a word of `MOMENT` for exactly these."""
    claims: tuple[str, ...]
    """Their exact names."""


def silence(claim: Held) -> Silence:
    """Between which two times it fell silent."""
    facts = claim.facts
    period = max(_LEAST, int(claim.cadence or facts.ttl * _SECOND / _PART))
    return Silence(facts.beat, facts.beat + period, claim.host, facts.task.name)


def together(silences: Iterable[Silence]) -> Iterator[list[Silence]]:
    """Those that can have fallen silent at one and the same time, a group for each such time."""
    found = sorted(silences)
    firsts = list(accumulate((silence.until for silence in reversed(found)), min))[::-1]
    start = 0
    while start < len(found):
        end = bisect_right(found, firsts[start], lo=start, key=lambda silence: silence.beat)
        yield found[start:end]
        start = end


def beyond_one_host(group: Iterable[Silence]) -> bool:
    """Whether it is more than one host that stopped, with a stray claim or two elsewhere."""
    hosts = Counter(silence.host for silence in group)
    return hosts.total() - max(hosts.values(), default=0) >= _STRAY


def causes(model: BoardModel, claims: Iterable[Held]) -> Iterator[Cause]:
    """What many of the silent claims have in common; a claim may have a moment and a host."""
    held = list(claims)
    alive = Counter(claim.host for claim in held if not claim.stale)
    stale = {claim.facts.task.name: claim for claim in held if claim.stale}
    yield from _moments(model, stale)
    hosts: dict[str, list[Held]] = {}
    owners: dict[str, list[Held]] = {}
    for claim in stale.values():
        hosts.setdefault(claim.host, []).append(claim)
    for host, part in hosts.items():
        if host and len(part) >= MANY:
            word = "silent" if alive[host] else "stopped"
            yield _cause(model, "host", host, word, part, beating=alive[host])
        else:
            for claim in part:
                owners.setdefault(claim.owner, []).append(claim)
    for owner, part in owners.items():
        if owner and len(part) >= MANY:
            yield _cause(model, "owner", owner, "silent", part)


def _moments(model: BoardModel, stale: dict[str, Held]) -> Iterator[Cause]:
    for group in together(silence(claim) for claim in stale.values()):
        hosts = sorted({one.host for one in group})
        if len(group) >= MANY and beyond_one_host(group):
            part = [stale[one.name] for one in group]
            found = _cause(model, "moment", f"{len(hosts):,} hosts", "together", part)
            told = ", ".join(host or "—" for host in hosts[:3])
            more = f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else ""
            key = f"moment/{group[0].beat}"
            word = f"{MOMENT}{clock(max(one.beat for one in group))}"
            yield found._replace(key=key, terms=word, reason=f"{found.reason}: {told}{more}")


def _cause(
    model: BoardModel, kind: str, what: str, word: str, part: list[Held], *, beating: int = 0
) -> Cause:
    names = tuple(claim.facts.task.name for claim in part)
    beats = [claim.facts.beat for claim in part]
    age = short((model.now.fs - min(beats)) / _SECOND)
    verdicts = Counter(model.stale[name].upper() for name in names)
    told = ", ".join(v if n == len(names) else f"{n:,} {v}" for v, n in verdicts.most_common())
    others = f", {counted(beating, 'other')} still beat" if beating > 1 else ""
    others = ", 1 other still beats" if beating == 1 else others
    reason = f"{clock(max(beats))} · {counted(len(names), 'claim')} · oldest {age} · {told}{others}"
    return Cause(f"{kind}/{what}", what, word, reason, terms(kind, what), names)
