"""Reads the journals of everyone: forwards in a stream, backwards as far as is needed, or on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import heappop, heappush, heapreplace, merge
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from dibs import journal_chain
from dibs.journal import FOLDER, ROTATED, Event, current, number, place
from dibs.journal_chain import APART, MOST, Chain, forwards, parsed, quoted
from dibs.names import read_any
from dibs.rates import LEAST, Rates

if TYPE_CHECKING:
    from dibs.clock import Clock
    from dibs.disk import Port, Stat

_BEHIND = 120
"""Seconds by which a file's time may lag behind what was written into it, as clients remember."""
_SETTLED = 3.0
"""Seconds after which a folder's time shows every change of it that comes later."""
_EARLY = 60.0
"""Seconds by which a writer's reckoning of the time may be behind that of whoever added the id."""
_OLDER = 1000
"""So many older lines in a row end the search for newer ones: a few may have a wrong time."""
_READS = 3
_SPARE = 40
"""Listing many files, or looking at those that no one writes to, may take one part in so many of
the time."""
_RARE = 160
"""The same for what hardly ever changes: a listing whose folder has the same time, and files that
no one has written to for a week, which are those of hosts that are gone."""
_WEEK = 7 * 86_400
_FEW = 100
"""So many files are always looked at by opening them."""
_AT_ONCE = 32 << 20
"""Bytes of pieces of all files together, where many are read side by side."""
_COUNTED = 512 << 20
"""Bytes of all journals together that rates are counted from: some two million lines."""
_find_lines = re.compile(
    rb'^\{"at": (\d{1,10}(?:\.\d{1,9})?), "verb": "([a-z-]+)", "id": ".*\}$', re.MULTILINE
).findall


class JournalReader:
    """The journals of a board, as one process reads them."""

    def __init__(self, port: Port, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._listing: tuple[int, list[str]] | None = None
        self._awake: set[str] = set()
        self._asleep: set[str] = set()
        self._known: tuple[list[str], dict[str, int]] | None = None
        """The listing of which every file is in that `seen`: looked through no more."""
        self._all_due = self._asleep_due = self._list_due = 0

    def files(self) -> list[str]:
        """Every journal file there is; of one boot and mount the oldest first."""
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
        self, ident: str | None = None, upto: dict[str, int] | None = None
    ) -> Iterator[Event]:
        """All events, or those of one id, as a stream; of the files in `upto` as far as that."""
        chains = self._chains(self.files() if upto is None else sorted(upto, key=place))
        piece = max(4096, min(journal_chain.PIECE, _AT_ONCE // max(1, len(chains))))
        streams = [_placed(chain.events(ident, piece, upto)) for chain in chains]
        return map(itemgetter(1), merge(*streams, key=itemgetter(0)))

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        upto: dict[str, int] | None = None,
        since: float = 0.0,
    ) -> Iterator[Event]:
        """All events, or those of one id or these verbs, each file read only as far as needed.

        A file that was last written before the event that is wanted next is not even opened, and
        nothing of an id is looked for that would be older than its first life.
        """
        wanted = [quoted(ident)] if ident is not None else [quoted(verb) for verb in verbs]
        chains = self._chains(self.files() if upto is None else sorted(upto, key=place))
        waiting = [
            (stat.mtime / 1e9 + _BEHIND, n, chain.back(wanted, upto))
            for n, chain in enumerate(chains)
            if (stat := chain.newest()) is not None and stat.mtime / 1e9 + _BEHIND >= since
        ]
        waiting.sort()
        heap: list[tuple[float, int, Event | None, Iterator[tuple[float, Event | None]]]] = []
        begun = -inf
        while waiting or heap:
            while waiting and (not heap or waiting[-1][0] >= -heap[0][0]):
                _, n, stream = waiting.pop()
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
        self, since: float, most: int | None = None, upto: dict[str, int] | None = None
    ) -> list[Event]:
        """The events since a time, or the last of them, in the order of their times."""
        found: list[Event] = []
        older = 0
        for event in self.newest_first(upto=upto, since=since):
            older = 0 if event.at >= since else older + 1
            if older > _OLDER or len(found) == most:
                break
            if not older:
                found.append(event)
        return found[::-1]

    def rates(self, since: float, upto: dict[str, int] | None = None) -> Rates:
        """How much happened since a time: read backwards, as far as that time reaches."""
        rates, found = Rates(), _Reached()
        try:
            files = self._files() if upto is None else sorted(upto, key=place)
        except OSError:
            files, rates.complete = [], False
        left = _COUNTED
        chains = [(chain, chain.newest()) for chain in self._chains(files)]
        # The short ones first, lest a foul one keeps the others from being counted.
        for chain, stat in sorted(chains, key=lambda c: c[1].size if c[1] else 0):
            if stat is not None and stat.mtime / 1e9 < since - _BEHIND:
                found.older = found.older or stat.size > 0
            elif left > 0:
                _count(chain, since, upto, rates, found, left)
                left -= chain.taken
            else:
                rates.complete = False
            rates.complete = rates.complete and not chain.unread
        rates.begins = found.begins()
        newest = max((max(s) for s in rates.seconds.values() if s), default=0)
        if found.cut and newest - max(found.cut) < LEAST:
            rates.complete = False  # so short a time says nothing of ten minutes
        return rates

    def follow(self, seen: dict[str, int]) -> list[Event]:
        """The events written since; `seen` holds how far each file was read and is moved on."""
        told: dict[str, list[Event]] = {}
        for _ in range(_READS):
            files = self._listed()
            known = self._known is not None and self._known[0] is files and self._known[1] is seen
            if not known:
                self._awake.update(_move_on(seen, files))
                self._awake.intersection_update(files)
                self._asleep.intersection_update(files)
            again = self._read_on(files, seen, told, known)
            if not again:
                self._known = files, seen
                break
            self._listing = self._known = None  # one was set aside since the folder was listed
        return in_order(told.values())

    def _listed(self) -> list[str]:
        """The files; listed again where the folder's time changed, and now and then."""
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
        """When what has been done since then may be done again, lest it takes much of a core."""
        now = self._port.boottime()
        return now + spare * (now - start)

    def _read_on(
        self, files: list[str], seen: dict[str, int], told: dict[str, list[Event]], known: bool
    ) -> bool:
        """Read what was written since; whether a file was set aside meanwhile, and was not read.

        Files that no one writes to are looked at ever more seldom, the more of them there are.
        """
        start = self._port.boottime()
        whole = start >= self._all_due
        rare = whole and start >= self._asleep_due
        if rare:
            due = files
        elif whole:
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
                seen.setdefault(file, 0)  # it is known: no file was set aside under this name
                continue
            if stat.mtime / 1e9 >= quiet:
                self._awake.add(file)
                self._asleep.discard(file)
            elif whole:
                self._awake.discard(file)
                if stat.mtime / 1e9 < quiet - _WEEK and len(files) > _FEW:
                    self._asleep.add(file)
            if stat.size != seen.get(file):
                grown.append((file, stat.size))
        if whole:
            self._all_due = self._rested(start, _SPARE)
            self._asleep_due = self._rested(start, _RARE) if rare else self._asleep_due
        hosts = {current(file) for file, _ in grown}
        kin = self._chains(file for file in files if current(file) in hosts) if hosts else ()
        chains = {chain.files[-1]: chain for chain in kin}
        moved = [
            file for file, size in grown if self._read_one(file, size, chains.get(file), seen, told)
        ]
        return bool(moved)

    def _look(self, file: str, *, fresh: bool) -> Stat | None:
        """What is known of a file; a fresh look opens it, as clients of a network remember."""
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
        told: dict[str, list[Event]],
    ) -> bool:
        """Read on in one file; whether it was set aside meanwhile instead."""
        start = seen.get(file, 0)
        start = start if start <= size else 0  # else it is another by now, or was cut
        found: list[Event] = []
        end = max(start, size - MOST)
        for reached, lines in forwards(self._port.read, file, end, journal_chain.PIECE):
            end = reached
            found += parsed(lines)
        if chain is not None and chain.set_aside():
            return True  # what was read may be the middle of the file that came after it
        seen[file] = end
        told.setdefault(current(file), []).extend(found)
        return False

    def ends(self) -> dict[str, int]:
        """How long every file is now: where `follow` begins who wants only what comes."""
        found = {}
        for file in self.files():
            with suppress(OSError):
                found[file] = self._port.stat(file).size
        return found

    def torn(self) -> list[str]:
        """The files whose last line is not whole: somebody died, or is writing now."""
        torn = []
        for file in self.files():
            with suppress(OSError):
                size = self._port.stat(file).size
                if size and self._port.read(file, 1, size - 1)[0] not in (b"", b"\n"):
                    torn.append(file)
        return torn

    def overlong(self) -> list[tuple[str, int]]:
        """The files of which only the newest part is read, with their sizes."""
        found = []
        for file in self.files():
            with suppress(OSError):
                stat = self._port.stat(file)
                if stat.regular and stat.size > MOST:
                    found.append((file, stat.size))
        return found


class _Reached:
    """How far back the journals were seen to reach."""

    def __init__(self) -> None:
        self.older = False
        """Some hold lines from before the time that was asked for."""
        self.firsts: list[float] = []
        self.cut: list[float] = []
        """The first lines of those from which older ones were removed."""

    def begins(self) -> float | None:
        """Since when every event was counted; None where that is all of the time asked for."""
        if self.cut:
            return max(self.cut)
        return None if self.older else min(self.firsts, default=inf)


def _count(
    chain: Chain,
    since: float,
    upto: dict[str, int] | None,
    rates: Rates,
    found: _Reached,
    most: int,
) -> None:
    """Count one chain's events since a time, and find out how far back it reaches."""
    first: tuple[float, str] | None = None
    for block in chain.blocks(upto, most):
        lines = _times(block)
        new = 0
        for at, verb in lines:
            if at >= since:
                rates.note(verb, at)
                new += 1
        found.older = found.older or new < len(lines)
        if lines and not new:
            return
        first = lines[0] if lines else first
    if first is None:
        rates.complete = rates.complete and not chain.cut
    else:
        (found.cut if chain.cut or first[1] == ROTATED else found.firsts).append(first[0])


def _times(lines: bytes) -> list[tuple[float, str]]:
    """The time and the verb of each line; without parsing them where they are as dibs writes."""
    found = _find_lines(lines)
    if len(found) == lines.count(b"\n"):
        return [(float(at), verb.decode()) for at, verb in found]
    return [(event.at, event.verb) for event in parsed(lines)]


def _begins(event: Event) -> bool:
    """Whether the first life of an id begins with it: later ones begin above a fence."""
    task = read_any(event.dst) if event.verb == "add" else None
    return task is not None and task.fence == 0


def _fits(event: Event, ident: str | None, verbs: Collection[str]) -> bool:
    return ident in (None, event.id) and (not verbs or event.verb in verbs)


def _move_on(seen: dict[str, int], files: Sequence[str]) -> list[str]:
    """Let the files that were set aside go on from where they were read under their old names."""
    moved = []
    new = [file for file in files if file not in seen]
    for chain, found in groupby(new, current):
        first = next(found)
        if first == chain or chain not in seen:
            continue
        known = max((number(file) for file in seen if file != chain == current(file)), default=0)
        end = seen.pop(chain)
        if number(first) == known + 1:  # else it is among those that were removed
            seen[first] = end
            moved.append(first)
    return moved


def _placed(events: Iterable[Event]) -> Iterator[tuple[float, Event]]:
    """The events of one file with the times by which they are merged, which keep their order.

    Each process reckons the time by itself: where the clock is coarse, seconds apart.
    """
    at = 0.0
    for event in events:
        at = event.at if at - event.at > APART else max(at, event.at)
        yield at, event


def in_order(told: Iterable[Iterable[Event]]) -> list[Event]:
    """The events of several files by their times, those of one in the order of its lines."""
    placed = [entry for events in told for entry in _placed(events)]
    return [event for _, event in sorted(placed, key=itemgetter(0))]
