"""Judge from the results of a probe whether a directory can hold a board; pure functions."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.clock import COARSE, FAITHFUL
from dibs.model.fitness import BAD, GOOD, NOTE, Ability
from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.mounts import Mount
    from dibs.files.probing.races import Race

_MARGIN = 5
"""A beat is in time until 0.8 ttl and must be seen by 1.0 ttl: a delay may take a fifth of it."""
_TRUSTED = 7
"""A clock is trusted within 0.15 ttl, so its step must be less than a seventh."""


class Times(NamedTuple):
    """What was observed of the file system's clock, in nanoseconds."""

    tick: int
    """Its step: the smallest difference between two times."""
    skew: int
    """How far it is ahead of this host's clock."""
    apart: int
    """How far the time of a touch is ahead of a new file's, beyond the time in between."""
    torn: int
    """The difference between a touched file's mtime and ctime."""
    beats: bool
    """Whether a later touch has a later time."""
    rename_moves_ctime: bool


class Names(NamedTuple):
    """Which names a file may have."""

    longest: int
    cases: bool
    """Whether `a` and `A` are two names."""
    forms: bool
    """Whether the two encodings of an accented letter are two names."""
    raw: bool
    """Whether bytes that are not UTF-8 are allowed."""


def grain(times: Iterable[int]) -> int:
    """The coarsest step, up to 2 s, that a clock with these times can have."""
    return gcd(2 * SECOND, *times)


def refused(ability: str, error: OSError) -> Ability:
    """The result for an ability that the protocol needs and the disk refuses."""
    return Ability(ability, BAD, f"the disk answers {error.strerror or error}")


def on_mount(mount: Mount) -> Ability:
    """The file system, and whether the kernel reports all changes on it."""
    figures = {"fstype": mount.fstype, "network": mount.network}
    if mount.network:
        text = f"{mount.kind}: changes by other hosts are not reported here, so it is polled"
        return Ability("mount", GOOD, text, figures, polling=True)
    return Ability("mount", GOOD, f"{mount.kind}: changes are reported as they happen", figures)


def raced(kind: str, found: Race, *, needed: bool = True) -> Ability:
    """The result of races between two processes, each of which must have exactly one winner."""
    figures = found._asdict()
    if found.both:
        text = f"in {found.both} of {found.rounds} races both processes won"
        return Ability(kind, BAD if needed else NOTE, text, figures)
    if not found.rounds:
        return Ability(
            kind, BAD, f"no race was run: {found.error or 'the disk is too slow'}", figures
        )
    text = f"{found.rounds} races between two processes, one winner each"
    text += f" ({found.mine}:{found.theirs})"
    if not found.none:
        return Ability(kind, GOOD, text, figures)
    text = f"{found.rounds} races, {found.none} of them without a winner"
    text += f": {found.error}" if found.error else "; dibs checks again when this happens"
    lost = found.none == found.rounds
    return Ability(kind, BAD if lost and needed else NOTE, text, figures)


def timed(found: Times) -> Ability:
    """The result for the file system's clock."""
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
        text = "a touch does not change the time, so every claim would look stale"
        return Ability("times", BAD, text, figures)
    notes = [f"steps of {_span(tick)}"]
    apart = apart if apart > tick + 0.5 else 0.0
    ahead = not apart and abs(found.skew) >= SECOND + found.tick
    if ahead:
        way = "ahead of" if found.skew > 0 else "behind"
        lead = _span(abs(found.skew) / SECOND)
        notes.append(f"{lead} {way} this host's clock, which is harmless")
    if not found.rename_moves_ctime:
        notes.append("a rename does not change ctime, so a claim touches the file first")
    if abs(found.torn) > FAITHFUL:
        apart = 0.0  # such times are untrusted in any case
        notes.append(
            "a touch sets mtime and ctime to different times, so the clock is untrusted: "
            "a stale claim is requeued only after it was watched for long enough"
        )
    elif apart:
        notes.append(
            f"a touch is {_span(apart)} off the time of a new file, so some times are not the "
            "server's: keep the clocks of all hosts in sync"
        )
    least = max(_MARGIN * (tick + apart), _TRUSTED * tick, COARSE if tick >= 1 else 0)
    grade = NOTE if least > 1 or len(notes) > 1 + bool(ahead) else GOOD
    return Ability("times", grade, "; ".join(notes), figures, least)


def synced(refusals: Mapping[str, str], passed_over: str, durability: str) -> Ability:
    """The result for durability; `refusals` has the disk's answers for `file` and `folder`.

    `passed_over` is an answer for a folder that dibs ignores.
    """
    figures = {"file": "file" not in refusals, "folder": not (refusals.get("folder", passed_over))}
    if not refusals and passed_over:
        text = (
            f"folders cannot be made durable ({passed_over}): a power loss may undo the last steps"
        )
        return Ability("sync", NOTE, text, figures)
    if not refusals:
        return Ability("sync", GOOD, "files and folders can be made durable", figures)
    text = " and ".join(f"{what}s cannot be made durable ({why})" for what, why in refusals.items())
    if durability == "off":
        return Ability("sync", NOTE, f"{text}, and this board does not require it", figures)
    text += (
        f': set durability = "off" in .dibs/board.toml (now "{durability}"), or use another disk'
    )
    return Ability("sync", BAD, text, figures)


def named(found: Names, needed: int, id_bytes: int) -> Ability:
    """The result for the names of tasks; the longest of them takes `needed` bytes."""
    missing = []
    if found.longest < needed:
        left = id_bytes - (needed - found.longest)
        missing.append(f"no name longer than {found.longest} bytes, so no id longer than {left}")
    if not found.cases:
        missing.append("a and A are the same name: ids must differ in more than case")
    if not found.forms:
        missing.append("accented letters are normalised, so names from shell workers may change")
    if not found.raw:
        missing.append("names from shell workers must be UTF-8")
    figures = found._asdict()
    grade = BAD if found.longest <= needed - id_bytes else NOTE if missing else GOOD
    return Ability("names", grade, "; ".join(missing) or "every id is possible", figures)


def lagged(ability: str, what: str, lag: float | None, limit: float, tick: float | None) -> Ability:
    """How soon a change is seen over the other path; with `tick` if the ttl depends on it."""
    if lag is None:
        text = f"{what} was not seen over the other path within {limit:g} s"
        return Ability(ability, BAD, text, {"lag": None})
    text = f"{what} is seen over the other path within {_span(lag)}"
    least = _MARGIN * (lag + tick) if tick is not None else 0.0
    return Ability(ability, NOTE if lag >= 1 else GOOD, text, {"lag": round(lag, 6)}, least)


def entered(mode: int, owner: int, group: int, tried: Mapping[int, str] | None) -> Ability:
    """Which other users can work here, by the mode and by what a test user could do.

    `tried` has, for the group's id and for -1 as everyone else, what failed; empty for nothing.
    """
    figures: dict[str, object] = {"mode": f"{mode:04o}", "owner": owner, "group": group}
    if mode & 0o1000:
        text = f"the directory is sticky (mode {mode:04o}): users cannot move each other's tasks"
        return Ability("users", BAD, f"{text}; chmod -t it", figures)
    who = {group: f"group {group}"} if mode & 0o030 == 0o030 else {}
    who |= {-1: "everyone"} if mode & 0o003 == 0o003 else {}
    if not who:
        text = f"only user {owner} can work here (mode {mode:04o}); for a group, chmod g+rws it"
        return Ability("users", GOOD, text, figures)
    allowed = f"mode {mode:04o} lets {' and '.join(who.values())} work here"
    if tried is None:
        return Ability(
            "users", GOOD, f"{allowed}; not tested, because only root can test it", figures
        )
    figures["tried"] = {str(which): not wrong for which, wrong in tried.items()}
    testers = {group: f"a member of group {group}", -1: "a user outside the group"}
    wrong = [f"{testers[which]} cannot {what}" for which, what in tried.items() if what]
    if wrong:
        return Ability("users", NOTE, f"{allowed}, but {'; '.join(wrong)}", figures)
    return Ability("users", GOOD, f"{allowed}, and test users confirmed it", figures)


def answer(error: OSError) -> str:
    """The name of an error."""
    return errno.errorcode.get(error.errno or 0, "") or os.strerror(error.errno or errno.EIO)


def _span(seconds: float) -> str:
    """A short span of time, for people."""
    if seconds < 0.001:
        return "less than 1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
