"""Shared by the tests of the core: boards, clocks that can be moved, and child processes."""

from __future__ import annotations

import os
import pickle
import select
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import dibs
from dibs.files.board_files import BoardFiles
from dibs.files.checkup_ids import note_copied
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs.files.port import Stat
from dibs.model.settings import dump
from tests.patience import PATIENCE

SECOND = 1_000_000_000
NOBODY = 65534
Hook = Callable[[str], None]
T = TypeVar("T")


class Killed(BaseException):
    """The process dies in this call."""


class World:
    """The clocks of a simulated machine; a file keeps the time at which it was touched."""

    def __init__(self, scratch: Path) -> None:
        self.boot = 0
        self.fs = 0
        self._steps: list[tuple[int, int]] = []
        self._probe = scratch / ".world"
        self._probe.touch()

    def shifted(self, stamp: int) -> int:
        """The time in this world of a file's real time."""
        return stamp + sum(step for since, step in self._steps if since <= stamp)

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.boot += int(seconds * SECOND)
        self.step(seconds)

    def step(self, seconds: float) -> None:
        """Set the file system's clock; files that were touched before keep their times."""
        before = self._tick()
        while self._tick() == before:  # file times have the resolution of the kernel's tick
            pass
        self.fs += int(seconds * SECOND)
        self._steps.append((self._tick(), int(seconds * SECOND)))

    def _tick(self) -> int:
        self._probe.touch()
        return self._probe.stat().st_mtime_ns


class Movable(Disk):
    """A real directory in a world whose clocks can be moved; a sleep moves them too."""

    def __init__(self, root: Path, world: World) -> None:
        super().__init__(str(root))
        self.world = world
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}
        self.listed = 0
        """The number of names that listings have returned."""

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
        return self._shifted(super().stat(path))

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        self._call(self.before, "read", path)
        data, stat = super().read(path, limit, offset)
        return data, self._shifted(stat)

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        self._call(self.before, "create", path)
        super().create(path, data, sync)
        self._call(self.after, "create", path)

    def append(self, path: str, data: bytes) -> None:
        self._call(self.before, "append", path)
        super().append(path, data)
        self._call(self.after, "append", path)

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

    def _shifted(self, stat: Stat) -> Stat:
        shifted = self.world.shifted
        return stat._replace(mtime=shifted(stat.mtime), ctime=shifted(stat.ctime))


def settle(path: Path, **settings: object) -> None:
    """Write a `board.toml`; durability is off and failures are retried at once, unless a test
    wants otherwise."""
    (path / ".dibs").mkdir(parents=True, exist_ok=True)
    fields = dibs.Settings()._asdict() | {"durability": "off", "retry": ()} | settings
    (path / ".dibs/board.toml").write_bytes(dump(dibs.Settings(**fields)))


def opened(port: Disk, host: dibs.Host | None = None) -> FilesBoard:
    """The board behind a port, as another process would open it."""
    store = BoardFiles(port, host or dibs.this_host())
    store.copied = lambda: note_copied(store)
    store.open()
    return FilesBoard(store, port.root)


class Place:
    """A board in its own world, and as many processes on it as a test wants."""

    def __init__(self, scratch: Path, **settings: object) -> None:
        self.path = scratch / "board"
        self.world = World(scratch)
        settle(self.path, **settings)
        self.board, self.port = self.another()
        self.board.reap()  # from here on the traits of the mount are known

    def another(self, host: dibs.Host | None = None) -> tuple[FilesBoard, Movable]:
        """The board as another process sees it."""
        port = Movable(self.path, self.world)
        return opened(port, host), port

    def other(self, host: dibs.Host | None = None) -> FilesBoard:
        """The same, without its port."""
        return self.another(host)[0]

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.world.advance(seconds)

    def names(self) -> list[str]:
        """The names of tasks, locks and unknown files, in all folders."""
        own = ("done", "failed", ".dibs", ".paused")
        found = [p.name for p in self.path.iterdir() if p.name not in own]
        for folder in own[:2]:
            if (self.path / folder).is_dir():
                found += [f"{folder}/{p.name}" for p in (self.path / folder).iterdir()]
        found += [str(p.relative_to(self.path)) for p in self.path.glob(".dibs/free/*/*")]
        return sorted(found)

    def signed(self, by: str) -> str:
        """The same: the log names whoever acted as they named themselves."""
        return by

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.path, ignore_errors=True)

    def records(self) -> list[str]:
        """The claim records."""
        return sorted(p.name for p in (self.path / ".dibs/records").iterdir())


class News:
    """The events of a log: each call returns those since the call before."""

    def __init__(self, log: dibs.Log, cursor: dibs.Cursor | None = None) -> None:
        self._log = log
        self._cursor = cursor

    def __call__(self) -> list[dibs.Event]:
        events, self._cursor = self._log.since(self._cursor)
        return events


def in_child(
    work: Callable[[], T],
    *,
    uid: int | None = None,
    umask: int | None = None,
) -> T:
    """What a function returns in a forked process, maybe as another user; a hang fails the test."""
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
                raise AssertionError(f"still running after {PATIENCE} s")
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
    """Give a complete tree to another user, if this one may."""
    if os.geteuid():
        return
    for entry in [path, *path.rglob("*")]:
        os.chown(entry, uid, uid, follow_symlinks=False)
