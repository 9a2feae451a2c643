"""The storm on a database: random acts with leases of 30 ms, judged from two logs.

    python -m tests.postgres.storm                      the full form: 60 seconds, 6 workers
    python -m tests.postgres.storm --seconds 600        a longer one
    python -m tests.postgres.storm --seed 7             another storm

Workers claim, beat, note, ask and end their claims in time or long after; a reaper requeues, an
operator acts on what was there a moment ago. Then the journal is replayed against a table of the
transitions, what the workers relied on is looked up in it, and the tables are compared with each
other. The exit code is 0 when there is no violation.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.model.settings import Settings
from tests.patience import PATIENCE
from tests.postgres import actors
from tests.postgres.actors import Scene
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import server
from tests.postgres.judge import broken
from tests.postgres.replay import violations
from tests.stress import ledger
from tests.stress.crowd import Crowd

SHORT_LEASES = """
CREATE OR REPLACE FUNCTION dibs.is_ttl(p_ttl double precision) RETURNS boolean
LANGUAGE sql IMMUTABLE AS 'SELECT p_ttl > 0'
"""
"""Let workers make leases of less than a second, which no user may."""


class Plan(NamedTuple):
    """The size and the parameters of a storm."""

    seconds: float = 60.0
    workers: int = 6
    tasks: int = 40
    ttl: float = 0.03
    seed: int = 1


class Verdict(NamedTuple):
    """What a storm showed."""

    faults: tuple[str, ...]
    figures: dict[str, int]

    def __str__(self) -> str:
        shown = ", ".join(f"{number} {what}" for what, number in self.figures.items())
        return "".join(f"FAULT {line}\n" for line in self.faults[:40]) + (
            f"{shown}\n{len(self.faults)} violations"
        )


def storm(place: Site, folder: Path, plan: Plan) -> Verdict:
    """Run a storm on a new board, and judge it."""
    log_file = folder / "ledger"
    log_file.touch()
    chance = random.Random(plan.seed)
    board = place.board
    for number in range(plan.tasks):
        board.add(f"task-{number:03}", f"payload {number}".encode(), priority=chance.randrange(10))
    with Crowd() as crowd:
        place.sql(SHORT_LEASES)
        scene = Scene(place.where, log_file, plan.ttl, plan.seed, crowd.halt)
        for number in range(plan.workers):
            owner = f"worker-{number}"
            crowd.start(owner, partial(actors.worker, scene, owner))
        crowd.start("reaper", partial(actors.reaper, scene))
        crowd.start("operator", partial(actors.operator, scene))
        until = time.monotonic() + plan.seconds
        while time.monotonic() < until and not crowd.failures:
            crowd.fallen(until - time.monotonic())
        crowd.word()
        crowd.join(PATIENCE)
        failures = list(crowd.failures)
    events = list(board.log.oldest_first())
    lines = ledger.read(log_file)
    names = [task.name for task in board.snapshot().tasks.values()]
    faults = [
        *failures,
        *violations(events, names, place.floors()),
        *broken(events, lines, plan.ttl),
        *place.contradictions(),
        *spoilt(board),
    ]
    verbs = Counter(event.verb for event in events)
    words = Counter(f"{line.word} {line.more}" for line in lines if line.word == actors.OK)
    words.update(line.word for line in lines if line.word in (ledger.LOST, ledger.UNCERTAIN))
    refused = sum(int(line.more) for line in lines if line.word == ledger.OPERATOR)
    return Verdict(tuple(faults), {**verbs, **words, "refused": refused})


def spoilt(board: dibs.Board) -> list[str]:
    """Tasks whose payload is not the one that was added."""
    return [
        f"{task.name} holds {data!r}"
        for task in board.snapshot().tasks.values()
        if task.kind == "task"
        and (data := board.payload(task)) != f"payload {int(task.id[5:])}".encode()
    ]


def settings() -> Settings:
    """Those of a storm's board."""
    return Settings(max_attempts=6, retry=())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, number in Plan()._asdict().items():
        parser.add_argument(f"--{name}", type=type(number), default=number)
    plan = Plan(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory() as folder, server() as there:
        verdict = storm(new_site(there, settings()), Path(folder), plan)
    print(verdict)
    return int(bool(verdict.faults))


if __name__ == "__main__":
    sys.exit(main())
