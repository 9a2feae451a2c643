"""Read the journals of all hosts: forwards as a stream, backwards as needed, or what is new."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush, heapreplace, merge
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from dibs.files import journal_chain
from dibs.files.journal_chain import APART, MOST, Chain, forwards, parsed, quoted
from dibs.files.journal_files import FOLDER, LONG, current, number, place
from dibs.model.events import FORMER_VERBS, ROTATED, Event, parse
from dibs.model.rates import LEAST, Rates

if TYPE_CHECKING:
    from dibs.files.clock import Clock
    from dibs.files.port import Port, Stat

_BEHIND = 120
"""Seconds by which a file's mtime may lag behind its content, because clients cache it."""
_SETTLED = 3.0
"""Seconds after which a folder's mtime is certain to show every later change."""
_EARLY = 60.0
"""Seconds by which a writer's clock may be behind that of the process that added the id."""
_OLDER = 1000
"""So many older lines in a row end the search for newer ones: a few may have wrong times."""
_READS = 3
_SPARE = 40
"""Listing many files, or checking those that are not written to, may take 1/40 of the time."""
_RARE = 160
"""The same with 1/160, for what hardly ever changes: listing a folder with an unchanged mtime, and
files that were not written to for a week, which belong to hosts that are gone."""
_WEEK = 7 * 86_400
_FEW = 100
"""Up to so many files are always checked by opening them."""
_AT_ONCE = 32 << 20
"""Bytes of the pieces of all files together, if many are read in parallel."""
_COUNTED = 512 << 20
"""Bytes of all journals together that rates are computed from: about two million lines."""
_find_lines = re.compile(
    rb'^\{"at": (\d{1,10}(?:\.\d{1,9})?), "verb": "([a-z-]+)", "id": ".*\}$', re.MULTILINE
).findall

_find_changes = re.compile(
    rb'^\{"at": (\d{1,10}(?:\.\d{1,9})?), "verb": "([a-z-]+)", "id": "(?:[^"\\]|\\.)*", '
    rb'"src": "([^"\\]*)", "dst": "([^"\\]*)", '
    rb'"by": "((?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){1,2000})", "reason": ".*\}$',
    re.MULTILINE,
).findall
_WAITING = (b".available", b".later")


class JournalReader:
    """The journals of a board, as one process reads them."""

    def __init__(self, port: Port, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._listing: tuple[int, list[str]] | None = None
        self._awake: set[str] = set()
        self._asleep: set[str] = set()
        self._known: tuple[list[str], dict[str, int]] | None = None
        """A listing and the `seen` that has all of its files, so it need not be compared again."""
        self._all_due = self._asleep_due = self._list_due = 0

    def files(self) -> list[str]:
        """Every journal file; those of one boot and mount from the oldest to the newest."""
        try:
            return self._files()
        except OSError:
            return []

    def _files(self) -> list[str]:
        try:
            names = self._port.names(FOLDER)
        except FileNotFoundError:
            return []
        return sorted((f"{FOLDER}/{name}" for name in names), key=place)

    def _chains(self, files: Iterable[str]) -> list[Chain]:
        return [Chain(self._port, list(found)) for _, found in groupby(files, current)]

    def oldest_first(
        self, ident: str | None = None, upto: Mapping[str, int] | None = None
    ) -> Iterator[Event]:
        """All events, or those of one id, as a stream; with `upto`, only up to those offsets."""
        chains = self._chains(self.files() if upto is None else sorted(upto, key=place))
        piece = max(4096, min(journal_chain.PIECE, _AT_ONCE // max(1, len(chains))))
        streams = [_placed(chain.events(ident, piece, upto)) for chain in chains]
        return map(itemgetter(1), merge(*streams, key=itemgetter(0)))

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        upto: Mapping[str, int] | None = None,
        since: float = 0.0,
    ) -> Iterator[Event]:
        """All events, or those of one id or these verbs; each file is read only as far as needed.

        A file is opened only when the merge reaches its mtime. For one id the search ends at the
        beginning of its first life.
        """
        former = [old for old, verb in FORMER_VERBS.items() if verb in verbs]
        wanted = [quoted(ident)] if ident is not None else [*map(quoted, (*verbs, *former))]
        chains = self._chains(self.files() if upto is None else sorted(upto, key=place))
        pending = [
            (stat.mtime / 1e9 + _BEHIND, n, chain.back(wanted, upto))
            for n, chain in enumerate(chains)
            if (stat := chain.newest()) is not None and stat.mtime / 1e9 + _BEHIND >= since
        ]
        pending.sort()
        heap: list[tuple[float, int, Event | None, Iterator[tuple[float, Event | None]]]] = []
        begun = -inf
        while pending or heap:
            while pending and (not heap or pending[-1][0] >= -heap[0][0]):
                _, n, stream = pending.pop()
                if (found := next(stream, None)) is not None:
                    heappush(heap, (-found[0], n, found[1], stream))
            if not heap or -heap[0][0] < begun - _EARLY:
                return
            _, n, event, stream = heap[0]
            if event is not None and _fits(event, ident, verbs):
                yield event
                begun = event.at if ident is not None and _begins(event) else begun
            if (found := next(stream, None)) is not None:
                heapreplace(heap, (-found[0], n, found[1], stream))
            else:
                heappop(heap)

    def read(self, ident: str | None = None) -> list[Event]:
        """All events, or those of one id, in the order of their times."""
        return in_order(
            chain.events(ident, journal_chain.PIECE, None) for chain in self._chains(self.files())
        )

    def recent(
        self, since: float, most: int | None = None, upto: Mapping[str, int] | None = None
    ) -> list[Event]:
        """The events since a time, or the last `most` of them, in the order of their times."""
        found: list[Event] = []
        older = 0
        for event in self.newest_first(upto=upto, since=since):
            older = 0 if event.at >= since else older + 1
            if older > _OLDER or len(found) == most:
                break
            if not older:
                found.append(event)
        return found[::-1]

    def lines_back(self, verbs: Collection[str], since: float, most: int) -> Iterator[bytes]:
        """The lines of these verbs, newest first, back to a time; reads at most so many bytes."""
        wanted = [b'"verb": ' + quoted(verb) for verb in verbs]
        dated = [(chain.newest(), chain) for chain in self._chains(self.files())]
        awake = [
            (stat.mtime, n, chain)
            for n, (stat, chain) in enumerate(dated)
            if stat is not None and stat.mtime / 1e9 >= since - _BEHIND
        ]
        found: list[tuple[float, bytes]] = []
        for _, _, chain in sorted(awake, reverse=True):
            if most <= 0:
                break
            for block in chain.blocks(None, most):
                lines = block.split(b"\n") if any(verb in block for verb in wanted) else []
                for line in reversed(lines):
                    if any(verb in line for verb in wanted) and (event := parse(line)) is not None:
                        found.append((event.at, line))
                first = parse(block[: block.find(b"\n")])
                if first is not None and first.at < since - _BEHIND:
                    break
            most -= chain.taken
        return (line for _, line in sorted(found, key=itemgetter(0), reverse=True))

    def rates(
        self, since: float, upto: Mapping[str, int] | None = None, *, owners: bool = False
    ) -> Rates:
        """How much has happened since a time; reads backwards up to that time.

        With `owners` it is also counted who ended claims, and which states tasks entered.
        """
        rates, found = Rates(), _Reached()
        try:
            files = self._files() if upto is None else sorted(upto, key=place)
        except OSError:
            files, rates.complete = [], False
        left = _COUNTED
        chains = [(chain, chain.newest()) for chain in self._chains(files)]
        # Short files first, so that an invalid long one does not keep the others from counting.
        for chain, stat in sorted(chains, key=lambda c: c[1].size if c[1] else 0):
            if stat is not None and stat.mtime / 1e9 < since - _BEHIND:
                found.older = found.older or stat.size > 0
            elif left > 0:
                _count(chain, since, upto, rates, found, left, owners=owners)
                left -= chain.taken
            else:
                rates.complete = False
            rates.complete = rates.complete and not chain.unread
        rates.begins = found.begins()
        newest = max((max(s) for s in rates.seconds.values() if s), default=0)
        if found.cut and newest - max(found.cut) < LEAST:
            rates.complete = False  # so short a span says nothing about ten minutes
        return rates

    def follow(self, seen: dict[str, int], most: int | None = None) -> list[Event]:
        """The events written since `seen`, the offset of each file, which is updated.

        With `most`, reading ends after the piece with which there are so many.
        """
        new: dict[str, list[Event]] = {}
        for _ in range(_READS):
            files = self._listed()
            known = self._known is not None and self._known[0] is files and self._known[1] == seen
            if not known:
                self._awake.update(move_on(seen, files))
                self._awake.intersection_update(files)
                self._asleep.intersection_update(files)
            again = self._read_on(files, seen, new, known, most)
            if not again:
                self._known = files, seen
                break
            self._listing = self._known = None  # a file was rotated after the listing
        return in_order(new.values())

    def _listed(self) -> list[str]:
        """The files, listed again if the folder's mtime changed, and at intervals."""
        try:
            start, mtime = self._port.boottime(), self._port.stat(FOLDER).mtime
            if self._listing is None or self._listing[0] != mtime or start >= self._list_due:
                files = self._files()
                settled = mtime / 1e9 < self._clock.about() - _SETTLED
                self._listing = (mtime, files) if settled else None
                self._list_due = self._rested(start, _RARE)
                return files
        except OSError:
            return []
        return self._listing[1]

    def _rested(self, start: int, spare: int) -> int:
        """When work that began at `start` may be repeated without using much of a core."""
        now = self._port.boottime()
        return now + spare * (now - start)

    def _read_on(
        self,
        files: list[str],
        seen: dict[str, int],
        new: dict[str, list[Event]],
        known: bool,
        most: int | None,
    ) -> bool:
        """Read what is new; True if a file was rotated in the meantime and was not read.

        Files that are not written to are checked less often, the more of them there are.
        """
        start = self._port.boottime()
        every = start >= self._all_due
        rare = every and start >= self._asleep_due
        if rare:
            due = files
        elif every:
            due = [f for f in files if f not in seen or f not in self._asleep]
        elif known:
            due = sorted(self._awake)
        else:
            due = [f for f in files if f not in seen or f in self._awake]
        grown: list[tuple[str, int]] = []
        quiet = self._clock.about() - _BEHIND
        for file in due:
            stat = self._look(file, fresh=len(files) <= _FEW or file in self._awake)
            if stat is None:
                seen.setdefault(file, 0)  # known now, so it does not count as rotated later
                continue
            if stat.mtime / 1e9 >= quiet:
                self._awake.add(file)
                self._asleep.discard(file)
            elif every:
                self._awake.discard(file)
                if stat.mtime / 1e9 < quiet - _WEEK and len(files) > _FEW:
                    self._asleep.add(file)
            if stat.size != seen.get(file):
                grown.append((file, stat.size))
        if every:
            self._all_due = self._rested(start, _SPARE)
            self._asleep_due = self._rested(start, _RARE) if rare else self._asleep_due
        hosts = {current(file) for file, _ in grown}
        kin = self._chains(file for file in files if current(file) in hosts) if hosts else ()
        chains = {chain.files[-1]: chain for chain in kin}
        moved = [
            file
            for file, size in grown
            if self._read_one(file, size, chains.get(file), seen, new, most)
        ]
        return bool(moved)

    def _look(self, file: str, *, fresh: bool) -> Stat | None:
        """The `lstat` of a file; `fresh` opens it, because network clients cache times."""
        try:
            return self._port.read(file, 0)[1] if fresh else self._port.stat(file)
        except OSError:
            return None

    def _read_one(
        self,
        file: str,
        size: int,
        chain: Chain | None,
        seen: dict[str, int],
        new: dict[str, list[Event]],
        most: int | None,
    ) -> bool:
        """Read on in one file; True if it was rotated in the meantime instead."""
        left = most - sum(map(len, new.values())) if most is not None else inf
        if left <= 0:
            seen.setdefault(file, 0)
            self._all_due = self._asleep_due = 0  # the rest of it is due at once
            return False
        start = seen.get(file, 0)
        start = start if start <= size else 0  # else it was replaced or truncated
        found: list[Event] = []
        end = max(start, size - MOST)
        for reached, lines in forwards(self._port.read, file, end, journal_chain.PIECE):
            end = reached
            found += parsed(lines)
            if len(found) >= left:
                self._all_due = self._asleep_due = 0
                break
        if chain is not None and chain.rotated():
            return True  # what was read may be from the middle of the next file
        seen[file] = end
        new.setdefault(current(file), []).extend(found)
        return False

    def missed(self, seen: Mapping[str, int]) -> bool:
        """Whether files were removed that `seen` has not reached the end of, or does not know."""
        files = self.files()
        for chain, found in groupby(sorted(seen, key=place), current):
            known = list(found)
            rotated = [number(file) for file in files if file != chain == current(file)]
            last = max((number(file) for file in known if file != chain), default=0)
            newer = [n for n in rotated if n > last]
            if chain in seen and newer and min(newer) != last + 1:
                return True
            if any(file not in files and seen[file] < LONG for file in known if file != chain):
                return True
        return False

    def ends(self) -> dict[str, int]:
        """The length of every file now; with these, `follow` returns only new events."""
        found = {}
        for file in self.files():
            with suppress(OSError):
                found[file] = self._port.stat(file).size
        return found

    def torn(self) -> list[str]:
        """The files whose last line is incomplete: its writer died, or is writing now."""
        torn = []
        for file in self.files():
            with suppress(OSError):
                size = self._port.stat(file).size
                if size and self._port.read(file, 1, size - 1)[0] not in (b"", b"\n"):
                    torn.append(file)
        return torn

    def overlong(self) -> list[tuple[str, int]]:
        """The files so long that only their newest part is read, with their sizes."""
        found = []
        for file in self.files():
            with suppress(OSError):
                stat = self._port.stat(file)
                if stat.regular and stat.size > MOST:
                    found.append((file, stat.size))
        return found


class _Reached:
    """How far back the journals were found to reach."""

    def __init__(self) -> None:
        self.older = False
        """Whether some contain lines from before the requested time."""
        self.firsts: list[float] = []
        self.cut: list[float] = []
        """The times of the first lines of journals from which older lines were removed."""

    def begins(self) -> float | None:
        """Since when every event was counted; None if that is all of the requested time."""
        if self.cut:
            return max(self.cut)
        return None if self.older else min(self.firsts, default=inf)


def _count(
    chain: Chain,
    since: float,
    upto: Mapping[str, int] | None,
    rates: Rates,
    found: _Reached,
    most: int,
    *,
    owners: bool,
) -> None:
    """Count one chain's events since a time, and find out how far back it reaches."""
    first: tuple[float, str] | None = None
    for block in chain.blocks(upto, most):
        lines = times(block)
        new = 0
        for at, verb in lines:
            if at >= since:
                rates.note(verb, at)
                new += 1
        if owners and new:
            _count_changes(block, since, rates)
        found.older = found.older or new < len(lines)
        if lines and not new:
            return
        first = lines[0] if lines else first
    if first is None:
        rates.complete = rates.complete and not chain.cut
    else:
        (found.cut if chain.cut or first[1] == ROTATED else found.firsts).append(first[0])


def _count_changes(lines: bytes, since: float, rates: Rates) -> None:
    """Count who ended claims, and which states tasks entered, in the lines that dibs wrote."""
    for at, verb, src, dst, owner in _find_changes(lines):
        if float(at) < since:
            continue
        if verb in (b"done", b"fail"):
            text = owner.decode("ascii", "replace")
            rates.note_end(
                verb.decode(), json.loads(f'"{text}"') if "\\" in text else text, float(at)
            )
        if src.endswith(_WAITING) or dst.endswith(_WAITING) or b"failed/" in (src[:7], dst[:7]):
            names = src.decode("ascii", "replace"), dst.decode("ascii", "replace")
            rates.note_move(verb.decode(), *names, float(at))


def times(lines: bytes) -> list[tuple[float, str]]:
    """The time and verb of each line; lines that dibs wrote are not parsed as JSON."""
    found = _find_lines(lines)
    if len(found) == lines.count(b"\n"):
        return [(float(at), verb.decode()) for at, verb in found]
    return [(event.at, event.verb) for event in parsed(lines)]


def _begins(event: Event) -> bool:
    """Whether the event begins the first life of an id: later lives begin with a higher fence."""
    task = event.after if event.verb == "add" else None
    return task is not None and task.fence == 0


def _fits(event: Event, ident: str | None, verbs: Collection[str]) -> bool:
    return ident in (None, event.id) and (not verbs or event.verb in verbs)


def move_on(seen: dict[str, int], files: Sequence[str]) -> list[str]:
    """Transfer the offsets of rotated files from their old to their new names."""
    moved = []
    new = [file for file in files if file not in seen]
    for chain, found in groupby(new, current):
        first = next(found)
        if first == chain or chain not in seen:
            continue
        known = max((number(file) for file in seen if file != chain == current(file)), default=0)
        end = seen.pop(chain)
        if number(first) == known + 1:  # else it is among the removed files
            seen[first] = end
            moved.append(first)
    return moved


def _placed(events: Iterable[Event]) -> Iterator[tuple[float, Event]]:
    """The events of one file with the times for merging, which keep the order of the lines.

    Each process estimates the time itself, so with a coarse clock they may be seconds apart.
    """
    at = 0.0
    for event in events:
        at = event.at if at - event.at > APART else max(at, event.at)
        yield at, event


def in_order(files: Iterable[Iterable[Event]]) -> list[Event]:
    """The events of several files by time; those of one file keep the order of its lines."""
    placed = [entry for events in files for entry in _placed(events)]
    return [event for _, event in sorted(placed, key=itemgetter(0))]
