"""A process with its own view of a board, which a test stops, kills, or whose clock is wrong.

python -m tests.postgres.child WHERE OFFSET     reads expressions, a line each, and answers
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import dibs
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]


class Child:
    """The parent's side. `offset`: by how many seconds its clock is wrong."""

    def __init__(self, where: str, offset: float = 0.0) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "core"), str(ROOT / "tui")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.postgres.child", where, str(offset)],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Signal it."""
        self._process.send_signal(number)

    def ask(self, expression: str) -> Any:
        """The value of an expression there; the name of its class if it raised an error."""
        self.begin(expression)
        return self.answer()

    def begin(self, expression: str) -> None:
        """Send an expression, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{expression}\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the oldest expression that has none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the child has ended: {self._process.wait(PATIENCE)}"
        return json.loads(line)


def shift_clock(seconds: float) -> None:
    """Let every clock of this process that tells the time of day be wrong by so much."""
    real, real_ns = time.time, time.time_ns
    real_get, real_get_ns = time.clock_gettime, time.clock_gettime_ns

    def get(which: int) -> float:
        return real_get(which) + (seconds if which == time.CLOCK_REALTIME else 0)

    def get_ns(which: int) -> int:
        return real_get_ns(which) + int(seconds * 1e9 if which == time.CLOCK_REALTIME else 0)

    shifted: dict[str, Callable[..., object]] = {
        "time": lambda: real() + seconds,
        "time_ns": lambda: real_ns() + int(seconds * 1e9),
        "clock_gettime": get,
        "clock_gettime_ns": get_ns,
    }
    vars(time).update(shifted)


def main(where: str, offset: str) -> None:
    shift_clock(float(offset))
    known: dict[str, Any] = {"dibs": dibs, "board": dibs.open(where), "time": time, "os": os}
    for line in sys.stdin:
        try:
            found = eval(line, known)
        except dibs.DibsError as error:
            found = type(error).__name__
        json.dump(found, sys.stdout, default=str)
        print(flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
