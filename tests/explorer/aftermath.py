"""What a board looks like after all actors ended and the shipped janitor has run on a copy of it.

No incomplete step may remain. The answer depends on the world alone, so it is cached.
"""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from dibs.files import checkup, janitor, upgrading
from dibs.files.board_files import MARK, BoardFiles
from dibs.files.journal import Journal
from dibs.files.port import Stat
from dibs.model.errors import DibsError
from dibs.model.sample import Sample

from .desk import Options, SimHost, TrustedClock
from .simdisk import Err, Looked, SimWorld
from .simtree import SECOND, Half

_ROUNDS = 6
_PAUSE = 4000 * SECOND


class Remains(NamedTuple):
    """What is left at the end."""

    files: dict[str, bytes]
    """Maps path to content."""
    errors: tuple[str, ...]


class DirectPort:
    """`dibs.files.port.Port` without a scheduler: every call completes at once."""

    read_only = False

    keeps = True

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._minted = 0

    def _do(self, op: str, *args: Any) -> Any:
        result = getattr(self._world, op)(0, *args)
        if type(result) is Half:
            return self._world.finish(result)
        if type(result) is Err:
            raise OSError(result.code, os.strerror(result.code), *args[:1])
        if type(result) is Looked:
            return self._world.rename(0, result.src, result.dst, False)
        return result

    def names(self, folder: str) -> list[str]:
        return list(self._do("names", folder))

    def missing(self, path: str) -> bool:
        return not self._world.exists(path)

    def unfit(self, path: str) -> str:
        return "" if self.stat(path).regular else "a task is a file"

    def stat(self, path: str) -> Stat:
        found: Stat = self._do("stat", path)
        return found

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        found: tuple[bytes, Stat] = self._do("read", path, limit, offset)
        return found

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        self._do("create", path, data, sync)

    def append(self, path: str, data: bytes) -> None:
        self._do("append", path, data)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        self._do("rename", src, dst, keep)

    def link(self, src: str, dst: str) -> None:
        self._do("link", src, dst)

    def unlink(self, path: str) -> None:
        self._do("unlink", path)

    def mkdir(self, path: str) -> None:
        self._do("mkdir", path)

    def rmdir(self, path: str) -> None:
        self._do("rmdir", path)

    def touch(self, path: str) -> None:
        self._do("touch", path)

    def nameless(self) -> Stat:
        raise OSError(errno.EOPNOTSUPP, "no file without a name here")

    def sync(self, path: str) -> None:
        self._do("sync", path)

    def boottime(self) -> int:
        return self._world.boottime(0)

    def sleep(self, seconds: float) -> None:
        self._world.elapsed += int(seconds * SECOND)

    def nonce(self) -> str:
        self._minted += 1
        return sha256(f"aftermath/{self._minted}".encode()).hexdigest()[:10].upper()


class NullJournal(Journal):
    """A journal that is not kept."""

    def write(self, *_: object, **__: object) -> None:
        pass

    def torn(self) -> list[str]:
        return []

    def overlong(self) -> list[tuple[str, int]]:
        return []


_known: WeakKeyDictionary[SimWorld, dict[int, Remains]] = WeakKeyDictionary()


def settled(world: SimWorld, options: Options) -> Remains:
    """The world after a few janitor passes, long after all actors ended."""
    known = _known.setdefault(world, {})
    key = hash((world.hash, world.elapsed, world.skew))
    rest = known.get(key)
    if rest is None:
        saved, moved = world.save(), world.moved
        try:
            rest = known[key] = _settle(world, options)
        finally:
            world.load(saved)
            world.moved = moved
    return rest


def _settle(world: SimWorld, options: Options) -> Remains:
    errors: tuple[str, ...] = ()
    for _ in range(_ROUNDS):
        before = world.dirs
        world.elapsed += _PAUSE
        errors = _clean(world, options)
        if world.dirs is before:
            break
    files = {path: world.inodes[ino].data for path, ino in world.files().items()}
    return Remains(files, errors)


def _clean(world: SimWorld, options: Options) -> tuple[str, ...]:
    port, host = DirectPort(world), SimHost("last", "boot-last", "ns", "op")
    store = BoardFiles(port, host)
    store.settings = options.settings
    store._ready = True
    clock = TrustedClock(port, host)
    clock.begin(Sample(world.now(), port.boottime()))
    store.clock = clock
    store.journal = NullJournal(port, host, clock)
    try:
        if world.find(MARK) in world.dirs:
            upgrading.upgrade_at(port, host)
        reaped = janitor.reap(store)
        left = checkup.repair(store, checkup.check(store))
    except (DibsError, OSError) as error:
        return (f"the janitor failed: {error!r}",)
    return (*reaped.refused, *(f"{f.kind} {f.name}: {f.text}" for f in left))
