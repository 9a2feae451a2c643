"""Find out what a directory can do by trying it, in a separate folder below `.dibs/`.

No task is ever touched. It forks, so it must be called from a process with one thread.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

from dibs.files import mounts
from dibs.files.board_files import BoardFiles
from dibs.files.disk import Disk
from dibs.files.probing.abilities import (
    Names,
    Times,
    answer,
    grain,
    named,
    on_mount,
    raced,
    refused,
    synced,
    timed,
)
from dibs.files.probing.peer import peered
from dibs.files.probing.races import race
from dibs.files.probing.trial import Trial, keeps, on_trial, opened, sweep
from dibs.files.probing.users import users
from dibs.host import this_host
from dibs.model import names
from dibs.model.errors import BadName, ReadOnly, StorageError
from dibs.model.fitness import BAD, GOOD, NOTE, Ability, Fitness, verdict
from dibs.model.task import Stamp

ROUNDS = 200
_SECONDS = 5.0
_QUICK_ROUNDS, _QUICK_SECONDS = 16, 0.02
_QUICK = 0.15
"""Seconds after which the quick probe starts nothing new."""
_NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_TICK = 3.0
"""Seconds within which a touch must change a file's time; FAT has steps of two."""


def probe(root: str, peer: str = "", rounds: int = ROUNDS) -> Iterator[Ability]:
    """Try everything, and yield each result at once; `peer` is another path to the directory."""
    if peer and not os.path.isdir(peer):
        raise BadName(f"{peer!r} is not a directory: give another path to the board")
    mount = on_mount(mounts.kind(root))
    yield mount
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(root))
        except ReadOnly as error:
            yield Ability("write", BAD, str(error))
            return
        sweep(store, root)
        yield from _tried(stack.enter_context(on_trial(store, root, rounds, _SECONDS)), peer)


def _tried(trial: Trial, peer: str) -> Iterator[Ability]:
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
        yield from peered(trial, peer, links=links, tick=tick if isinstance(tick, float) else 0.0)


def quick(root: str) -> Fitness:
    """The most important checks, in about a fifth of a second unless a single call takes longer."""
    until = time.monotonic() + _QUICK
    lines = [on_mount(mounts.kind(root))]
    try:
        store = BoardFiles(Disk(root), this_host())
        with on_trial(store, root, _QUICK_ROUNDS, _QUICK_SECONDS) as trial:
            steps: dict[str, Callable[[], Ability]] = {
                "times": partial(_times, trial, patient=False),
                "keep": partial(_keep, trial),
                "rename": partial(_race, trial, "rename"),
            }
            for ability, step in steps.items():
                if time.monotonic() < until:
                    lines.append(_safely(ability, step))
    except StorageError as error:
        lines.append(Ability("write", BAD, str(error)))
    return verdict(lines)


def _safely(ability: str, step: Callable[[], Ability]) -> Ability:
    """The result of a step; a disk that fails now and then gets two more tries."""
    for _ in range(2):
        with suppress(OSError, StorageError):
            return step()
    try:
        return step()
    except OSError as error:
        return refused(ability, error)
    except StorageError as error:
        return Ability(ability, BAD, str(error))


def _race(trial: Trial, kind: str, *, needed: bool = True) -> Ability:
    disk = trial.ground(kind)
    return raced(kind, race(kind, disk, disk, trial.rounds, trial.seconds), needed=needed)


def _keep(trial: Trial) -> Ability:
    disk = trial.ground("kept")
    if not keeps(disk):
        text = "no RENAME_NOREPLACE here, so dibs checks the destination first"
        return Ability("keep", NOTE, text, {"keeps": False})
    for name in ("src", "dst"):
        disk.create(name, b"")
    with suppress(FileExistsError):
        disk.rename("src", "dst", keep=True)
        return Ability("keep", BAD, "a rename replaced a file although the disk was asked not to")
    return _race(trial, "keep")


def _link(trial: Trial) -> Ability:
    disk = trial.ground("linked")
    disk.create("src", b"")
    try:
        disk.link("src", "dst")
    except OSError as error:
        text = f"no hard links ({answer(error)}); dibs creates exclusively instead"
        return Ability("link", NOTE, text, {"links": False})
    return _race(trial, "link")


def _times(trial: Trial, *, patient: bool) -> Ability:
    """Touch a file until its time changes, or that takes too long."""
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
    # A time that changed at once shows only that the step is shorter than the calls took.
    tick = later - first if same and later > first else grain((made, first, later))
    moves = store.clock.learn(again=True) if patient else store.rename_moves_ctime
    return timed(Times(tick, skew, apart, torn, later > first or not patient, moves))


def _touched(disk: Disk) -> tuple[int, int, int]:
    """A touched file's time as a heartbeat, its lead over this host, and mtime minus ctime."""
    disk.touch("beat")
    host, stat = time.time_ns(), disk.stat("beat")
    return max(stat.mtime, stat.ctime), stat.mtime - host, stat.mtime - stat.ctime


def _sync(trial: Trial) -> Ability:
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


def _names(trial: Trial) -> Ability:
    disk = trial.ground("named")
    claim = f"{'o' * 40}-{disk.nonce()}"
    stamp = Stamp(names.FENCE_MAX, names.ATTEMPTS_MAX, 0)
    stem = names.claim_stem("x" * names.ID_BYTES, stamp, claim)
    draft = f"{stem}.{disk.nonce()}"  # the draft of a record has the longest name of all
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
