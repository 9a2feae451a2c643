"""Looks at expired claims, kept on the board so that callers of one moment add up to a watcher.

A clock that may have been set proves no age. What proves that a holder is silent is that its
claim was seen twice with the same times, long enough apart. Each look is a line in
`.dibs/looks/<stem>`: whose boot-time clock, that clock, the board's clock, the claim's times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import LOOKS, SECOND, Sample

if TYPE_CHECKING:
    from dibs.disk import Port
    from dibs.host import Host
    from dibs.store import Store

LOOKS_BYTES = 8192
"""A longer file is begun again."""
OWN = 0.8
"""The part of a ttl for which one boot-time clock must have seen a claim unchanged."""
APART = 0.15
"""The part of a ttl by which the board's clock may have gone another way than the boot's."""
SHARED = 1.5
"""The part of a ttl for which callers of different boots must have seen it, by the board's clock.

Two forward steps make it seem half a ttl longer, and `SKEW` of hosts adds before, between and
after them: 0.85 ttl is left, and an owner stops at 0.8.
"""
SKEW = 0.05
"""The part of a ttl, at most 2 s, by which the times that hosts see may differ."""
STRIDE = 0.25
"""The most of a ttl that the time between two looks counts, so that a step of the clock cannot."""
CLOSE = 1 / 16
"""The part of a ttl after which another look is worth a line."""
CROWD = 32
"""So many lines may be there for the sake of their boot-time clock alone."""
CAUTION = 2 * SECOND
"""What a beat ahead of the clock, or times of whole seconds, add to a wait."""
_match_line = re.compile(
    rb"([0-9A-Za-z]{1,64}) ([0-9]{1,19}) (-?[0-9]{1,19}) (-?[0-9]{1,20})"
).fullmatch


class Look(NamedTuple):
    """When a claim was seen with these very times, read after them."""

    key: str
    """Whose boot-time clock."""
    boot: int
    fs: int
    pulse: int


def parse(data: bytes) -> list[Look]:
    """Every sound line; a torn tail, or lines that two hosts wrote over each other, are not."""
    found = map(_match_line, data.split(b"\n")[:-1])
    return [Look(m[1].decode(), int(m[2]), int(m[3]), int(m[4])) for m in found if m is not None]


def watched(looks: Iterable[Look], key: str, now: Sample, ttl: float) -> int:
    """For how long one boot-time clock has surely seen it so, in nanoseconds.

    Only where the board's clock says so too: clones of one machine image share a boot id, but
    neither a clock nor, with the board's set as well, the same mistake.
    """
    spans = ((now.boot - look.boot, now.fs - look.fs) for look in looks if look.key == key)
    apart = APART * ttl * SECOND
    return max(0, max((min(boot, fs) for boot, fs in spans if abs(boot - fs) <= apart), default=0))


def counted(times: Iterable[int], ttl: float) -> tuple[int, int | None]:
    """How much of the board's time these looks prove, and the highest of them.

    Only what goes beyond the highest time counts, and at most a quarter of the ttl each, so a step
    forward is worth no more than that. After a step back it begins again, with the next look: the
    one that is too low may have been written late.
    """
    total, top = 0, None
    for fs in times:
        if top is None:
            total, top = 0, fs
        elif fs < top - _skew(ttl):
            total, top = 0, None
        elif fs > top:
            total, top = total + min(fs - top, int(STRIDE * ttl * SECOND)), fs
    return total, top


def _skew(ttl: float) -> int:
    return min(2 * SECOND, int(SKEW * ttl * SECOND))


def patience(looks: Sequence[Look], key: str, now: Sample, ttl: float, *, ahead: bool) -> float:
    """Seconds until a claim that all these looks saw alike may be reaped, as far as they tell.

    `now` was read before the claim was; `ahead`: its beat is in the future, so no age is known.
    """
    own = (ttl * SECOND + CAUTION if ahead else OWN * ttl * SECOND) - watched(looks, key, now, ttl)
    total = counted([*(look.fs for look in looks), now.fs], ttl)[0]
    whole = now.fs % SECOND == 0
    shared = SHARED * ttl * SECOND + CAUTION * (whole + ahead) - total
    return max(0.0, min(own, shared) / SECOND)


def worthwhile(looks: Sequence[Look], new: Look, ttl: float) -> bool:
    """Whether one more line says anything new."""
    top = counted([look.fs for look in looks], ttl)[1]
    if top is None or new.fs >= top + CLOSE * ttl * SECOND or new.fs < top - _skew(ttl):
        return True
    return len(looks) < CROWD and all(look.key != new.key for look in looks)


class Looks:
    """The looks of one board, as one process reads and adds to them."""

    def __init__(self, port: Port, host: Host) -> None:
        self._port = port
        self._key = host.tag or port.nonce()  # without a boot id nobody else has this clock

    def patience(
        self,
        stem: str,
        pulse: int,
        ttl: float,
        now: Sample,
        *,
        ahead: bool,
        again: Callable[[], Sample],
    ) -> float:
        """Seconds until a claim that was just seen with these times may be reaped; 0 for now.

        While there is something to wait for, this look is kept. `again` reads the clocks: a look
        counts from after the claim was read.
        """
        data = self._read(stem)
        looks = [look for look in parse(data) if look.pulse == pulse]
        mine = [look for look in looks if look.key != self._key or look.boot <= now.boot]
        wait = patience(mine, self._key, now, ttl, ahead=ahead)
        if wait > 0:
            after = again()
            new = Look(self._key, after.boot, after.fs, pulse)
            if worthwhile(mine, new, ttl):
                self._add(stem, data, looks, new)
        return min(wait, STRIDE * ttl)

    def _read(self, stem: str) -> bytes:
        try:
            return self._port.read(f"{LOOKS}/{stem}", LOOKS_BYTES)[0]
        except OSError:
            return b""

    def _add(self, stem: str, data: bytes, looks: list[Look], new: Look) -> None:
        """A look that cannot be written costs patience, nothing else."""
        path, line = f"{LOOKS}/{stem}", _spelled(new)
        if data and not data.endswith(b"\n"):
            line = b"\n" + line
        with suppress(OSError):
            if len(data) + len(line) > LOOKS_BYTES:
                self._port.unlink(path)
                line = b"".join(map(_spelled, [*looks[-CROWD:], new]))
            try:
                self._port.append(path, line)
            except FileNotFoundError:
                self._port.mkdir(LOOKS)
                self._port.append(path, line)


def _spelled(look: Look) -> bytes:
    return b"%s %d %d %d\n" % (look.key.encode(), look.boot, look.fs, look.pulse)


def aside(folder: str, entry: str) -> str:
    """The name for looks at a file that is no claim; no claim's name begins so."""
    return f"+{folder}+{entry}"


def sweep(store: Store, entries: Iterable[str], live: set[str]) -> None:
    """Remove the looks at what is gone; `live` are the stems of the claims that are there."""
    for entry in entries:
        if entry in live:
            continue
        if entry.startswith("+"):
            folder, _, name = entry[1:].partition("+")
            if store.look(name if folder == "lock" else f".dibs/{folder}/{name}") is not False:
                continue
        store.drop(f"{LOOKS}/{entry}")
