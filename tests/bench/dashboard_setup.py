"""Shared by the dashboard benchmarks: programs on terminals, boards, and a calm machine."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dibs
from tests.bench.dashboard_fleet import probe
from tests.bench.places import Setup, add_tasks, others_busy, scratch
from tests.bench.pty_terminal import ROWS, Terminal

ROOT = Path(__file__).resolve().parents[2]
LIVE = "● live".encode()
STEADY = 40
"""The number of unchanged claims; the first of them are on the screen, the oldest on top."""
_DASHBOARD = "import sys; from dibs_tui.cli import main; sys.exit(main())"
_TEXTUAL = """
from textual.app import App
from textual.widgets import Label
class Empty(App):
    def compose(self):
        yield Label("nothing but a label")
Empty().run()
"""
_CLOCK = """
import time
from textual.app import App
from textual.widgets import Label
class Clock(App):
    def compose(self):
        yield Label("nothing but a clock", id="clock")
    def on_mount(self):
        clock = self.query_one(Label)
        self.set_interval(1.0, lambda: clock.update(time.strftime("%H:%M:%S")))
Clock().run()
"""
_CALM = 0.3


class Stage(NamedTuple):
    """The folder of one run, with its own compiled modules, settings and boards."""

    where: Path
    busy: float
    """The number of cores that other processes used at the start."""
    pause: float
    """Seconds of rest for a program that has just become live."""

    @property
    def env(self) -> dict[str, str]:
        """An environment without the user's settings and caches."""
        path = [str(ROOT / part) for part in ("", "core", "tui")]
        env = os.environ | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "XDG_STATE_HOME": str(self.where / "state"),
            "XDG_CONFIG_HOME": str(self.where / "config"),
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONPYCACHEPREFIX": str(self.where / "cache"),
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
        return env

    def dashboard(self, board: Path | str) -> Terminal:
        """Start the dashboard as for a first-time user."""
        return self.dibs(board)

    def dibs(self, *argv: str | Path, rows: int = ROWS) -> Terminal:
        """Start `dibs` with these arguments on a terminal, as for a first-time user."""
        shutil.rmtree(self.where / "state", ignore_errors=True)
        return Terminal([sys.executable, "-c", _DASHBOARD, *map(str, argv)], self.env, rows)

    def plain(self, board: Path | str) -> Terminal:
        return Terminal([sys.executable, "-m", "tests.bench.dashboard_plain", str(board)], self.env)

    def textual(self) -> Terminal:
        return Terminal([sys.executable, "-c", _TEXTUAL], self.env)

    def clock(self) -> Terminal:
        return Terminal([sys.executable, "-c", _CLOCK], self.env)

    def board(self, tasks: int, *, probes: int = 0, steady: int = 0) -> Path:
        """A new board with available tasks, probes and unchanged claims."""
        board = self.where / f"board-{tasks}-{time.monotonic_ns()}"
        dibs.open(board, create=True)
        for n in range(steady):
            (board / f"steady-{n:02}.f1.other-{n:010X}.claimed").touch()
        if probes:
            (board / "first.f0p8.available").touch()
        for n in range(probes):
            (board / f"{probe(n)}.available").touch()
        add_tasks(board, 0, tasks)
        return board

    @contextmanager
    def fleet(self, *args: object) -> Iterator[subprocess.Popen[bytes]]:
        """Run the other process inside the block."""
        command = [sys.executable, "-m", "tests.bench.dashboard_fleet", *map(str, args)]
        with subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    @property
    def note(self) -> str:
        return f"{self.busy:.1f} cores were busy with something else" if self.busy > _CALM else ""

    def settle(self, terminal: Terminal) -> None:
        """Wait until a dashboard has read everything and is idle."""
        terminal.wait(LIVE)
        time.sleep(self.pause)


@contextmanager
def stage(setup: Setup) -> Iterator[Stage]:
    """Start when the machine is calm, or after a minute."""
    with scratch(setup.ram) as where:
        found = Stage(where, _calm(setup.amount(60, 0)), setup.amount(3, 1))
        with found.textual() as terminal:  # compiles the modules that the others import
            terminal.wait(b"nothing but a label")
        with found.dashboard(found.board(1)) as terminal:
            terminal.wait(LIVE)
        yield found


def _calm(seconds: float) -> float:
    until = time.monotonic() + seconds
    while (busy := others_busy()) > _CALM and time.monotonic() < until:
        pass
    return busy


def share(terminal: Terminal, seconds: float) -> float:
    """The share of a core that a program uses, in percent."""
    before, start = terminal.cpu(), time.monotonic()
    time.sleep(seconds)
    return 100 * (terminal.cpu() - before) / (time.monotonic() - start)


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def words(text: str) -> bytes:
    """A pattern for text on the screen, which a terminal may get in several pieces."""
    return re.escape(text.encode())
