"""What the tests of the core share: boards to try, clocks that can be moved, and children."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import dibs
from dibs.checkup_ids import note_copied
from dibs.disk import Disk, Stat
from dibs.settings import dump
from dibs.store import Store
from tests.patience import PATIENCE

SECOND = 1_000_000_000
NOBODY = 65534
Hook = Callable[[str], None]
T = TypeVar("T")


class World:
    """The clocks of one simulated machine: files keep the time at which they were touched."""

    def __init__(self, scratch: Path) -> None:
        self.boot = 0
        self.fs = 0
        self._steps: list[tuple[int, int]] = []
        self._probe = scratch / ".world"
        self._probe.touch()

    def told(self, stamp: int) -> int:
        """What a file's real time is in this world."""
        return stamp + sum(step for since, step in self._steps if since <= stamp)

    def advance(self, seconds: float) -> None:
        """Let time pass, as both clocks tell it."""
        self.boot += int(seconds * SECOND)
        self.step(seconds)

    def step(self, seconds: float) -> None:
        """Set the file system's clock; nothing that was touched before changes its times."""
        before = self._tick()
        while self._tick() == before:  # times are as coarse as the kernel's tick
            pass
        self.fs += int(seconds * SECOND)
        self._steps.append((self._tick(), int(seconds * SECOND)))

    def _tick(self) -> int:
        self._probe.touch()
        return self._probe.stat().st_mtime_ns


class Movable(Disk):
    """A real directory in a world whose clocks can be moved; sleeping moves them too."""

    def __init__(self, root: Path, world: World) -> None:
        super().__init__(str(root))
        self.world = world
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}
        self.listed = 0
        """How many names listings have shown."""

    def boottime(self) -> int:
        return super().boottime() + self.world.boot

    def sleep(self, seconds: float) -> None:
        self.world.advance(seconds)

    def names(self, folder: str) -> list[str]:
        self._call(self.before, "names", folder)
        found = super().names(folder)
        self.listed += len(found)
        return found

    def stat(self, path: str) -> Stat:
        self._call(self.before, "stat", path)
        return self._told(super().stat(path))

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        self._call(self.before, "read", path)
        data, stat = super().read(path, limit, offset)
        return data, self._told(stat)

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        self._call(self.before, "create", path)
        super().create(path, data, sync)
        self._call(self.after, "create", path)

    def touch(self, path: str) -> None:
        self._call(self.before, "touch", path)
        super().touch(path)
        self._call(self.after, "touch", path)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        self._call(self.before, "rename", src)
        super().rename(src, dst, keep)
        self._call(self.after, "rename", src)

    def link(self, src: str, dst: str) -> None:
        self._call(self.before, "link", dst)
        super().link(src, dst)
        self._call(self.after, "link", dst)

    def unlink(self, path: str) -> None:
        self._call(self.before, "unlink", path)
        super().unlink(path)

    def _call(self, hooks: dict[str, Hook], verb: str, path: str) -> None:
        if verb in hooks:
            hooks[verb](path)

    def _told(self, stat: Stat) -> Stat:
        told = self.world.told
        return stat._replace(mtime=told(stat.mtime), ctime=told(stat.ctime))


def settle(path: Path, **settings: object) -> None:
    """Give a directory a `board.toml`, without durability unless a test asks for it."""
    (path / ".dibs").mkdir(parents=True, exist_ok=True)
    fields = dibs.Settings()._asdict() | {"durability": "off"} | settings
    (path / ".dibs/board.toml").write_bytes(dump(dibs.Settings(**fields)))


def opened(port: Disk, host: dibs.Host | None = None) -> dibs.Board:
    """The board behind a port, as one more process would open it."""
    store = Store(port, host or dibs.this_host())
    store.copied = lambda: note_copied(store)
    store.open()
    return dibs.Board(store, port.root)


class Place:
    """A board in a world of its own, and as many processes on it as a test wants."""

    def __init__(self, scratch: Path, **settings: object) -> None:
        self.path = scratch / "board"
        self.world = World(scratch)
        settle(self.path, **settings)
        self.board, self.port = self.another()
        self.board.reap()  # what has to be found out about the mount is known from here on

    def another(self, host: dibs.Host | None = None) -> tuple[dibs.Board, Movable]:
        """The board as another process sees it."""
        port = Movable(self.path, self.world)
        return opened(port, host), port

    def names(self) -> list[str]:
        """The names of tasks, locks and strangers, wherever they lie."""
        own = ("done", "failed", ".dibs")
        found = [p.name for p in self.path.iterdir() if p.name not in own]
        for folder in own[:2]:
            if (self.path / folder).is_dir():
                found += [f"{folder}/{p.name}" for p in (self.path / folder).iterdir()]
        found += [str(p.relative_to(self.path)) for p in self.path.glob(".dibs/free/*/*")]
        return sorted(found)

    def records(self) -> list[str]:
        """The claim records."""
        return sorted(p.name for p in (self.path / ".dibs/records").iterdir())


def in_child(
    work: Callable[[], T],
    *,
    uid: int | None = None,
    umask: int | None = None,
) -> T:
    """What a forked process finds, perhaps as another user; one that hangs fails the test."""
    readable, writable = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(readable)
        _work(work, writable, uid, umask)
    os.close(writable)
    data = b""
    until = time.monotonic() + PATIENCE
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([readable], [], [], left)[0]:
                raise AssertionError(f"still at it after {PATIENCE} s")
            chunk = os.read(readable, 1 << 16)
            if not chunk:
                break
            data += chunk
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(readable)
    good, found = pickle.loads(data)
    assert good, found
    result: T = found
    return result


def _work(work: Callable[[], T], pipe: int, uid: int | None, umask: int | None) -> None:
    try:
        if umask is not None:
            os.umask(umask)
        if uid is not None and not os.geteuid():
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        answer = pickle.dumps((True, work()))
    except BaseException:
        answer = pickle.dumps((False, traceback.format_exc()))
    while answer:
        answer = answer[os.write(pipe, answer) :]
    os._exit(0)


def give(path: Path, uid: int) -> None:
    """Hand a whole tree to another user, where this one may."""
    if os.geteuid():
        return
    for entry in [path, *path.rglob("*")]:
        os.chown(entry, uid, uid, follow_symlinks=False)
