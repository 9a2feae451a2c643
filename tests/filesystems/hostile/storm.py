"""The storm on two hostile mounts of one folder, as on two hosts.

    python -m tests.filesystems.hostile.storm                   the full form: five minutes
    python -m tests.filesystems.hostile.storm --seconds 60      a shorter one
    python -m tests.filesystems.hostile.storm --seed 7          another one

Workers on both mounts claim, beat and commit; the reaper and the operator are on the far one.
Workers are killed and stopped, and one mount or both often get another fault. When the time is up
all faults end, the crew finishes, and the board is judged as after the other storms.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dibs.files.engine import open_directory
from dibs.model.settings import Settings, dump
from tests.filesystems.hostile import tolerant_crew
from tests.filesystems.hostile.faults import CALM, SECOND, WEATHER, Faults, both
from tests.filesystems.hostile.mount import Pair, pair, why_not
from tests.stress import audit, crew, ledger
from tests.stress.audit import Verdict
from tests.stress.crew import Scene
from tests.stress.crowd import Chaos, Crowd, blow
from tests.stress.ledger import boottime
from tests.stress.weather import asked, summary, weather

CLIMATES: dict[str, tuple[Faults, dict[str, float]]] = {
    "two hosts": (CALM, {}),
    "two hosts whose kernels cache for a second": (
        CALM,
        {"attr_timeout": 1, "entry_timeout": 1, "negative_timeout": 1},
    ),
    "times of two seconds": (Faults(tick=2 * SECOND), {}),
    "one time of a second": (Faults(tick=SECOND, one_time=True), {}),
    "clocks that differ": (Faults(skew=2.0, offset=-3600.0), {}),
}
"""The permanent faults, and the kernel's caches."""
INJECTED = ("lost", "failed", "full", "read-only", "refused", "hung", "stale", "listed wrong")
"""The counts of the mounts that are faults; delays are left out."""


class Plan(NamedTuple):
    """The size and the parameters of a storm."""

    tasks: int = 6_000
    workers: int = 6
    seconds: float = 300.0
    seed: int = 1
    ttl: float = 3.0
    gap: float = 0.5
    """The mean seconds between two strikes at a worker."""
    long: float = 0.06
    """The share of the tasks that take up to two ttls."""
    change: float = 0.7
    """The seconds between two changes of the faults."""
    habit: Faults = CALM
    """The permanent faults of both mounts."""
    events: Sequence[Faults] = WEATHER
    """The faults that a mount may have for a while."""


class Sky:
    """Changes the faults of the mounts from time to time; counts done tasks as `finished` does."""

    def __init__(self, mounts: Pair, plan: Plan, finished: Callable[[], int]) -> None:
        self._mounts, self._plan, self._finished = mounts, plan, finished
        self._chance = random.Random(plan.seed)
        self._deck: list[Faults] = []
        self._next = boottime()
        self._end = boottime() + int(plan.seconds * 1e9)

    def __call__(self) -> int:
        now, plan = boottime(), self._plan
        if now >= self._next:
            self._next = now + int(self._chance.uniform(0.5, 1.5) * plan.change * 1e9)
            for mount in (self._mounts.near, self._mounts.far):
                mount.be(both(plan.habit, self._deal() if now < self._end else CALM))
        return self._finished()

    def _deal(self) -> Faults:
        """The next fault; each comes once before any repeats."""
        if not self._deck:
            self._deck = self._chance.sample(self._plan.events, len(self._plan.events))
        return self._deck.pop()


def storm(where: Path, plan: Plan, **options: float) -> Verdict:
    """Run a storm in a new directory; `options` are the kernel's caches on both mounts."""
    with pair(where, **options) as mounts:
        board_dir, log_file = mounts.below / "board", where / "outside.log"
        settings = Settings(ttl=plan.ttl, max_attempts=4, retry=(0.5,))
        (board_dir / ".dibs").mkdir(parents=True)
        (board_dir / ".dibs/board.toml").write_bytes(dump(settings))
        board = open_directory(board_dir, create=True)
        ids = [f"task-{n:05}" for n in range(plan.tasks)]
        for ident in ids:
            board.add(ident, crew.payload_of(ident))
        log_file.touch()
        with Crowd() as crowd:
            _blow(crowd, mounts, log_file, plan)
        left = [*board.repair(), *board.check()]
        lines, counts = ledger.read(log_file), mounts.counts()
    verdict = audit.judge(board_dir, ids, board.log.read(), lines, plan.ttl)
    refused = {line.name for line in lines if line.word == tolerant_crew.REFUSED}
    faults = [
        *crowd.failures,
        *(f"{stem} is done, and its worker was refused" for stem in refused & _done(board_dir)),
        *(f"check: {finding.kind} {finding.name}: {finding.text}" for finding in left),
    ]
    figures = verdict.figures | _of_mounts(counts) | {"reported refused": len(refused)}
    return verdict._replace(faults=(*verdict.faults, *faults), figures=figures)


def _blow(crowd: Crowd, mounts: Pair, log_file: Path, plan: Plan) -> None:
    near, far = (
        Scene(mount.place / "board", log_file, plan.ttl, plan.long, plan.seed, crowd.halt)
        for mount in (mounts.near, mounts.far)
    )
    workers = {f"known-{n}" if n % 2 else f"hidden-{n}": n for n in range(plan.workers)}
    bodies = {
        name: partial(
            tolerant_crew.worker, near if n % 4 < 2 else far, name, name.startswith("known")
        )
        for name, n in workers.items()
    }
    done = mounts.below / "board/done"
    sky = Sky(mounts, plan, lambda: len(os.listdir(done)))
    sky()
    with weather(crowd, near, "hostile storm") as outside:
        crowd.start("reaper", partial(tolerant_crew.reaper, far))
        crowd.start("operator", partial(tolerant_crew.operator, far))
        chaos = Chaos(outside, plan.seed, 2 * plan.ttl)
        blow(crowd, chaos, bodies, sky, plan.tasks, seconds=plan.seconds, gap=plan.gap)
        mounts.calm()


def _done(board: Path) -> set[str]:
    return set(os.listdir(board / "done"))


def _of_mounts(counts: Counter[str]) -> dict[str, int]:
    injected = {what: counts[what] for what in INJECTED if counts[what]}
    total = {"calls": counts["calls"], "faults injected": sum(injected.values())}
    return total | {f"calls {what}": number for what, number in injected.items()}


def shown(counts: Counter[str]) -> str:
    """The counts of the mounts in one line."""
    return ", ".join(f"{number} {what}" for what, number in _of_mounts(counts).items())


def report(verdict: Verdict) -> str:
    """The figures and, in the last line, the verdict."""
    figures = verdict.figures
    return (
        f"{summary(verdict.faults, figures)}\n"
        f"{verdict.tasks} tasks: {verdict.done} done; operations run {figures['calls']}, "
        f"faults injected {figures['faults injected']}, lost {verdict.lost}, "
        f"double commits {verdict.twice}, live claims reaped {verdict.live_reaped}"
    )


def main() -> int:
    if reason := why_not():
        print(f"NO HOSTILE FILE SYSTEM WAS TRIED: {reason}")
        return 1
    verdict = asked(__doc__, Plan, ("tasks", "workers", "seconds", "seed", "ttl"), storm)
    print(report(verdict))
    return 1 if verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
