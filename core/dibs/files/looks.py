"""Observations ("looks") of expired claims, kept on the board for when its clock is untrusted.

An untrusted clock proves no age. A claim that was seen twice with the same times, long enough
apart, proves that its holder has stopped beating. Short-lived processes share their looks on the
board, so together they watch for as long as one long-lived process would. Each look is a line in
`.dibs/looks/<stem>`: the host's key, its boot-time clock, the board's clock, the claim's times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.clock import LOOKS
from dibs.model.sample import SECOND, Sample

if TYPE_CHECKING:
    from dibs.files.port import Port
    from dibs.host import Host

LOOKS_BYTES = 8192
"""A file that would grow longer is started again."""
OWN = 0.8
"""The part of a ttl for which one boot-time clock must have seen a claim unchanged."""
APART = 0.15
"""The part of a ttl by which the board's clock and the boot-time clock may differ."""
SHARED = 1.5
"""The part of a ttl, by the board's clock, for which different boots must have seen a claim.

Two forward steps of the clock can add half a ttl, and `SKEW` between hosts can add before, between
and after them. At least 0.85 ttl of real time is left, and an owner stops at 0.8.
"""
SKEW = 0.05
"""The part of a ttl, at most 2 s, by which hosts may see different times."""
STRIDE = 0.25
"""The most that the time between two looks counts, as a part of a ttl: a limit for clock steps."""
CLOSE = 1 / 16
"""The part of a ttl after which another look gets a line."""
CROWD = 32
"""The number of lines up to which a look from a new boot-time clock always gets a line."""
CAUTION = 2 * SECOND
"""What a beat in the future, or a clock with whole seconds, adds to a wait."""
_match_line = re.compile(
    rb"([0-9A-Za-z]{1,64}) ([0-9]{1,19}) (-?[0-9]{1,19}) (-?[0-9]{1,20})"
).fullmatch


class Look(NamedTuple):
    """When a claim was seen with these times; the clocks were read after the claim."""

    key: str
    """Identifies the boot-time clock, by the host's boot."""
    boot: int
    fs: int
    pulse: int


def parse(data: bytes) -> list[Look]:
    """Every valid line; a torn tail and lines that two hosts overwrote are skipped."""
    found = map(_match_line, data.split(b"\n")[:-1])
    return [Look(m[1].decode(), int(m[2]), int(m[3]), int(m[4])) for m in found if m is not None]


def watched(looks: Iterable[Look], key: str, now: Sample, ttl: float) -> int:
    """For how many nanoseconds one boot-time clock has certainly seen the claim unchanged.

    The board's clock must agree, because clones of one machine image share a boot id. Their
    boot-time clocks differ, and a step of the board's clock would hardly hide the same difference.
    """
    spans = ((now.boot - look.boot, now.fs - look.fs) for look in looks if look.key == key)
    apart = APART * ttl * SECOND
    return max(0, max((min(boot, fs) for boot, fs in spans if abs(boot - fs) <= apart), default=0))


def counted(times: Iterable[int], ttl: float) -> tuple[int, int | None]:
    """How much time on the board's clock these looks prove, and the highest time among them.

    A look counts only for what exceeds the highest time so far, and for a quarter of the ttl at
    most, which limits a step forward. After a step back the count restarts with the next look: the
    low one may have been written late.
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
    """Seconds until a claim may be reaped, given the looks that saw it with the same times.

    `now` was read before the claim. With `ahead` its beat is in the future: its age is unknown.
    """
    own = (ttl * SECOND + CAUTION if ahead else OWN * ttl * SECOND) - watched(looks, key, now, ttl)
    total = counted([*(look.fs for look in looks), now.fs], ttl)[0]
    coarse = now.fs % SECOND == 0
    shared = SHARED * ttl * SECOND + CAUTION * (coarse + ahead) - total
    return max(0.0, min(own, shared) / SECOND)


def worthwhile(looks: Sequence[Look], new: Look, ttl: float) -> bool:
    """Whether one more line adds information."""
    top = counted([look.fs for look in looks], ttl)[1]
    if top is None or new.fs >= top + CLOSE * ttl * SECOND or new.fs < top - _skew(ttl):
        return True
    return len(looks) < CROWD and all(look.key != new.key for look in looks)


class Looks:
    """Reads the looks of one board and adds those of this process."""

    def __init__(self, port: Port, host: Host) -> None:
        self._port = port
        self._key = host.tag or port.nonce()  # without a boot id no other process has this clock

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
        """Seconds until a claim that was just seen with these times may be reaped; 0 means now.

        If the caller has to wait, this look is stored. `again` reads the clocks once more, because
        a look counts from after the claim was read.
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
        """Store a look; if that fails, the claim is only reaped later."""
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
    """The name for looks at a file that is no claim; no claim's name begins with `+`."""
    return f"+{folder}+{entry}"
