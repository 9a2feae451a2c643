"""Another tree against this one, in one interleaved run: `python -m tests.bench.against OLD`.

Each tree's code runs in processes of its own. A ratio is the median over the rounds, so load that
lasts for a round does not change it. Processor time is given too: it hardly depends on the load.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import dibs
from tests.bench import dashboard_live
from tests.bench.dashboard_setup import ROOT, STEADY, Stage, share, words
from tests.bench.places import add_tasks, scratch
from tests.bench.pty_terminal import Terminal

_CYCLES = """
import sys, time
from pathlib import Path
from tests.bench.bare import Bare
from tests.bench.ours import Dibs
kind, where, durability = sys.argv[1:]
contender = (Bare if kind == "bare" else Dibs)(Path(where), durability)
for line in sys.stdin:
    count = int(line)
    contender.fill(count)
    wall, cpu = time.perf_counter(), time.process_time()
    contender.run(count)
    print((time.perf_counter() - wall) / count, (time.process_time() - cpu) / count, flush=True)
"""
_LIST = "import os, sys; os.listdir(sys.argv[1])"
_COUNT = 500
_OWN = {"DIBS_BOARD", "DIBS_DIR", "DIBS_OWNER"}


class Took(NamedTuple):
    """What one measurement took, in seconds or percent of a core."""

    wall: float
    cpu: float


Measure = Callable[[], Took]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.against", description=__doc__)
    parser.add_argument("old", type=Path, help="the other tree, such as a `git worktree`")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    trees = {"new": ROOT, "old": args.old.resolve()}
    print(f"{'':<44}{'wall: new':>11}{'old':>11}{'new/old':>9}{'cpu':>7}")
    with scratch(Path("/dev/shm")) as where, ExitStack() as ends:
        for part in args.only:
            for what, contenders in PARTS[part](where, trees, ends).items():
                _report(what, _interleaved(contenders, args.rounds))
    return 0


def _interleaved(contenders: Mapping[str, Measure], rounds: int) -> dict[str, list[Took]]:
    """The samples of each contender; the first round warms the caches and is dropped."""
    order, chance = list(contenders), random.Random(1)
    found: dict[str, list[Took]] = {name: [] for name in order}
    for _ in range(rounds + 1):
        chance.shuffle(order)
        for name in order:
            found[name].append(contenders[name]())
    return {name: samples[1:] for name, samples in found.items()}


def _report(what: str, found: Mapping[str, list[Took]]) -> None:
    """Print a line for the two trees, and one for each tree against a bare baseline."""
    for base in ("old", "bare", "old bare"):
        for name in [n for n in found if base in found and _compared(n, base)]:
            mids = [statistics.median(s.wall for s in found[n]) for n in (name, base)]
            ratios = [_ratio(found[name], found[base], part) for part in (0, 1)]
            line = what if base == "old" else f"{what}: {name} / {base}"
            print(f"{line:<44}{mids[0]:>11.6f}{mids[1]:>11.6f}{ratios[0]:>9.2f}{ratios[1]:>7.2f}")
    sys.stdout.flush()


def _compared(name: str, base: str) -> bool:
    pairs = {"old": ("new",), "bare": ("new", "old"), "old bare": ("old",)}
    return name in pairs[base]


def _ratio(one: list[Took], other: list[Took], part: int) -> float:
    return statistics.median(a[part] / b[part] for a, b in zip(one, other, strict=True) if b[part])


def _env(tree: Path, cache: Path) -> dict[str, str]:
    """Run this tree's code, with compiled modules and without the user's settings."""
    path = os.pathsep.join(str(tree / part) for part in ("", "core", "tui"))
    env = {key: value for key, value in os.environ.items() if key not in _OWN}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env | {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(cache)}


def _dibs(tree: Path) -> list[str]:
    """The command `dibs` of a tree."""
    scripts = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["dibs"].partition(":")
    code = f"import sys; from {module} import {function} as main; sys.exit(main())"
    return [sys.executable, "-c", code]


def _cycles(where: Path, trees: dict[str, Path], ends: ExitStack) -> dict[str, dict[str, Measure]]:
    """Claim to done in one process, with the same system calls bare."""
    found: dict[str, dict[str, Measure]] = {}
    for level in ("off", "normal"):
        contenders = found[f"claim to done, durability {level}"] = {}
        kinds = (("new", "dibs"), ("old", "dibs"), ("bare", "bare"), ("old bare", "bare"))
        for name, kind in kinds:
            tree = trees["old" if name.startswith("old") else "new"]
            board = where / f"{level} {name}"
            board.mkdir()
            process = subprocess.Popen(
                [sys.executable, "-c", _CYCLES, kind, str(board), level],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=_env(tree, where / "cache"), cwd=tree,
            )  # fmt: skip
            ends.callback(process.kill)
            contenders[name] = _asked(process)
    return found


def _asked(process: subprocess.Popen[str]) -> Measure:
    def measure() -> Took:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{_COUNT}\n")
        process.stdin.flush()
        wall, cpu = process.stdout.readline().split()
        return Took(float(wall), float(cpu))

    return measure


def _commands(
    where: Path, trees: dict[str, Path], ends: ExitStack
) -> dict[str, dict[str, Measure]]:
    """A cold `dibs claim`, on a short and a long board, and a bare listing of the same board."""
    found: dict[str, dict[str, Measure]] = {}
    for size in (1_000, 100_000):
        contenders = found[f"cold `dibs claim` of {size:,}"] = {}
        for name, tree in trees.items():
            board = where / f"{size} {name}"
            _without_settings(dibs.open(board, create=True))
            add_tasks(board, 0, size)
            command = [*_dibs(tree), "-d", str(board), "claim", "--owner", "bench"]
            contenders[name] = _run(command, _env(tree, where / "cache"))
        listing = [sys.executable, "-c", _LIST, str(where / f"{size} new")]
        contenders["bare"] = _run(listing, _env(ROOT, where / "cache"))
    return found


def _without_settings(board: dibs.Board) -> None:
    """Remove the settings of a new board: an older tree may not know all of them."""
    Path(board.location.where, ".dibs", "board.toml").unlink()


def _run(command: list[str], env: dict[str, str]) -> Measure:
    def measure() -> Took:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime)

    return measure


class _Tree(Stage):
    """A stage whose programs run the code of a given tree."""

    tree = ROOT

    @property
    def env(self) -> dict[str, str]:
        mine = _env(self.tree, self.where / "cache")
        return super().env | {key: mine[key] for key in ("PYTHONPATH", "PYTHONPYCACHEPREFIX")}

    def board(self, tasks: int, *, probes: int = 0, steady: int = 0) -> Path:
        made = super().board(tasks, probes=probes, steady=steady)
        _without_settings(dibs.open(made))
        return made

    def dashboard(self, board: Path | str) -> Terminal:
        shutil.rmtree(self.where / "state", ignore_errors=True)
        return Terminal([*_dibs(self.tree), str(board)], self.env)


def _staged(where: Path, tree: Path) -> _Tree:
    class Staged(_Tree):
        pass

    Staged.tree = tree
    return Staged(where, 0.0, 3.0)


def _frames(where: Path, trees: dict[str, Path], ends: ExitStack) -> dict[str, dict[str, Measure]]:
    """The first frame with rows, from the start of the process."""
    found: dict[str, dict[str, Measure]] = {}
    for size in (0, 10_000, 100_000):
        contenders = found[f"first frame, {size:,} tasks"] = {}
        for name, tree in trees.items():
            stage = _staged(where, tree)
            contenders[name] = _frame(stage, stage.board(size), size)
    return found


def _frame(stage: Stage, board: Path, size: int) -> Measure:
    patterns = [words(f"{size:,} available"), *([words("task-0000000")] if size else [])]

    def measure() -> Took:
        with stage.dashboard(board) as terminal:
            wall = max(terminal.wait(pattern) for pattern in patterns) - terminal.started
            return Took(wall, terminal.cpu())

    return measure


def _idle(where: Path, trees: dict[str, Path], ends: ExitStack) -> dict[str, dict[str, Measure]]:
    """The share of a core that the dashboard of 10,000 tasks uses while nothing changes."""

    def measured(stage: Stage, board: Path) -> Measure:
        def measure() -> Took:
            with stage.dashboard(board) as terminal:
                stage.settle(terminal)
                return Took(*[share(terminal, 20.0)] * 2)

        return measure

    board = _staged(where, ROOT).board(10_000)
    time.sleep(62.0)  # until then the ages on the screen change every second
    return {"idle, 10,000 tasks, % of a core": {
        name: measured(_staged(where, tree), board) for name, tree in trees.items()
    }}  # fmt: skip


def _live(where: Path, trees: dict[str, Path], ends: ExitStack) -> dict[str, dict[str, Measure]]:
    """1,000 changes a second on a board of 10,000 tasks: the median to the screen."""

    def measured(stage: Stage) -> Measure:
        def measure() -> Took:
            found = dashboard_live.watch(stage, 10_000, 10)
            return Took(found.p50, found.share)

        return measure

    contenders = {name: measured(_staged(where, tree)) for name, tree in trees.items()}
    return {f"1,000 changes/s, {STEADY} rows, p50": contenders}


PARTS = {
    "cycles": _cycles, "commands": _commands, "frames": _frames, "idle": _idle, "live": _live,
}  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(main())
