"""`python -m tests.filesystems.hostile`: everything that can go wrong, on every verb, then a storm.

Each verb once for each reply that can be lost, with and without the kernel's caches, and under
every other fault; then `storm` for `--seconds`. It takes about a quarter of an hour.
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
    """How many verbs were tried, what was wrong, and what the mounts counted."""
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
    parser.add_argument("--seconds", type=float, default=300.0, help="how long the storm blows")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if reason := why_not():
        print(f"NO HOSTILE FILE SYSTEM WAS TRIED: {reason}")
        return 1
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        tried, wrong, counts = verbs(Path(scratch))
        print(f"{tried} verbs, {len(wrong)} wrong; {storm.shown(counts)}", flush=True)
        (Path(scratch) / "storm").mkdir()
        plan = storm.Plan(seconds=args.seconds, seed=args.seed)
        verdict = storm.storm(Path(scratch) / "storm", plan)
    print(storm.report(verdict))
    return 1 if wrong or verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
