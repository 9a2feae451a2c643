"""`python -m tests.filesystems.hostile`: every fault on every verb, then storms.

Each verb runs once for each reply that can be lost, with and without the kernel's caches, and under
every other fault; then there is a storm of `--seconds` in every climate. It takes about a quarter
of an hour. With DIBS_EVERY_FAULT=1 pytest tries the same on the verbs and the dashboard.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.filesystems.hostile import storm
from tests.filesystems.hostile.mount import pair, why_not
from tests.filesystems.hostile.verbs import KERNEL, Stage, trials


def verbs(folder: Path) -> tuple[int, list[str], Counter[str]]:
    """The number of verbs that were tried, what was wrong, and what the mounts counted."""
    wrong: list[str] = []
    tried, counts = 0, Counter[str]()
    for cached in (False, True):
        place = folder / f"cached-{cached}"
        place.mkdir()
        with pair(place, **(KERNEL if cached else {})) as mounts:
            stage = Stage(mounts, place / "links")
            for trial in trials(full=True):
                if trial.cached is cached:
                    found = list(stage.all(trial))
                    print(f"{trial.name}: {len(found)} wrong", *found, sep="\n    ", flush=True)
                    wrong += found
            tried += stage.played
            counts += mounts.counts()
    return tried, wrong, counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.filesystems.hostile")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="length of each storm in seconds (default: 60)"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if reason := why_not():
        print(f"NO HOSTILE FILE SYSTEM WAS TRIED: {reason}")
        return 1
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        tried, wrong, counts = verbs(Path(scratch))
        print(f"{tried} verbs, {len(wrong)} wrong; {storm.shown(counts)}", flush=True)
        broken = [name for name in storm.CLIMATES if not storm_passes(name, Path(scratch), args)]
    return 1 if wrong or broken else 0


def storm_passes(name: str, scratch: Path, args: argparse.Namespace) -> bool:
    """Run a storm in a climate; whether it found no fault."""
    habit, caches = storm.CLIMATES[name]
    place = scratch / name.replace(" ", "-")
    place.mkdir()
    tasks = int(20 * args.seconds)
    plan = storm.Plan(tasks=tasks, seconds=args.seconds, seed=args.seed, habit=habit)
    verdict = storm.storm(place, plan, **caches)
    print(f"{name}: {storm.report(verdict)}", flush=True)
    return not verdict.faults and verdict.done == verdict.tasks


if __name__ == "__main__":
    sys.exit(main())
