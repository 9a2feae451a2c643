"""Shared by the tests of `dibs run`: real runs, their processes, and waiting with a limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import dibs
from tests.core.tools import settle
from tests.patience import PATIENCE

CORE = Path(dibs.__file__).parents[1]
DIBS = (sys.executable, "-m", "dibs")
ENV = os.environ | {"PYTHONPATH": str(CORE), "USER": "tester"}
Found = TypeVar("Found")


def until(found: Callable[[], Found]) -> Found:
    """Wait for a true result and return it; fails after a time limit."""
    end = time.monotonic() + PATIENCE
    while not (it := found()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return it


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def marked(claim: str) -> set[int]:
    """Every live process with the claim in its environment."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"DIBS_CLAIM={claim}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found.add(int(path.name))
    return {pid for pid in found if alive(pid)}


def guard_of(run: int) -> int:
    """The pid of a run's guard."""

    def look() -> int:
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                parent = int((path / "stat").read_bytes().rpartition(b")")[2].split()[1])
                if parent == run and b"dibs.run.guard_process" in (path / "cmdline").read_bytes():
                    return int(path.name)
        return 0

    return until(look)


class Site:
    """A board, the runs on it, and everything that must end with the test."""

    def __init__(self, path: Path, **settings: object) -> None:
        self.path = path
        self.notes = path.parent / "notes"
        self.notes.mkdir()
        path.mkdir(exist_ok=True)
        settle(path, **settings)
        self.board = dibs.open(path)
        self._pids: set[int] = set()
        self._runs: list[subprocess.Popen[bytes]] = []

    def run(self, *argv: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start `dibs run …`, with its streams in pipes by default."""
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*more.pop("dibs", DIBS), "-d", str(self.path), "run", *argv]
        run = subprocess.Popen(command, env=ENV | more.pop("env", {}), **(streams | more))
        self._runs.append(run)
        return run

    def python(self, program: str) -> list[str]:
        """A command that runs a small program, which can leave notes for the test."""
        head = f"import os, signal, sys, time\nnotes = {str(self.notes)!r}\n"
        head += (
            "def note(name, text=None):\n"
            "    with open(f'{notes}/.{name}.{os.getpid()}', 'w') as f:\n"
            "        f.write(str(os.getpid()) if text is None else text)\n"
            "    os.rename(f'{notes}/.{name}.{os.getpid()}', f'{notes}/{name}')\n"
        )
        return ["--", sys.executable, "-c", head + program]

    def note(self, name: str) -> str:
        """Wait for a note of a command, and return it."""
        path = self.notes / name
        until(path.exists)
        return path.read_text()

    def pid(self, name: str) -> int:
        """The pid that a command noted; the process is ended with the test."""
        pid = int(self.note(name))
        self._pids.add(pid)
        return pid

    def state(self, ident: str) -> dibs.Task:
        """The task of an id that has one name."""
        (task,) = self.board.find(ident)
        return task

    def reasons(self, ident: str, verb: str) -> list[str]:
        """The reasons in the journal of each such event."""
        return [event.reason for event in self.board.log.of(ident) if event.verb == verb]

    def end(self) -> None:
        """Kill the remaining processes, each by its own pid."""
        left = self._pids | {run.pid for run in self._runs if run.poll() is None}
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for run in self._runs:
            run.communicate(timeout=PATIENCE)


@contextmanager
def site(path: Path, **settings: object) -> Iterator[Site]:
    """A board with runs on it, which end with the test."""
    found = Site(path, **settings)
    try:
        yield found
    finally:
        found.end()


def ended(run: subprocess.Popen[bytes], code: int) -> tuple[bytes, bytes]:
    """The output of a run that must end with this code."""
    out, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == code, (run.returncode, out[-500:], err[-500:])
    assert b"Traceback" not in (err or b""), err
    return out, err


def events(err: bytes) -> list[dict[str, Any]]:
    """The events in the standard error of a run."""
    return [json.loads(line) for line in err.splitlines() if line.startswith(b'{"v"')]
