"""The storm: real processes on one board, killed and stopped at random, judged by two detectors.

    python -m tests.stress.storm                     the full form: 10,000 tasks, 8 workers
    python -m tests.stress.storm --dir /dev/shm/x    somewhere else; the directory must be new
    python -m tests.stress.storm --seed 7            another storm
    python -m tests.stress.storm --shells 4          as many more, on the shell library

Workers claim, beat and commit; a reaper gives back what fell silent and calls the doctor; an
operator force-releases, parks, requeues and reprioritises what it sees. Meanwhile workers are
killed with SIGKILL, and stopped with SIGSTOP for up to three ttls. When the tasks are done, or
after `--seconds`, the weather calms down and the crew finishes what is left. Then the listing,
the journal and a log that the workers keep outside of the board are judged against each other.
The exit code is 0 when nothing is lost, committed twice, or reaped alive, and nothing else broke
a promise. It takes a few minutes.
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

import dibs
from dibs.settings import Settings, dump
from tests.stress import audit, crew, ledger, library
from tests.stress.audit import Verdict
from tests.stress.crew import Scene
from tests.stress.crowd import Chaos, Crowd, blow
from tests.stress.weather import asked, told, weather


class Plan(NamedTuple):
    """How hard it blows."""

    tasks: int = 10_000
    workers: int = 8
    seconds: float = 300.0
    seed: int = 1
    ttl: float = 1.5
    gap: float = 0.25
    """Seconds between two strikes, on average."""
    long: float = 0.03
    """The share of the tasks that take up to two ttls."""
    shells: int = 0
    """Workers on the shell library, beside the others."""
    stale: float = 0.0
    """Seconds until one mount shows what was done over another; at most a fifth of the ttl."""


class Land(NamedTuple):
    """What the storm blows over, where that is no plain directory."""

    ways: Sequence[Path]
    """Paths to one new board: workers go by all of them, reaper and operator by the last."""
    people: ModuleType = crew
    breaker: Callable[[Scene], None] | None = None
    """One more process, which breaks what the ways lead over."""


def storm(where: Path, plan: Plan, land: Land | None = None) -> Verdict:
    """Let it blow in a new directory, and judge what it left."""
    land = land or Land((where / "board",))
    board_dir, log_file = land.ways[0], where / "outside.log"
    settings = Settings(ttl=plan.ttl, max_attempts=4)
    (board_dir / ".dibs").mkdir(parents=True)
    (board_dir / ".dibs/board.toml").write_bytes(dump(settings))
    board = dibs.open(board_dir, create=True)
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
    verdict = audit.judge(board_dir, ids, board.journal.read(), lines, plan.ttl, plan.stale)
    faults = [
        *crowd.failures,
        *(f"check: {finding.kind} {finding.name}: {finding.text}" for finding in left),
    ]
    return verdict._replace(faults=(*verdict.faults, *faults))


def _blow(crowd: Crowd, scene: Scene, plan: Plan, land: Land) -> None:
    people, scenes = land.people, [scene._replace(board=way) for way in land.ways]
    workers = [f"known-{n}" if n % 2 else f"hidden-{n}" for n in range(plan.workers)]
    crew_of = {
        name: partial(people.worker, scenes[n // 2 % len(scenes)], name, name.startswith("known"))
        for n, name in enumerate(workers)
    }
    with weather(crowd, scene, "storm") as outside:
        crowd.start("reaper", partial(people.reaper, scenes[-1]))
        crowd.start("operator", partial(people.operator, scenes[-1]))
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
    """How many tasks are done; none while the disk does not say."""
    try:
        return len(os.listdir(board / "done"))
    except OSError:
        return 0


def report(verdict: Verdict) -> str:
    """The figures and, as the last line, the verdict."""
    return (
        f"{told(verdict.faults, verdict.figures)}\n"
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
