"""Measure how soon changes over one path are seen over another, and race the two paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from dibs.files import mounts
from dibs.files.disk import Disk
from dibs.files.probing.abilities import grain, lagged, on_mount, raced, refused
from dibs.files.probing.races import race
from dibs.files.probing.trial import Trial, keeps
from dibs.model.fitness import BAD, Ability
from dibs.model.sample import SECOND

LIMIT = 65.0
"""Seconds for which a change may stay unseen; NFS caches attributes for a minute."""
_SAME = 10.0
"""Seconds within which a new folder must appear there; otherwise it is another directory."""
_LOOKS, _LOOKING = 5, 5.0
"""How often the lags are measured, and after how many seconds no further round begins."""
_PAUSE = 0.001
_STEP = 3.0
"""Seconds within which a touch must change a file's time."""


def peered(trial: Trial, peer: str, *, links: bool, tick: float) -> Iterator[Ability]:
    """What the two paths can do together."""
    there = f"{os.path.abspath(peer)}/{trial.folder}"
    mount = on_mount(mounts.kind(peer))
    if _lag(lambda: os.path.isdir(there), _SAME) is None:
        text = f"a folder made in {trial.root} is not seen in {peer}: it is another directory"
        yield Ability("peer", BAD, text)
        return
    yield mount._replace(ability="peer", text=f"{mount.text.partition(':')[0]} at {peer}")
    for kind in ("rename", "keep", "link" if links else "create"):
        yield from _race(trial, there, kind)
    for ability, what, measure in (
        ("peer-names", "an added or removed name", _renamed),
        ("peer-listing", "a changed listing", _listed),
        ("peer-beats", "a heartbeat", _beaten),
    ):
        try:
            lag = _longest(trial, there, ability, measure)
        except OSError as error:
            yield refused(ability, error)
            continue
        yield lagged(ability, what, lag, LIMIT, tick if measure is _beaten else None)


def _race(trial: Trial, there: str, kind: str) -> Iterator[Ability]:
    ability = f"peer-{kind}"
    try:
        disk = trial.ground(ability)
        other = _other(disk, there)
        if kind != "keep" or (keeps(disk) and keeps(other)):
            yield raced(ability, race(kind, disk, other, trial.rounds, trial.seconds))
    except OSError as error:
        yield refused(ability, error)


def _other(disk: Disk, there: str) -> Disk:
    """The same folder over the other path."""
    return Disk(f"{there}/{os.path.basename(disk.root)}")


def _longest(
    trial: Trial, there: str, ability: str, measure: Callable[[Disk, Disk], float | None]
) -> float | None:
    """The longest lag of a few rounds; None if one took too long."""
    longest, until = 0.0, time.monotonic() + _LOOKING
    for _ in range(_LOOKS):
        here = trial.ground(ability)
        lag = measure(here, _other(here, there))
        if lag is None:
            return None
        longest = max(longest, lag)
        if time.monotonic() > until:
            break
    return longest


# Each one reads over there first, so that what is cached there is outdated by the change.


def _renamed(here: Disk, there: Disk) -> float | None:
    here.create("moving", b"")
    if _lag(lambda: _time(there, "moving")) is None:
        return None
    _time(there, "moved")
    here.rename("moving", "moved")
    came = _lag(lambda: _time(there, "moved"))
    went = _lag(lambda: not _time(there, "moving"))  # after the other, which may refresh the cache
    return None if came is None or went is None else came + went


def _listed(here: Disk, there: Disk) -> float | None:
    here.create("moving", b"")
    there.names("")
    here.rename("moving", "moved")
    return _lag(lambda: there.names("") == ["moved"])


def _beaten(here: Disk, there: Disk) -> float | None:
    here.create("beating", b"")
    before = _time(here, "beating")
    coarsest = max(grain([before]), grain([there.stat("").mtime]))
    time.sleep(coarsest / SECOND)  # so that a touch gets a later time
    if _lag(lambda: _time(there, "beating")) is None:
        return None
    known = _time(there, "beating")
    until = time.monotonic() + _STEP
    while _time(here, "beating") == before and time.monotonic() < until:
        here.touch("beating")
    return _lag(lambda: _time(there, "beating") != known)


def _lag(check: Callable[[], object], limit: float = 0.0) -> float | None:
    """Seconds until the check is true; None if that takes too long."""
    start = time.monotonic()
    while not check():
        if time.monotonic() > start + (limit or LIMIT):
            return None
        time.sleep(_PAUSE)
    return time.monotonic() - start


def _time(disk: Disk, name: str) -> int:
    """The time that a heartbeat changes; 0 if the name is missing."""
    try:
        stat = disk.stat(name)
    except FileNotFoundError:
        return 0
    return max(stat.mtime, stat.ctime)
