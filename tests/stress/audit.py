"""The verdict on a storm, from three sources: the listing, the journal and the outside log."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from dibs.model.events import Event
from dibs.model.names import read_ended
from tests.stress import ledger as log
from tests.stress.crew import payload_of
from tests.stress.ledger import Line

NEARLY = 0.99
"""The share of a ttl that must have passed: file times tick in steps of some milliseconds."""
ENDINGS = ("done", "fail", "release", "reap", "force-release", "park")


class Verdict(NamedTuple):
    """The result for every task, and every fault."""

    tasks: int
    done: int
    lost: int
    twice: int
    live_reaped: int
    faults: tuple[str, ...]
    """One line for each broken guarantee, including those counted above."""
    figures: dict[str, int]


def stem_of(claimed: str) -> str:
    """The claim of a name on the board."""
    return claimed.removesuffix(".claimed")


def ident_of(stem: str) -> str:
    return stem.partition(".")[0]


def fence_of(stem: str) -> int:
    task = read_ended("done", stem)
    assert task is not None, stem
    return task.fence


def judge(
    where: Path,
    ids: Sequence[str],
    events: Sequence[Event],
    lines: Sequence[Line],
    ttl: float,
    stale: float = 0.0,
) -> Verdict:
    """Judge the board after every process has ended.

    `stale`: the seconds after which one mount shows the beats made over another.
    """
    places = listing(where)
    done = {
        os.path.basename(name) for names in places.values() for name in names if "done/" in name
    }
    lost = [f"{i} is lost" for i in ids if not places.get(i)]
    twice = [f"{i} was committed twice: {', '.join(s)}" for i, s in commits(done, events, lines)]
    reaped = list(live_claims_reaped(events, lines, NEARLY * ttl - stale))
    others = [
        *(f"{i} has two names: {', '.join(n)}" for i, n in places.items() if len(n) > 1),
        *(f"{i} was never added" for i in places.keys() - set(ids)),
        *spoilt(where, places),
        *fences(events, lines),
        *two_endings(events),
        *broken_words(done, lines),
    ]
    return Verdict(
        len(ids),
        len(done),
        len(lost),
        len(twice),
        len(reaped),
        (*lost, *twice, *reaped, *others),
        figures(events, lines),
    )


def listing(where: Path) -> dict[str, list[str]]:
    """Maps each id to its names on the board."""
    places: dict[str, list[str]] = defaultdict(list)
    for folder in ("", "done/", "failed/"):
        for name in os.listdir(where / folder):
            if name not in (".dibs", "done", "failed") and not name.endswith(".lock"):
                places[ident_of(name)].append(folder + name)
    return places


def spoilt(where: Path, places: dict[str, list[str]]) -> Iterator[str]:
    """Payloads that differ from what was added."""
    for ident, found in places.items():
        for name in found:
            data = (where / name).read_bytes()
            if data != payload_of(ident):
                yield f"{name} holds {data[:80]!r}"


def commits(
    done: Iterable[str], events: Iterable[Event], lines: Iterable[Line]
) -> Iterator[tuple[str, list[str]]]:
    """Ids with more than one commit, from any source."""
    stems = {*done}
    stems |= {os.path.basename(event.dst) for event in events if event.verb == "done"}
    stems |= {line.name for line in lines if line.word == log.DONE}
    by_id: dict[str, list[str]] = defaultdict(list)
    for stem in sorted(stems):
        by_id[ident_of(stem)].append(stem)
    return ((ident, found) for ident, found in by_id.items() if len(found) > 1)


def fences(events: Iterable[Event], lines: Sequence[Line]) -> Iterator[str]:
    """Fences that were granted twice, or that did not grow with time.

    The order is that of the lines in the outside log: a claim began after the line that announces
    its rename, and before the line in which its worker relies on it. The times only bound it.
    """
    tried: dict[str, int] = {}
    begun: dict[str, int] = {}
    for at, line in enumerate(lines):
        if line.word == log.LIVE:
            begun.setdefault(line.name, at)
        elif line.word == log.TRY:
            tried.setdefault(stem_of(line.more), at)
    granted = {stem_of(event.dst) for event in events if event.verb == "claim"}
    holders: dict[tuple[str, int], set[str]] = defaultdict(set)
    for stem in granted | begun.keys():
        holders[ident_of(stem), fence_of(stem)].add(stem)
    by_id: dict[str, list[str]] = defaultdict(list)
    for (ident, fence), stems in holders.items():
        if len(stems) > 1:
            yield f"fence {fence} of {ident} was granted to {' and '.join(sorted(stems))}"
        by_id[ident] += stems & begun.keys()
    for later, earlier in (pair for stems in by_id.values() for pair in permutations(stems, 2)):
        if begun[earlier] < tried.get(later, 0) and fence_of(earlier) >= fence_of(later):
            yield f"{later} began after {earlier}"


def two_endings(events: Iterable[Event]) -> Iterator[str]:
    """Claims with two different endings; two janitors may both report one rename."""
    ends: dict[str, set[str]] = defaultdict(set)
    for event in events:
        if event.verb in ENDINGS and ".claimed" in event.src:
            ends[event.src].add(event.dst)
    return (f"{src} became {' and '.join(dsts)}" for src, dsts in ends.items() if len(dsts) > 1)


def broken_words(done: set[str], lines: Sequence[Line]) -> Iterator[str]:
    """Workers whose results contradict the board."""
    intents = {line.name: line.pid for line in lines if line.word == log.INTENT}
    results = {
        word: {line.name for line in lines if line.word == word}
        for word in (log.DONE, log.LOST, log.UNCERTAIN, log.GIVEN)
    }
    killed = {line.pid for line in lines if line.word == log.KILLED}
    highest: dict[str, int] = {}
    for line in lines:
        if line.word == log.LIVE:
            ident = ident_of(line.name)
            highest[ident] = max(highest.get(ident, 0), fence_of(line.name))
    for stem in results[log.DONE] - done:
        yield f"{stem} was reported done, and is not"
    for stem in results[log.LOST] & done:
        yield f"{stem} was reported lost while its commit exists"
    for stem in done:
        if stem not in intents:
            yield f"{stem} is done, and no worker tried to commit it"
        elif stem not in results[log.DONE] | results[log.UNCERTAIN] and intents[stem] not in killed:
            yield f"{stem} is done, and its worker got no result"
        if fence_of(stem) < highest.get(ident_of(stem), 0):
            yield f"{stem} is done, and was claimed again since"
    for stem in intents.keys() - done - results[log.LOST] - results[log.UNCERTAIN]:
        if intents[stem] not in killed:
            yield f"{stem} was committed, its worker lives, and got no result"


def live_claims_reaped(
    events: Iterable[Event], lines: Sequence[Line], least: float
) -> Iterator[str]:
    """Reaps that came too soon after the claim or after a beat that succeeded."""
    tries: dict[tuple[str, str], list[Line]] = defaultdict(list)
    beats: dict[str, list[int]] = defaultdict(list)
    holder: dict[str, int] = {}
    killed = {line.pid: line.boot for line in lines if line.word == log.KILLED}
    for line in lines:
        if line.word == log.TRY:
            tries[line.name, line.more].append(line)
        if line.word == log.LIVE or (line.word == log.TRY and line.name.endswith(".available")):
            stem = stem_of(line.more if line.word == log.TRY else line.name)
            beats[stem].append(line.boot)
            holder[stem] = line.pid
    for src, dst in {(event.src, event.dst) for event in events if event.verb == "reap"}:
        stem = stem_of(src)
        if not tries[src, dst]:
            yield f"{src} was reaped by no known process"
            continue
        # A holder that fails its claim tries the same rename, and may be killed before it happens.
        others = [line for line in tries[src, dst] if line.pid != holder.get(stem)]
        reaped = min(line.boot for line in others or tries[src, dst])
        known = ".known-" in stem
        if known and killed.get(holder.get(stem, 0), reaped + 1) <= reaped:
            continue
        age = (reaped - max(beats[stem], default=0)) / 1e9
        if age < least:
            yield f"{src} was reaped {age:.3f} s after a good beat"


def figures(events: Sequence[Event], lines: Sequence[Line]) -> dict[str, int]:
    """How much happened: a storm without events proves nothing."""
    verbs = Counter(event.verb for event in events)
    words = Counter(line.word for line in lines)
    shown = {verb: verbs[verb] for verb in ("claim", *ENDINGS, "requeue", "prioritize")}
    return shown | {
        "beats": words[log.LIVE] - len({line.name for line in lines if line.word == log.LIVE}),
        "reported lost": words[log.LOST],
        "reported uncertain": words[log.UNCERTAIN],
        "refused": sum(int(line.more) for line in lines if line.word == log.OPERATOR),
        "kills": words[log.KILLED],
        "stops": words[log.STOPPED],
    }
