"""The storm: real processes on one board, killed and stopped at random, judged from two logs.

    python -m tests.stress.storm                     the full form: 10,000 tasks, 8 workers
    python -m tests.stress.storm --dir /dev/shm/x    in another directory, which must be new
    python -m tests.stress.storm --seed 7            another storm
    python -m tests.stress.storm --shells 4          this many more workers, on the shell library

Workers claim, beat and commit; a reaper requeues stale claims and runs repairs; an operator
force-releases, parks, requeues and prioritizes what it sees. Meanwhile workers are killed with
SIGKILL, and stopped with SIGSTOP for up to three ttls. When the tasks are done, or after
`--seconds`, the strikes stop and the crew finishes the rest. Then the listing, the journal and a
log that the workers keep outside of the board are judged against each other. The exit code is 0
when nothing is lost, committed twice or reaped alive, and no other guarantee is broken. It takes a
few minutes.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from dibs.files.engine import open_directory
from dibs.model.settings import Settings, dump
from tests.stress import audit, crew, ledger, library
from tests.stress.audit import Verdict
from tests.stress.crew import Scene
from tests.stress.crowd import Chaos, Crowd, blow
from tests.stress.weather import asked, summary, weather


class Plan(NamedTuple):
    """The size and the parameters of a storm."""

    tasks: int = 10_000
    workers: int = 8
    seconds: float = 300.0
    seed: int = 1
    ttl: float = 1.5
    gap: float = 0.25
    """The mean seconds between two strikes."""
    long: float = 0.03
    """The share of the tasks that take up to two ttls."""
    shells: int = 0
    """Additional workers on the shell library."""
    stale: float = 0.0
    """The seconds until one mount shows changes over another; at most a fifth of the ttl."""


class Land(NamedTuple):
    """The place of a storm that is no plain directory."""

    ways: Sequence[Path]
    """Paths to one new board: workers use all of them, reaper and operator the last."""
    crew_module: ModuleType = crew
    breaker: Callable[[Scene], None] | None = None
    """An additional process, which breaks the mounts of these paths."""


def storm(where: Path, plan: Plan, land: Land | None = None) -> Verdict:
    """Run a storm in a new directory, and judge the result."""
    land = land or Land((where / "board",))
    board_dir, log_file = land.ways[0], where / "outside.log"
    settings = Settings(ttl=plan.ttl, max_attempts=4, retry=(0.5,))
    (board_dir / ".dibs").mkdir(parents=True)
    (board_dir / ".dibs/board.toml").write_bytes(dump(settings))
    board = open_directory(board_dir, create=True)
    chance = random.Random(plan.seed)
    ids = [f"task-{n:05}" for n in range(plan.tasks)]
    for ident in ids:
        board.add(ident, crew.payload_of(ident), priority=chance.choice((0, 5, 5, 5, 9)))
    log_file.touch()
    with Crowd() as crowd:
        scene = Scene(board_dir, log_file, plan.ttl, plan.long, plan.seed, crowd.halt)
        _blow(crowd, scene, plan, land)
    left = board.repair()
    left += board.check()
    lines = ledger.read(log_file)
    verdict = audit.judge(board_dir, ids, board.log.read(), lines, plan.ttl, plan.stale)
    faults = [
        *crowd.failures,
        *(f"check: {finding.kind} {finding.name}: {finding.text}" for finding in left),
    ]
    return verdict._replace(faults=(*verdict.faults, *faults))


def _blow(crowd: Crowd, scene: Scene, plan: Plan, land: Land) -> None:
    crew_module, scenes = land.crew_module, [scene._replace(board=way) for way in land.ways]
    workers = [f"known-{n}" if n % 2 else f"hidden-{n}" for n in range(plan.workers)]
    crew_of = {
        name: partial(
            crew_module.worker, scenes[n // 2 % len(scenes)], name, name.startswith("known")
        )
        for n, name in enumerate(workers)
    }
    with weather(crowd, scene, "storm") as outside:
        crowd.start("reaper", partial(crew_module.reaper, scenes[-1]))
        crowd.start("operator", partial(crew_module.operator, scenes[-1]))
        if land.breaker:
            crowd.start("breaker", partial(land.breaker, scene))
        blow(
            crowd,
            Chaos(outside, plan.seed, 3 * plan.ttl),
            crew_of | library.bodies(scene, plan.shells),
            lambda: _finished(scene.board),
            plan.tasks,
            seconds=plan.seconds,
            gap=plan.gap,
        )


def _finished(board: Path) -> int:
    """The number of done tasks; 0 while the disk does not answer."""
    try:
        return len(os.listdir(board / "done"))
    except OSError:
        return 0


def report(verdict: Verdict) -> str:
    """The figures and, in the last line, the verdict."""
    return (
        f"{summary(verdict.faults, verdict.figures)}\n"
        f"{verdict.tasks} tasks: {verdict.done} done, {verdict.lost} lost, "
        f"{verdict.twice} committed twice, {verdict.live_reaped} live claims reaped, "
        f"kills {verdict.figures['kills']}, stops {verdict.figures['stops']}"
    )


def main() -> int:
    verdict = asked(__doc__, Plan, ("tasks", "workers", "shells", "seconds", "seed"), storm)
    print(report(verdict))
    return 1 if verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
