"""The verdict on what workers relied on: their ledger against the journal of the board."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dibs.model.events import Event
from tests.postgres.actors import NOT_DONE, OK
from tests.stress import ledger as log
from tests.stress.audit import fence_of, ident_of
from tests.stress.ledger import Line, boottime

ENDS = ("done", "fail", "release", "ask")
"""The verbs with which a worker ends a claim."""
SLACK = 0.005
"""Seconds by which the two clocks of this machine may be read apart."""


def broken(events: Sequence[Event], lines: Sequence[Line], ttl: float) -> Iterator[str]:
    """Every promise to a worker that the board did not keep."""
    yield from unknown_claims(events, lines)
    yield from unknown_ends(events, lines)
    yield from late_acts(lines)
    yield from early_reaps(events, lines, ttl)


def unknown_claims(events: Iterable[Event], lines: Iterable[Line]) -> Iterator[str]:
    """Claims that a worker has and the journal lacks, or the other way round."""
    known = {line.name for line in lines if line.word == log.LIVE}
    doubts = sum(line.word == log.UNCERTAIN and line.name == "-" for line in lines)
    given = Counter(claimed(event) for event in events if event.verb == "claim")
    yield from (f"{name} was claimed {n} times" for name, n in given.items() if n > 1)
    yield from (f"{name} was given and is not in the journal" for name in known - given.keys())
    orphans = sorted(given.keys() - known)
    if len(orphans) > doubts:
        yield f"{len(orphans)} claims were given to no one: {', '.join(orphans[:3])}"


def claimed(event: Event) -> str:
    """The stem of the claim that an event made."""
    return event.after.stem if event.after is not None else ""


def ended(event: Event) -> str:
    """The stem of the claim that an event ended."""
    return event.before.stem if event.before is not None else ""


def unknown_ends(events: Iterable[Event], lines: Iterable[Line]) -> Iterator[str]:
    """Ends that were acknowledged and are not in the journal, or refused and are.

    The reaper may have failed a claim for the last time just before its worker did: its name is
    then the one that the worker wanted, and the worker is told that it failed.
    """
    ends = Counter((ended(e), e.verb) for e in events if e.verb in ENDS)
    buried = {ended(e) for e in events if e.verb == "reap" and e.dst.startswith("failed/")}
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in lines:
        if line.more in ENDS:
            said[line.name, line.more].add(line.word)
    for (name, verb), words in said.items():
        found = ends[name, verb]
        if OK in words and found != 1 and not (verb == "fail" and name in buried):
            yield f"{name}: {verb} was acknowledged and is {found} times in the journal"
        if words <= {log.LOST, NOT_DONE} and found:
            yield f"{name}: {verb} was not done, as its worker was told, and is in the journal"
    for (name, verb), found in ends.items():
        if not said[name, verb] & {OK, log.UNCERTAIN}:
            yield f"{name}: {verb} is {found} times in the journal, and no worker did it"


def late_acts(lines: Iterable[Line]) -> Iterator[str]:
    """Acts that succeeded although they began after another worker had a newer claim.

    A claim counts from when its worker had it, an act from when it began. An end may be repeated:
    it says again what it has done.
    """
    moments = [
        (int(line.more) if line.word == log.LIVE else line.boot, line)
        for line in lines
        if line.word in (log.LIVE, OK, log.UNCERTAIN) and line.name != "-"
    ]
    newest: dict[str, int] = {}
    before: set[tuple[str, str]] = set()
    for _, line in sorted(moments):
        ident, fence = ident_of(line.name), fence_of(line.name)
        if line.word == log.LIVE:
            newest[ident] = max(newest.get(ident, 0), fence)
            continue
        if (
            line.word == OK
            and fence < newest.get(ident, 0)
            and (line.name, line.more) not in before
        ):
            yield f"{line.name}: {line.more} succeeded after fence {newest[ident]} was given"
        if line.more in ENDS:
            before.add((line.name, line.more))


def early_reaps(events: Iterable[Event], lines: Iterable[Line], ttl: float) -> Iterator[str]:
    """Leases that were ended before their time."""
    offset = time.time() - boottime() / 1e9
    good: dict[str, float] = {}
    for line in lines:
        if line.word == log.LIVE or (line.word == OK and line.more == "beat"):
            good[line.name] = max(good.get(line.name, 0.0), line.boot / 1e9 + offset)
    for event in events:
        name = ended(event)
        if event.verb == "reap" and name in good:
            age = event.at - good[name]
            # A beat that came too late for this reap was refused, and one before it counts.
            if age < ttl - SLACK:
                yield f"{name} was reaped {age:.4f} s after a good beat"
