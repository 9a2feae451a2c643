"""Many processes claim many tasks: each task is claimed once for each of its fences.

    python -m tests.postgres.many_claims                     8 processes, 60,000 tasks
    python -m tests.postgres.many_claims --tasks 2000        a shorter form
    python -m tests.postgres.many_claims --pooled            behind PgBouncer in transaction mode

One claim in ten is released or fails, so that its task is claimed again. The exit code is 0 when
every task was claimed as often as its fence says, and done once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import dibs
from dibs.model.settings import Settings
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import server
from tests.postgres.pooler import pooler
from tests.stress.crowd import Crowd

PROCESSES = 8
_LONGEST = 1800.0


def fill(board: Site, tasks: int) -> None:
    """Add so many tasks, as one statement: adding is not what is tried."""
    board.sql(
        """
        WITH made AS (
          INSERT INTO dibs.task
          SELECT eid, eid || '.available', 'available', 0, 0, 5, 0, 0, 0, '', dibs.clock(), 1
          FROM (SELECT 'task-' || lpad(n::text, 6, '0') AS eid
                FROM generate_series(1, %s) AS n) AS numbered
          RETURNING eid, name
        ), paid AS (
          INSERT INTO dibs.payload SELECT eid, convert_to(eid, 'UTF8') FROM made
        )
        INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
        SELECT eid, 1, dibs.floor(), dibs.clock(), 'add', '', name, 'drill', '', '', eid FROM made
        """,
        tasks,
    )


def work(where: str, file: Path, seed: int) -> None:
    """Claim until nothing is left; each claim and its end is a line of this process's file."""
    board, chance = dibs.open(where), random.Random(seed)
    with file.open("w") as said:
        while (claim := board.claim(owner=f"w{seed}")) is not None:
            said.write(f"claim {claim.id} {claim.fence}\n")
            assert claim.payload().decode() == claim.id
            fate = chance.random()
            verb = "fail" if fate < 0.05 else "release" if fate < 0.1 else "done"
            if verb == "fail":
                claim.fail("again", retry_in=0)
            elif verb == "release":
                claim.release()
            else:
                claim.done()
            said.write(f"{verb} {claim.id} {claim.fence}\n")


def race(board: Site, where: str, tasks: int, folder: Path) -> list[str]:
    """Fill the board and let the processes race; returns what went wrong."""
    fill(board, tasks)
    files = [folder / str(number) for number in range(PROCESSES)]
    begun = time.monotonic()
    with Crowd() as crowd:
        for number, file in enumerate(files):
            crowd.start(f"w{number}", partial(work, where, file, number))
        crowd.join(_LONGEST)
        faults = list(crowd.failures)
    seconds = time.monotonic() - begun
    lines = [line.split() for file in files for line in file.read_text().splitlines()]
    faults += judged(board, tasks, lines)
    each = Counter(line[0] for line in lines)
    print(
        f"{tasks:,} tasks, {PROCESSES} processes, {seconds:.1f} s: {each['claim']:,} claims "
        f"({each['claim'] / seconds:,.0f} a second), {each['done']:,} done, {len(faults)} faults"
    )
    return faults


def judged(board: Site, tasks: int, lines: list[list[str]]) -> list[str]:
    """What the processes say against the tables."""
    claims = [(ident, int(fence)) for verb, ident, fence in lines if verb == "claim"]
    done = Counter(ident for verb, ident, _ in lines if verb == "done")
    faults = [f"{key} was given {n} times" for key, n in Counter(claims).items() if n > 1]
    faults += [f"{ident} was done {n} times" for ident, n in done.items() if n != 1]
    if len(done) != tasks:
        faults.append(f"{len(done)} of {tasks} tasks were done")
    counts = Counter(ident for ident, _ in claims)
    rows = board.sql("SELECT eid, fence, state FROM dibs.task WHERE eid <> ''")
    for ident, fence, state in rows:
        if fence != counts[ident]:
            faults.append(f"{ident} has fence {fence} after {counts[ident]} claims")
        if state != "done":
            faults.append(f"{ident} is {state}")
    return faults + board.contradictions()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=60_000)
    parser.add_argument("--pooled", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        there = stack.enter_context(server())
        board = new_site(there, Settings(max_attempts=1000, retry=()))
        where = board.where
        if given.pooled:
            where = stack.enter_context(pooler(there)).url(board.database)
        faults = race(board, where, given.tasks, Path(folder))
    print("".join(f"FAULT {line}\n" for line in faults[:40]), end="")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
