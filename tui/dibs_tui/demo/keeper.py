"""The process that a crew hangs on: when its standard input ends it ends everything.

A pipe that the dashboard holds open is closed by the kernel however the dashboard dies.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from select import select
from typing import NamedTuple, NoReturn

import dibs
from dibs_tui.demo import tasks
from dibs_tui.demo.roles import FIRST, Worker

PREFIX = "dibs-demo-"
_SETTINGS = 'format = 2\nttl = 15\nplain_ttl = 20\nmax_attempts = 3\ndurability = "off"\n'
_AWAY = 12.0
"""Seconds that a stopped worker stays away."""
_LOOK = 0.25


class Post(NamedTuple):
    """One place in the crew, to be filled again when whoever had it has died."""

    owner: str
    role: Callable[[Worker], None]
    host: str = ""
    """Made up, unlike the process; this one's where the process is a claim's proof of life."""
    ttl: float = 15
    again: float = 5
    """Seconds until another takes the place."""


CREW = (
    Post("web-1", Worker.steady, "web-1"),
    Post("web-3", Worker.steady, "web-3"),
    Post("gpu-2", Worker.steady, "gpu-2", ttl=24),
    Post("agent-7", Worker.crash, again=15),
    Post("agent-12", Worker.hang, "web-3", ttl=6),
    Post("agent-9", Worker.pause, "gpu-2", ttl=6),
    Post("sh-4", Worker.shell),
    Post("deployer", Worker.hold, "web-1"),
    Post("hotfixer", Worker.wait, "web-3"),
    Post("producer", Worker.produce),
    Post("janitor", Worker.reap),
)


class Keeper:
    """Starts the crew, replaces who dies, wakes who was stopped, and ends them all."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._posts: dict[int, Post] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._life, self._alive = os.pipe()

    def run(self) -> None:
        """Until the standard input ends."""
        gc.freeze()  # pages that a collection has written to are shared with nobody
        try:
            for post in CREW:
                self._start(post)
            while not select([sys.stdin], [], [], _LOOK)[0]:
                self._look()
                self._do_what_is_due()
        finally:
            self._end()

    def _start(self, post: Post) -> None:
        pid = os.fork()
        if not pid:
            self._be(post)
        with suppress(OSError):  # both sides do it, so that neither has to wait for the other
            os.setpgid(pid, pid)
        self._posts[pid] = post

    def _be(self, post: Post) -> NoReturn:
        """The life of a worker, which never comes back into the keeper's code."""
        try:
            os.setpgid(0, 0)
            os.close(self._alive)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            post.role(Worker(self._path, post.host, post.owner, post.ttl, self._life))
        finally:
            os._exit(1)

    def _look(self) -> None:
        """Whoever has died or was stopped since the last look."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if not pid:
                    return
                if os.WIFSTOPPED(status):
                    self._after(_AWAY, partial(self._wake, pid))
                else:
                    post = self._posts.pop(pid)
                    self._after(post.again, partial(self._start, post))

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, act))

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        due = [act for at, act in self._later if at <= now]
        self._later = [(at, act) for at, act in self._later if at > now]
        for act in due:
            act()

    def _wake(self, pid: int) -> None:
        if pid in self._posts:
            os.kill(pid, signal.SIGCONT)

    def _end(self) -> None:
        os.close(self._alive)
        for pid in self._posts:
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self._posts:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def main(parent: str | None = None) -> None:
    """Make the board below `parent`, say where, and keep its crew until the input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    try:
        _furnish(path)
        print(path, flush=True)
        _fall_silent()
        Keeper(path).run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        remove(path)


def remove(path: str) -> None:
    """Remove the board, into which somebody who only looks may still write a moment longer."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(0.05)


def _furnish(path: str) -> None:
    os.mkdir(f"{path}/.dibs")
    with open(f"{path}/.dibs/board.toml", "x", encoding="utf-8") as file:
        file.write(_SETTINGS)
    board = dibs.open(path, create=True)
    for draft in islice(tasks.stream(), FIRST):
        board.add(draft.id, draft.payload, priority=draft.priority)


def _fall_silent() -> None:
    """Let go of the pipe on which the path was said: its end says that the board is ready."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
