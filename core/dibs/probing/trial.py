"""A folder of its own below `.dibs/` in which things are tried, and which is removed again."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from dibs.adding import DRAFT_AGE
from dibs.clock import SECOND, Sample
from dibs.disk import RECORD_BYTES, Disk
from dibs.errors import StorageError
from dibs.findings import Finding
from dibs.host import Process, this_host
from dibs.store import Store

_PROBER = "prober"
_is_trial = re.compile(r"trial\.[0-9A-F]{10}").fullmatch


class Trial(NamedTuple):
    """The folder in which everything is tried."""

    store: Store
    root: str
    folder: str
    rounds: int
    seconds: float
    """How many rounds a race has, and how long it lasts at the most."""

    def ground(self, name: str) -> Disk:
        """A new folder in it for one thing to be tried."""
        port = self.store.port
        path = f"{self.folder}/{name}.{port.nonce()}"
        port.mkdir(path)
        return Disk(f"{self.root}/{path}")


def opened(root: str) -> Store:
    """The board, ready to be written to."""
    store = Store(Disk(root), this_host())
    store.open()
    store.ready()
    return store


@contextmanager
def on_trial(store: Store, root: str, rounds: int, seconds: float) -> Iterator[Trial]:
    """The folder, for as long as the block lasts."""
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
    """Whether it can be told to keep a file in the way of a rename.

    Shown by a free name; where one is taken the kernel refuses by itself.
    """
    src, dst = disk.nonce(), disk.nonce()
    disk.create(src, b"")
    disk.rename(src, dst, keep=True)
    return disk.keeps


def _clear(folder: str) -> None:
    """Remove a trial, as far as it can be; a listing may still miss what was made just now.

    `rmtree` follows no link, also where another user of the board puts one there meanwhile.
    """
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.2)


def sweep(store: Store, root: str) -> None:
    """Remove the trials of probes that were killed."""
    for path in left_over(store):
        with suppress(OSError):
            _clear(f"{root}/{path}")


def findings(store: Store, root: str) -> list[Finding]:
    """The same for `check`, which mends it where it is told to."""
    text = "left by a probe that was killed"
    return [
        Finding("trial", path, text, partial(_clear, f"{root}/{path}")) for path in left_over(store)
    ]


def left_over(store: Store) -> Iterator[str]:
    """The folders of trials whose prober is gone for sure, or that are older than any can be."""
    trials = [*filter(_is_trial, store.ended(".dibs"))]
    now = store.clock.now() if trials else Sample(0, 0)  # a plain directory stays one
    for name in trials:
        path = f".dibs/{name}"
        with suppress(OSError):
            stat = store.port.stat(path)
            old = now.fs - stat.mtime > DRAFT_AGE * SECOND
            if stat.folder and (old or _prober_gone(store, path)):
                yield path


def _sign(store: Store, folder: str) -> None:
    """Write down who tries, so that a trial that was killed is known at once on this host."""
    process = store.host.process(os.getpid())
    if process is not None:
        with suppress(OSError):
            store.port.create(f"{folder}/{_PROBER}", json.dumps(process).encode())


def _prober_gone(store: Store, folder: str) -> bool:
    try:
        told = json.loads(store.port.read(f"{folder}/{_PROBER}", RECORD_BYTES)[0])
        host, boot, pidns, pid, start = told
    except (OSError, ValueError, TypeError, RecursionError):
        return False
    if type(pid) is not int or type(start) is not int:
        return False
    return store.host.gone(Process(host, boot, pidns, pid, start)) is True
