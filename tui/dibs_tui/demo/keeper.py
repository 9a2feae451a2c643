"""The process that runs the demo's workers, and ends them when its standard input ends.

The input is a pipe from the dashboard, which the kernel closes however the dashboard dies.
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
from dibs.board import locate
from dibs_tui.demo import databases, tasks
from dibs_tui.demo.roles import FIRST, MAILS, Worker

PREFIX = "dibs-demo-"
PLACE = "DIBS_DEMO_DATABASE"
"""The variable with the database for the board; empty for a new directory."""
_SETTINGS = """\
format = 2
ttl = 15
plain_ttl = 20
durability = "off"
retry = ["5s", "15s", "20s"]
"""
_AWAY = 12.0
"""Seconds for which a worker stays stopped."""
_LOOK = 0.25


class Post(NamedTuple):
    """One place in the crew; it is filled again after its worker dies."""

    owner: str
    role: Callable[[Worker], None]
    host: str = ""
    """An invented host name; empty for the real one, where the process is a proof of life."""
    ttl: float = 15
    again: float = 5
    """Seconds until the place is filled again."""


CREW = (
    Post("web-1", Worker.steady, "web-1"),
    Post("web-3", Worker.steady, "web-3"),
    Post("gpu-2", Worker.steady, "gpu-2", ttl=24),
    Post("agent-7", Worker.crash, again=15),
    Post("agent-12", Worker.hang, "web-3", ttl=6),
    Post("agent-9", Worker.pause, "gpu-2", ttl=6),
    Post("agent-5", Worker.stall, "gpu-2", ttl=24),
    Post("mailer-1", Worker.mail, "web-1"),
    Post("mailer-2", Worker.mail, "web-2"),
    Post("agent-3", Worker.ask, "web-1"),
    Post("sh-4", Worker.shell),
    Post("deployer", Worker.hold, "web-1"),
    Post("hotfixer", Worker.wait, "web-3"),
    Post("producer", Worker.produce),
    Post("janitor", Worker.reap),
)


class CrewKeeper:
    """Starts the crew, replaces dead workers, resumes stopped ones, and ends them all."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._posts: dict[int, Post] = {}
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._life, self._alive = os.pipe()
        self._opened = time.monotonic()

    def run(self) -> None:
        """Keep the crew until the standard input ends."""
        gc.freeze()  # a collection would write to pages, which forked workers then cannot share
        try:
            for post in CREW:
                if post.role is not Worker.shell or not databases.is_database(self._path):
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
        """Run a worker in the forked process; never returns."""
        try:
            os.setpgid(0, 0)
            os.close(self._alive)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            post.role(Worker(self._path, post.host, post.owner, post.ttl, self._life, self._opened))
        finally:
            os._exit(1)

    def _look(self) -> None:
        """Notice workers that died or stopped since the last call."""
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
    """Make the board below `parent`, print its path, and run its crew until the input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    database = os.environ.pop(PLACE, "")
    if database:
        try:
            databases.make(database, _SETTINGS.encode())
        except dibs.DibsError as error:
            sys.exit(str(error))
    path = database or tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    try:
        _furnish(path)
        print(locate(path).label if database else path, flush=True)
        _close_output()
        CrewKeeper(path).run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        remove(path)


def remove(path: str) -> None:
    """Remove the board; a reader may still write into it for a moment, so this tries again."""
    if databases.is_database(path):
        databases.remove(path)
        return
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(0.05)


def _furnish(path: str) -> None:
    if not databases.is_database(path):
        os.mkdir(f"{path}/.dibs")
        with open(f"{path}/.dibs/board.toml", "x", encoding="utf-8") as file:
            file.write(_SETTINGS)
    board = dibs.open(path, create=True)
    for draft in (*islice(tasks.stream(), FIRST), *islice(tasks.mails(), MAILS)):
        board.add(draft.id, draft.payload, priority=draft.priority)


def _close_output() -> None:
    """Close the pipe with the path: its end says that the board is ready."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
