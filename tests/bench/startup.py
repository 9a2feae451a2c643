"""The cost of `import dibs` over a bare Python, and of a complete small process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dibs
from tests.bench.harness import Contender, Limit, Row, compare, interleave, spread
from tests.bench.peers import WAITING
from tests.bench.places import Setup, add_tasks, scratch

TITLE = "Start-up"

_PATH = f"import sys; sys.path.insert(0, {str(Path(dibs.__file__).parents[1])!r}); "
_TUI = f"sys.path.insert(0, {str(Path(dibs.__file__).parents[2] / 'tui')!r}); "
COMMAND = _TUI + "sys.argv = ['dibs', *sys.argv[1:]]; from dibs_tui.cli import main; main()"
_ONE_TASK = "import dibs; dibs.open(sys.argv[1]).claim(owner='bench').done()"


class Python:
    """A Python process that does one thing."""

    def __init__(self, cache: Path, code: str, *args: str) -> None:
        self.command = [sys.executable, "-c", _PATH + code, *args]
        self.env = os.environ | {"PYTHONPYCACHEPREFIX": str(cache)}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled

    def fill(self, count: int) -> None:
        pass

    def run(self, count: int) -> None:
        for _ in range(count):
            subprocess.run(self.command, check=True, env=self.env, stdout=subprocess.DEVNULL)


def run(setup: Setup) -> Iterator[Row]:
    with scratch(setup.ram) as where:
        cache, board = where / "cache", where / "board"
        dibs.open(board, create=True)
        rounds = setup.amount(60, 10)
        add_tasks(board, 0, WAITING + 2 * rounds)
        contenders: dict[str, Contender] = {
            "bare": Python(cache, "pass"),
            "import": Python(cache, "import dibs"),
            "board": Python(cache, "import dibs; dibs.Board"),
            "task": Python(cache, _ONE_TASK, str(board)),
            "claim": Python(cache, COMMAND, "-d", str(board), "claim", "--owner", "bench"),
            "sqlite3": Python(cache, "import sqlite3"),
        }
        times = interleave(contenders, rounds, 1)
    bare = times["bare"]
    for name, what in (("import", "import dibs"), ("board", "import dibs and use dibs.Board")):
        added = [a - b for a, b in zip(times[name], bare, strict=True)]
        yield compare(
            f"{what}, over bare Python",
            added,
            "python -c pass",
            bare,
            Limit("at most", 0.025, "measured"),
            note=f"quartiles {spread(added).low * 1e3:.1f} to {spread(added).high * 1e3:.1f} ms",
        )
    yield compare(
        "a process that imports, opens, claims one of 1,000 and is done with it",
        times["task"],
        "python -c pass",
        bare,
    )
    yield compare(
        "the command `dibs claim` on a board of 1,000 tasks",
        times["claim"],
        "python -c pass",
        bare,
        Limit("at most", 4),
    )
    yield compare("import sqlite3, for comparison", times["sqlite3"], "python -c pass", bare)
