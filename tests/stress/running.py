"""What the tests of `dibs run` share: real runs, the processes they start, and patience."""

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
    """What is found as soon as it is; a test does not wait for ever."""
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
    """Every live process that carries the claim in its environment."""
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
                if parent == run and b"dibs.run.watch" in (path / "cmdline").read_bytes():
                    return int(path.name)
        return 0

    return until(look)


class Site:
    """A board, the runs on it, and everything that has to be ended when the test is."""

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
        """`dibs run …`, its streams in pipes unless told otherwise."""
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*more.pop("dibs", DIBS), "-d", str(self.path), "run", *argv]
        run = subprocess.Popen(command, env=ENV | more.pop("env", {}), **(streams | more))
        self._runs.append(run)
        return run

    def python(self, program: str) -> list[str]:
        """A command that runs a little program, which knows where to leave its notes."""
        head = f"import os, signal, sys, time\nnotes = {str(self.notes)!r}\n"
        head += (
            "def note(name, text=None):\n"
            "    with open(f'{notes}/.{name}.{os.getpid()}', 'w') as f:\n"
            "        f.write(str(os.getpid()) if text is None else text)\n"
            "    os.rename(f'{notes}/.{name}.{os.getpid()}', f'{notes}/{name}')\n"
        )
        return ["--", sys.executable, "-c", head + program]

    def note(self, name: str) -> str:
        """What a command noted, once it has."""
        path = self.notes / name
        until(path.exists)
        return path.read_text()

    def pid(self, name: str) -> int:
        """The pid that a command noted; it will be gone when the test is."""
        pid = int(self.note(name))
        self._pids.add(pid)
        return pid

    def state(self, ident: str) -> dibs.Task:
        """The one name that an id has."""
        (task,) = self.board.find(ident)
        return task

    def reasons(self, ident: str, verb: str) -> list[str]:
        """What the journal tells of each such step."""
        return [event.reason for event in self.board.history(ident) if event.verb == verb]

    def end(self) -> None:
        """Kill what is left, each by its own pid."""
        left = self._pids | {run.pid for run in self._runs if run.poll() is None}
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for run in self._runs:
            run.communicate(timeout=PATIENCE)


@contextmanager
def site(path: Path, **settings: object) -> Iterator[Site]:
    """A board with runs on it, all ended at the end."""
    found = Site(path, **settings)
    try:
        yield found
    finally:
        found.end()


def ended(run: subprocess.Popen[bytes], code: int) -> tuple[bytes, bytes]:
    """What a run wrote, once it has ended with that code."""
    out, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == code, (run.returncode, out[-500:], err[-500:])
    assert b"Traceback" not in (err or b""), err
    return out, err


def events(err: bytes) -> list[dict[str, Any]]:
    """The events among the lines of a run's stderr."""
    return [json.loads(line) for line in err.splitlines() if line.startswith(b'{"v"')]
