"""What a directory can do, found out by doing it in a folder of its own below `.dibs/`.

No task is ever touched. To be called from a process with one thread, because it forks.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from dibs import mounts, names
from dibs.disk import Disk
from dibs.errors import BadName, ReadOnly, StorageError
from dibs.host import this_host
from dibs.probing.fitness import (
    BAD,
    GOOD,
    NOTE,
    Line,
    Names,
    Times,
    Verdict,
    answer,
    grain,
    named,
    on_mount,
    raced,
    refused,
    synced,
    timed,
    verdict,
)
from dibs.probing.peer import peered
from dibs.probing.races import race
from dibs.probing.trial import Trial, keeps, on_trial, opened, sweep
from dibs.probing.users import users
from dibs.store import Store

ROUNDS = 200
_SECONDS = 5.0
_QUICK_ROUNDS, _QUICK_SECONDS = 16, 0.02
_QUICK = 0.15
"""Seconds after which the quick form begins nothing new."""
_NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_TICK = 3.0
"""Seconds within which a touch must move a file's time; FAT's have steps of two."""


def probe(root: str, peer: str = "", rounds: int = ROUNDS) -> Iterator[Line]:
    """Try everything, and tell of each as soon as it is known; `peer` is another path to it."""
    if peer and not os.path.isdir(peer):
        raise BadName(f"{peer!a} is no directory: give another path to the board")
    mount = on_mount(mounts.kind(root))
    yield mount
    try:
        store = opened(root)
    except ReadOnly as error:
        yield Line("write", BAD, str(error))
        return
    sweep(store, root)
    with on_trial(store, root, rounds, _SECONDS) as trial:
        yield _safely("rename", partial(_race, trial, "rename"))
        yield _safely("keep", partial(_keep, trial))
        link = _safely("link", partial(_link, trial))
        links = link.grade == GOOD
        yield link
        yield _safely("create", partial(_race, trial, "create", needed=not links))
        times = _safely("times", partial(_times, trial, patient=True))
        yield times
        yield _safely("sync", partial(_sync, trial))
        yield _safely("names", partial(_names, trial))
        yield _safely("users", partial(users, trial))
        if peer:
            tick = times.figures.get("tick")
            yield from peered(
                trial, peer, links=links, tick=tick if isinstance(tick, float) else 0.0
            )


def quick(root: str) -> Verdict:
    """The worst of a board, found out in a fifth of a second, unless one call takes long."""
    until = time.monotonic() + _QUICK
    lines = [on_mount(mounts.kind(root))]
    try:
        store = Store(Disk(root), this_host())
        with on_trial(store, root, _QUICK_ROUNDS, _QUICK_SECONDS) as trial:
            steps: dict[str, Callable[[], Line]] = {
                "times": partial(_times, trial, patient=False),
                "keep": partial(_keep, trial),
                "rename": partial(_race, trial, "rename"),
            }
            for ability, step in steps.items():
                if time.monotonic() < until:
                    lines.append(_safely(ability, step))
    except StorageError as error:
        lines.append(Line("write", BAD, str(error)))
    return verdict(lines)


def _safely(ability: str, step: Callable[[], Line]) -> Line:
    """What came of it; a disk that fails now and then gets another chance."""
    for _ in range(2):
        with suppress(OSError, StorageError):
            return step()
    try:
        return step()
    except OSError as error:
        return refused(ability, error)
    except StorageError as error:
        return Line(ability, BAD, str(error))


def _race(trial: Trial, kind: str, *, needed: bool = True) -> Line:
    disk = trial.ground(kind)
    return raced(kind, race(kind, disk, disk, trial.rounds, trial.seconds), needed=needed)


def _keep(trial: Trial) -> Line:
    disk = trial.ground("kept")
    if not keeps(disk):
        text = "the disk cannot be told to keep a file in the way of a rename; dibs looks first"
        return Line("keep", NOTE, text, {"keeps": False})
    for name in ("src", "dst"):
        disk.create(name, b"")
    with suppress(FileExistsError):
        disk.rename("src", "dst", keep=True)
        return Line("keep", BAD, "a file in the way is replaced although the disk was told not to")
    return _race(trial, "keep")


def _link(trial: Trial) -> Line:
    disk = trial.ground("linked")
    disk.create("src", b"")
    try:
        disk.link("src", "dst")
    except OSError as error:
        text = f"no hard links ({answer(error)}); dibs creates exclusively instead"
        return Line("link", NOTE, text, {"links": False})
    return _race(trial, "link")


def _times(trial: Trial, *, patient: bool) -> Line:
    """Touch a file until its time moves, or that takes too long."""
    store, disk = trial.store, trial.ground("timed")
    start = disk.boottime()
    disk.create("beat", b"")
    made, between = disk.stat("beat").mtime, disk.boottime()
    first, skew, torn = _touched(disk)
    apart = first - made - (between - start)
    until = time.monotonic() + (_TICK if patient else _QUICK_SECONDS)
    later, same = first, 0
    while later == first and time.monotonic() < until:
        time.sleep(0.0005)
        later, _, _ = _touched(disk)
        same += later == first
    # A time that moved at once says only that its step is shorter than the calls took.
    tick = later - first if same and later > first else grain((made, first, later))
    moves = store.clock.learn(anew=True) if patient else store.rename_moves_ctime
    return timed(Times(tick, skew, apart, torn, later > first or not patient, moves))


def _touched(disk: Disk) -> tuple[int, int, int]:
    """A file's time as a beat, just touched; how far this host is behind; mtime from ctime."""
    disk.touch("beat")
    host, stat = time.time_ns(), disk.stat("beat")
    return max(stat.mtime, stat.ctime), stat.mtime - host, stat.mtime - stat.ctime


def _sync(trial: Trial) -> Line:
    disk = trial.ground("synced")
    disk.create("file", b"payload")
    refusals, passed_over = {}, ""
    for what, path in (("file", "file"), ("folder", "")):
        try:
            disk.sync(path)
        except OSError as error:
            refusals[what] = answer(error)
    fd = os.open(disk.root, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        passed_over = answer(error)
    finally:
        os.close(fd)
    return synced(refusals, passed_over, trial.store.settings.durability)


def _names(trial: Trial) -> Line:
    disk = trial.ground("named")
    claim = f"{'o' * 40}-{disk.nonce()}"
    stamp = names.Stamp(names.FENCE_MAX, names.ATTEMPTS_MAX, 0)
    stem = names.claim_stem("x" * names.ID_BYTES, stamp, claim)
    draft = f"{stem}.{disk.nonce()}"  # of a record, the longest name that is ever made
    longest, too_long = 0, len(draft) + 1
    while too_long - longest > 1:
        length = len(draft) if too_long > len(draft) else (longest + too_long) // 2
        if _takes(disk, draft[:length]):
            longest = length
        else:
            too_long = length
    disk.create("case", b"")
    found = Names(
        longest,
        not _there(disk, "CASE"),
        not _takes(disk, "\u00e9") or not _there(disk, "e\u0301"),
        _takes(disk, "\udcff"),
    )
    return named(found, len(draft), names.ID_BYTES)


def _takes(disk: Disk, name: str) -> bool:
    try:
        disk.create(name, b"")
    except OSError as error:
        if error.errno in _NO_NAME:
            return False
        raise
    return True


def _there(disk: Disk, name: str) -> bool:
    try:
        disk.stat(name)
    except FileNotFoundError:
        return False
    return True
