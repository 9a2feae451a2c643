"""What becomes of a world that everybody has left: the shipped janitor works on a copy of it.

Nothing may stay half done. The answer depends on the world alone, so it is remembered.
"""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from dibs import checkup, janitor, upgrading
from dibs.clock import Sample
from dibs.disk import Stat
from dibs.errors import DibsError
from dibs.journal import Journal
from dibs.store import MARK, Store

from .desk import Options, SimHost, Steady
from .simdisk import Err, Looked, SimWorld
from .simtree import SECOND, Half

_ROUNDS = 6
_PAUSE = 4000 * SECOND


class Rest(NamedTuple):
    """What is left in the end."""

    files: dict[str, bytes]
    """Path to content."""
    errors: tuple[str, ...]


class Hand:
    """`dibs.disk.Port` without a scheduler: every call is done at once, every half in full."""

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


class Mute(Journal):
    """A journal that nobody will read."""

    def write(self, *_: object, **__: object) -> None:
        pass

    def torn(self) -> list[str]:
        return []

    def overlong(self) -> list[tuple[str, int]]:
        return []


_known: WeakKeyDictionary[SimWorld, dict[int, Rest]] = WeakKeyDictionary()


def settled(world: SimWorld, options: Options) -> Rest:
    """The world after a janitor came by a few times, long after everybody had gone."""
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


def _settle(world: SimWorld, options: Options) -> Rest:
    errors: tuple[str, ...] = ()
    for _ in range(_ROUNDS):
        before = world.dirs
        world.elapsed += _PAUSE
        errors = _clean(world, options)
        if world.dirs is before:
            break
    files = {path: world.inodes[ino].data for path, ino in world.files().items()}
    return Rest(files, errors)


def _clean(world: SimWorld, options: Options) -> tuple[str, ...]:
    port, host = Hand(world), SimHost("nobody", "boot-nobody", "ns", "op")
    store = Store(port, host)
    store.settings = options.settings
    store._ready = True
    clock = Steady(port, host)
    clock.begin(Sample(world.now(), port.boottime()))
    store.clock = clock
    store.journal = Mute(port, host, clock)
    try:
        if world.find(MARK) in world.dirs:
            upgrading.upgrade_at(port, host)
        reaped = janitor.reap(store)
        left = checkup.repair(store, checkup.check(store))
    except (DibsError, OSError) as error:
        return (f"the janitor failed: {error!r}",)
    return (*reaped.refused, *(f"{f.kind} {f.name}: {f.text}" for f in left))
