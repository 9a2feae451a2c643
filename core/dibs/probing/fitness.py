"""Whether a directory can carry a board, judged from what it was seen to do; all of it pure."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from math import ceil, gcd
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import COARSE, FAITHFUL, SECOND

if TYPE_CHECKING:
    from dibs.mounts import Mount
    from dibs.probing.races import Race

GOOD, NOTE, BAD = "good", "note", "bad"
FINE, POLLING, UNFIT = "fine", "polling", "unfit"
_MARGIN = 5
"""A beat is in time until 0.8 ttl and must be seen at 1.0: what hides it may take a fifth."""
_VOUCHED = 7
"""A clock is vouched for within 0.15 ttl, so its step must be less."""


class Line(NamedTuple):
    """One thing that was tried, and what came of it."""

    ability: str
    grade: str
    """`good`; `note`, where something is missing that can be done without; or `bad`."""
    text: str
    figures: Mapping[str, object] = {}
    least_ttl: float = 0.0
    """Seconds that every ttl must have because of this."""
    polling: bool = False
    """No changes are told here: who wants to know looks again and again."""


class Verdict(NamedTuple):
    """What it all comes to."""

    status: str
    """`fine`, `polling` (fine, but nothing is told of changes) or `unfit` (do not use it)."""
    least_ttl: int
    """Whole seconds; 1 where any ttl will do."""
    why: tuple[str, ...]

    @property
    def text(self) -> str:
        """The verdict in plain words."""
        if self.status == UNFIT:
            return f"do not use: {'; '.join(self.why)}"
        text = "fine with polling" if self.status == POLLING else "fine"
        return f"{text}, least ttl {self.least_ttl} s" if self.least_ttl > 1 else text


class Times(NamedTuple):
    """What was seen of the file system's clock, in nanoseconds."""

    tick: int
    """Its step: no times lie closer together."""
    skew: int
    """How far it was ahead of this host's."""
    apart: int
    """How far the time of a touch was ahead of that of a new file, beyond what passed between."""
    torn: int
    """How far a touched file's mtime was from its ctime."""
    beats: bool
    """A later touch has a later time."""
    rename_moves_ctime: bool


class Names(NamedTuple):
    """What a file may be called."""

    longest: int
    cases: bool
    """`a` and `A` are two names."""
    forms: bool
    """The two spellings of an accented letter are two names."""
    raw: bool
    """Bytes that are no UTF-8 will do."""


def trouble(found: Verdict, ttl: float) -> str:
    """Why a board with that ttl should not be used as it is; empty where it may."""
    if found.status != UNFIT and found.least_ttl > ttl:
        return f"{found.text}, but this board's ttl is {ttl:g} s: raise it in .dibs/board.toml"
    return found.text if found.status == UNFIT else ""


def verdict(lines: Iterable[Line]) -> Verdict:
    """What the lines come to together."""
    lines = list(lines)
    why = tuple(f"{line.ability}: {line.text}" for line in lines if line.grade == BAD)
    status = UNFIT if why else POLLING if any(line.polling for line in lines) else FINE
    return Verdict(status, max(1, ceil(max((line.least_ttl for line in lines), default=0))), why)


def grain(times: Iterable[int]) -> int:
    """The coarsest step, up to 2 s, that a clock which gave these times can have."""
    return gcd(2 * SECOND, *times)


def refused(ability: str, error: OSError) -> Line:
    """Something that the protocol cannot do without, and the disk does not do."""
    return Line(ability, BAD, f"the disk answers {error.strerror or error}")


def on_mount(mount: Mount) -> Line:
    """The file system, and whether the kernel can tell of all changes on it."""
    figures = {"fstype": mount.fstype, "network": mount.network}
    if mount.network:
        text = f"{mount.kind}: changes that others make are not told here, so it is polled"
        return Line("mount", GOOD, text, figures, polling=True)
    return Line("mount", GOOD, f"{mount.kind}: changes are told as they happen", figures)


def raced(kind: str, found: Race, *, needed: bool = True) -> Line:
    """Races between two processes, of which each must have exactly one winner."""
    figures = found._asdict()
    if found.both:
        text = f"in {found.both} of {found.rounds} races both of two processes were told they won"
        return Line(kind, BAD if needed else NOTE, text, figures)
    if not found.rounds:
        return Line(kind, BAD, f"no race was run: {found.error or 'the disk is too slow'}", figures)
    text = f"{found.rounds} races between two processes, one winner each"
    text += f" ({found.mine}:{found.theirs})"
    if not found.none:
        return Line(kind, GOOD, text, figures)
    text = f"{found.rounds} races, in {found.none} of them nobody was told that it won"
    text += f": {found.error}" if found.error else "; dibs looks again where this happens"
    lost = found.none == found.rounds
    return Line(kind, BAD if lost and needed else NOTE, text, figures)


def timed(found: Times) -> Line:
    """The clock of the file system."""
    tick, apart = found.tick / SECOND, abs(found.apart) / SECOND
    figures = {
        **{
            name: round(getattr(found, name) / SECOND, 9)
            for name in ("tick", "skew", "apart", "torn")
        },
        "beats": found.beats,
        "rename_moves_ctime": found.rename_moves_ctime,
    }
    if not found.beats:
        text = "a touch moves no time, so that every claim would look silent"
        return Line("times", BAD, text, figures)
    told = [f"steps of {_span(tick)}"]
    apart = apart if apart > tick + 0.5 else 0.0
    ahead = not apart and abs(found.skew) >= SECOND + found.tick
    if ahead:
        way = "ahead of" if found.skew > 0 else "behind"
        told.append(f"{_span(abs(found.skew) / SECOND)} {way} this host's clock, which is harmless")
    if not found.rename_moves_ctime:
        told.append("a rename does not move ctime, so claimants touch first")
    if abs(found.torn) > FAITHFUL:
        apart = 0.0  # such times are not believed, whoever's they are
        told.append(
            "a touch gives mtime and ctime different times, so nobody vouches for them: "
            "a silent claim is given back once somebody has watched it for long enough"
        )
    elif apart:
        told.append(
            f"a touch is {_span(apart)} off the time of a new file, so not every time is the "
            "server's: keep all hosts' clocks together"
        )
    least = max(_MARGIN * (tick + apart), _VOUCHED * tick, COARSE if tick >= 1 else 0)
    grade = NOTE if least > 1 or len(told) > 1 + bool(ahead) else GOOD
    return Line("times", grade, "; ".join(told), figures, least)


def synced(refusals: Mapping[str, str], passed_over: str, durability: str) -> Line:
    """What cannot be made durable: `file` or `folder`, each with what the disk answered.

    `passed_over` is what it answered for a folder where dibs goes on all the same.
    """
    figures = {"file": "file" not in refusals, "folder": not (refusals.get("folder", passed_over))}
    if not refusals and passed_over:
        text = (
            f"folders cannot be made durable ({passed_over}): a power cut may undo the last steps"
        )
        return Line("sync", NOTE, text, figures)
    if not refusals:
        return Line("sync", GOOD, "files and folders can be made durable", figures)
    text = " and ".join(f"no {what} can be made durable ({why})" for what, why in refusals.items())
    if durability == "off":
        return Line("sync", NOTE, f"{text}, nor does this board ask for it", figures)
    text += f'; this board asks for it (durability = "{durability}" in .dibs/board.toml; or "off")'
    return Line("sync", BAD, text, figures)


def named(found: Names, needed: int, id_bytes: int) -> Line:
    """What the names of tasks may be; `needed` bytes hold the longest of them."""
    missing = []
    if found.longest < needed:
        left = id_bytes - (needed - found.longest)
        missing.append(f"no name longer than {found.longest} bytes, so no id longer than {left}")
    if not found.cases:
        missing.append("a and A are one name: ids must differ in more than that")
    if not found.forms:
        missing.append("accented letters have one form: in names that shells give they may change")
    if not found.raw:
        missing.append("only UTF-8 in names that shells give")
    figures = found._asdict()
    grade = BAD if found.longest <= needed - id_bytes else NOTE if missing else GOOD
    return Line("names", grade, "; ".join(missing) or "whatever an id can need", figures)


def lagged(ability: str, what: str, lag: float | None, limit: float, tick: float | None) -> Line:
    """How soon something is seen over the other path; with a tick where a ttl rests on it."""
    if lag is None:
        text = f"{what} was not seen over the other path within {limit:g} s"
        return Line(ability, BAD, text, {"lag": None})
    text = f"{what} is seen over the other path within {_span(lag)}"
    least = _MARGIN * (lag + tick) if tick is not None else 0.0
    return Line(ability, NOTE if lag >= 1 else GOOD, text, {"lag": round(lag, 6)}, least)


def entered(mode: int, owner: int, group: int, tried: Mapping[int, str] | None) -> Line:
    """Who else can work here: by the mode, and by doing where `tried` has what a user met.

    `tried` has for the group's id, and for -1 for everybody, what went wrong; nothing for all well.
    """
    figures: dict[str, object] = {"mode": f"{mode:04o}", "owner": owner, "group": group}
    if mode & 0o1000:
        text = f"the directory is sticky (mode {mode:04o}): nobody could move another's task"
        return Line("users", BAD, f"{text}; chmod -t it", figures)
    who = {group: f"group {group}"} if mode & 0o030 == 0o030 else {}
    who |= {-1: "everybody"} if mode & 0o003 == 0o003 else {}
    if not who:
        text = f"only user {owner} can work here (mode {mode:04o}); for a group chmod g+rws it"
        return Line("users", GOOD, text, figures)
    told = f"mode {mode:04o} lets {' and '.join(who.values())} work here"
    if tried is None:
        return Line("users", GOOD, f"{told}; not tried, for that root must run this", figures)
    figures["tried"] = {str(which): not wrong for which, wrong in tried.items()}
    wrong = [f"{who[which]} cannot {what}" for which, what in tried.items() if what]
    if wrong:
        return Line("users", NOTE, f"{told}, but another user of {'; '.join(wrong)}", figures)
    return Line("users", GOOD, f"{told}, and another user did", figures)


def answer(error: OSError) -> str:
    """A refusal in a word."""
    return errno.errorcode.get(error.errno or 0, "") or os.strerror(error.errno or errno.EIO)


def _span(seconds: float) -> str:
    """A short span of time, for people."""
    if seconds < 0.001:
        return "less than 1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
