"""A separate folder below `.dibs/` in which things are tried, and which is removed afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from dibs.files.board_files import MARK, NEW, BoardFiles
from dibs.files.checkup import without_repair
from dibs.files.clock import PROBE
from dibs.files.disk import Disk
from dibs.files.lives import DRAFT_AGE
from dibs.host import this_host
from dibs.model.answers import Finding
from dibs.model.errors import StorageError, storage_error
from dibs.model.process import Process
from dibs.model.records import RECORD_BYTES
from dibs.model.sample import SECOND, Sample

_PROBER = "prober"
_NEEDED = (".dibs", NEW, PROBE)
"""The paths that a trial needs; missing ones are made, and removed afterwards."""
_is_trial = re.compile(r"trial\.[0-9A-F]{10}").fullmatch


class Trial(NamedTuple):
    """The folder for trying things, and how much to try."""

    store: BoardFiles
    root: str
    folder: str
    rounds: int
    seconds: float
    """The number of rounds of a race, and its longest duration."""

    def ground(self, name: str) -> Disk:
        """A new folder in it for trying one thing."""
        port = self.store.port
        path = f"{self.folder}/{name}.{port.nonce()}"
        port.mkdir(path)
        return Disk(f"{self.root}/{path}")


@contextmanager
def opened(root: str) -> Iterator[BoardFiles]:
    """The board, ready for writing; a plain directory stays a plain directory."""
    store = BoardFiles(Disk(root), this_host())
    store.open()
    if store.marked:
        store.ready()
        yield store
        return
    missing = [path for path in _NEEDED if not store.there(path)]
    try:
        for folder in (".dibs", NEW):
            store.port.mkdir(folder)
    except OSError as error:
        raise storage_error(error) from error
    try:
        yield store
    finally:
        _leave_plain(store, root, missing)


@contextmanager
def on_trial(store: BoardFiles, root: str, rounds: int, seconds: float) -> Iterator[Trial]:
    """The trial folder, which exists as long as the block runs."""
    folder = f".dibs/trial.{store.port.nonce()}"
    trial = Trial(store, root.rstrip("/"), folder, rounds, seconds)
    try:
        store.port.mkdir(trial.folder)
        _sign(store, trial.folder)
        yield trial
    except OSError as error:
        raise StorageError(f"{root}: {error.strerror}: nothing can be tried here") from error
    finally:
        _clear(f"{trial.root}/{trial.folder}")


def keeps(disk: Disk) -> bool:
    """Whether the disk can refuse to rename over a file.

    The destination must be free to find out; for a taken one the kernel refuses in any case.
    """
    src, dst = disk.nonce(), disk.nonce()
    disk.create(src, b"")
    disk.rename(src, dst, keep=True)
    return disk.keeps


def _clear(folder: str) -> None:
    """Remove a trial as far as possible; a listing may still miss files that were just made.

    `rmtree` follows no link, even if another user puts one there at the same time.
    """
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.2)


def _remove(store: BoardFiles, root: str, path: str) -> None:
    """Remove a trial; an error where the disk refuses."""
    folder = f"{root}/{path}"
    _clear(folder)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    _leave_plain(store, root, _NEEDED)


def _leave_plain(store: BoardFiles, root: str, made: Sequence[str]) -> None:
    """Remove what a probe made, unless another process has made a board of it meanwhile."""
    if store.look(MARK) is not False:
        return
    for path in reversed(made):
        remove = os.unlink if path == PROBE else os.rmdir
        with suppress(OSError):  # a folder that is in use is not empty
            remove(f"{root}/{path}")


def sweep(store: BoardFiles, root: str) -> None:
    """Remove the trials of killed probes."""
    for path in left_over(store):
        with suppress(OSError):
            _clear(f"{root}/{path}")


def findings(store: BoardFiles, root: str) -> list[Finding]:
    """The same as findings of `check`, with the repair."""
    text = "left by a probe that was killed"
    writable = os.access(f"{root}/.dibs", os.W_OK | os.X_OK) and not store.port.read_only
    found = [
        Finding("trial", path, text, partial(_remove, store, root, path))
        for path in left_over(store)
    ]
    return found if writable else [without_repair(finding) for finding in found]


def left_over(store: BoardFiles) -> Iterator[str]:
    """The trials whose prober has certainly exited, or that are older than any probe takes."""
    trials = [*filter(_is_trial, store.ended(".dibs"))]
    # Reading the clock must not make a plain directory a board; a user may lack write access.
    newest = store.port.stat("").mtime if trials else 0
    now = store.clock.now_or_newest(newest)[0] if trials else Sample(0, 0)
    for name in trials:
        path = f".dibs/{name}"
        with suppress(OSError):
            stat = store.port.stat(path)
            old = now.fs - stat.mtime > DRAFT_AGE * SECOND
            if stat.folder and (old or _prober_gone(store, path)):
                yield path


def _sign(store: BoardFiles, folder: str) -> None:
    """Write down the probing process, so that this host notices at once if it was killed."""
    process = store.host.process(os.getpid())
    if process is not None:
        with suppress(OSError):
            store.port.create(f"{folder}/{_PROBER}", json.dumps(process).encode())


def _prober_gone(store: BoardFiles, folder: str) -> bool:
    try:
        fields = json.loads(store.port.read(f"{folder}/{_PROBER}", RECORD_BYTES)[0])
        host, boot, pidns, pid, start = fields
    except (OSError, ValueError, TypeError, RecursionError):
        return False
    if type(pid) is not int or type(start) is not int:
        return False
    return store.host.gone(Process(host, boot, pidns, pid, start)) is True
