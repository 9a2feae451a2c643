"""Starts servers quickly: one process that has imported everything, and forks for each board.

It reads lines of JSON, `[board, tokens, clocks]`, and answers each with `[url, pid]`. Each server
is a real process on its own board, whose clocks follow a file, so that a test can move them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import dibs
from dibs.board import locate
from dibs.cli.refusal import fields
from dibs.cli.say import fields_of
from dibs.cli.stats import prometheus
from dibs.host import boottime
from dibs.model.sample import SECOND
from dibs.serve import service, values
from dibs.serve.deliveries import HookPlace
from dibs.serve.hook_sender import HookSenders
from dibs.serve.listening import Address, serve
from tests.core.tools import Movable, World, opened


class FollowedWorld(World):
    """Clocks that another process moves: it writes them to a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self._path = path
        self._seen: object = None
        self._read()

    def _read(self) -> None:
        stat = self._path.stat()
        if (stat.st_ino, stat.st_mtime_ns) != self._seen:
            self.boot, steps = json.loads(self._path.read_text())
            self._steps = [tuple(step) for step in steps]
            # Last: another thread of the server must not take the old clocks for the new ones.
            self._seen = stat.st_ino, stat.st_mtime_ns

    def now_boot(self) -> int:
        self._read()
        return self.boot

    def shifted(self, stamp: int) -> int:
        self._read()
        return super().shifted(stamp)

    def advance(self, seconds: float) -> None:
        """A server that sleeps moves no clock of others."""
        time.sleep(seconds)


class MovedWorld(World):
    """Clocks that are moved here, and followed by a server."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.parent)
        self._path = path
        self._write()

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._write()

    def _write(self) -> None:
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps([self.boot, self._steps]))
        draft.replace(self._path)

    def boottime(self) -> int:
        return boottime() + self.boot


class Moved(Movable):
    """A directory in a world whose clocks another process moves."""

    world: FollowedWorld

    def boottime(self) -> int:
        return boottime() + self.world.now_boot()


def _serve(board: str, tokens: str, clocks: str, answer: int) -> None:
    world = FollowedWorld(Path(clocks))

    def moved(where: str, host: str = "", *, step: float = 0.0) -> Any:
        here = dibs.this_host()
        found: Any = opened(Moved(Path(where), world), here._replace(name=host) if host else here)
        found.for_host = partial(moved, where)  # another board in the same world
        found._store.patience = int(step * SECOND) or found._store.patience
        return found

    service.open = moved  # type: ignore[assignment, attr-defined]
    values.boottime = lambda: boottime() + world.now_boot()  # type: ignore[attr-defined]
    wording = service.Wording(fields, fields_of, prometheus)

    def listening(url: str) -> None:
        os.write(answer, json.dumps([url, os.getpid()]).encode() + b"\n")

    address = Address("127.0.0.1", 0)
    senders = HookSenders(board, HookPlace(""), (), (), print)
    asyncio.run(serve(locate(board), tokens, address, 1000, wording, listening, senders))


def main() -> None:
    """Fork a server for each line, until standard input ends; then all of them end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    answer = os.dup(1)
    os.dup2(2, 1)
    children = []
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                board, tokens, clocks = json.loads(line)
                _serve(board, tokens, clocks, answer)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
