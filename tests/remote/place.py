"""A board in a directory behind a real server process, for the tests of the contract."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import dibs
from dibs.remote.engine import RemoteBoard
from dibs.remote.sessions import RemoteSession
from dibs.serve.tokens import Role, Tokens
from tests.core import tools
from tests.remote.farm import MovedWorld

ROOT = Path(__file__).parents[2]


class Farm:
    """The process that starts the servers of one test process."""

    def __init__(self) -> None:
        self.tokens = tempfile.mkdtemp(prefix="dibs-tokens-")
        self.token = Tokens(self.tokens).add("op", Role.OPERATOR)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.remote.farm"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def serve(self, board: Path, clocks: Path) -> tuple[str, int]:
        """A new server: its address and its pid."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([str(board), self.tokens, str(clocks)]) + "\n")
        process.stdin.flush()
        url, pid = json.loads(process.stdout.readline())
        return url, pid

    def end(self) -> None:
        """End every server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
        shutil.rmtree(self.tokens, ignore_errors=True)


@cache
def _farm(pid: int) -> Farm:
    found = Farm()
    atexit.register(lambda: found.end() if os.getpid() == pid else None)
    return found


class Place:
    """A board behind a server, with clocks that can be moved."""

    def __init__(self, scratch: Path, **settings: object) -> None:
        farm = _farm(os.getpid())
        self.path = scratch / "board"
        tools.settle(self.path, **settings)
        self._clocks = scratch / "clocks"
        self.world = MovedWorld(self._clocks)
        tools.opened(tools.Movable(self.path, self.world)).reap()  # the mount's traits are known
        self.url, self.pid = farm.serve(self.path, self._clocks)
        os.environ["DIBS_TOKEN"] = farm.token
        self.board = self.other()

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        return "127.0.0.1", int(self.url.rpartition(":")[2])

    def restart(self) -> None:
        """End the server as a power cut does, and start another one at another port."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.url, self.pid = _farm(os.getpid()).serve(self.path, self._clocks)

    def other(self, host: dibs.Host | None = None) -> RemoteBoard:
        """The board as another process sees it."""
        session = RemoteSession(self.url, host or dibs.this_host())
        session.boottime = self.world.boottime
        session.sleep = self.advance
        return RemoteBoard(session)

    def advance(self, seconds: float) -> None:
        """Let time pass on all clocks."""
        self.world.advance(seconds)

    def names(self) -> list[str]:
        """The exact names of all tasks and locks, as they are stored."""
        return tools.Place.names(self)  # type: ignore[arg-type]

    def signed(self, by: str) -> str:
        """The name of the token comes first: a client can give any other."""
        return f"op/{by}"

    def remove(self) -> None:
        """End the server, and remove the directory."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        shutil.rmtree(self.path, ignore_errors=True)
