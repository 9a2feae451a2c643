"""The other process: it changes a board at a steady rate, or only beats.

`python -m tests.bench.dashboard_fleet churn BOARD TASKS RATE SECONDS PROBES` prints, as JSON, when
it renamed each probe; `… told …` does the same and writes each change to the log, as dibs does;
`… beat BOARD TTL` beats every claim until it is killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dibs
from dibs.files.journal import Journal

WORKING = 300
"""The number of tasks that are claimed at any time."""
SHOWN = 0.4
"""Seconds for which a probe stays at the top."""
_TICK = 0.002
_LETTERS, _PLACES = 26, 4
Move = Callable[[str, str], None]


def probe(number: int) -> str:
    """The id of a probe: no other text on the screen contains its capitals, and it sorts last.

    Its capitals all differ from those of the two dozen probes before it, which may stand in its
    place: cells that read the same are not sent again, so an equal one would cut the id in two.
    """
    letters = (number + number // _LETTERS**place for place in range(1, _PLACES + 1))
    return "zz-" + "".join(chr(ord("A") + letter % _LETTERS) for letter in letters)


def changes(tasks: int) -> Iterator[tuple[str, str]]:
    """Endless renames: a task is claimed, done and requeued, while others stay claimed."""
    n = 0
    while True:
        yield _name(n, tasks, 0), _name(n, tasks, 1)
        if n >= WORKING:
            yield _name(n - WORKING, tasks, 1), _name(n - WORKING, tasks, 2)
        if n >= 2 * WORKING:
            yield _name(n - 2 * WORKING, tasks, 2), _name(n - 2 * WORKING, tasks, 3)
        n += 1


def _name(number: int, tasks: int, step: int) -> str:
    life, task = divmod(number, tasks)
    claim = f"task-{task:07}.f{life + 1}.worker-{number % 50}-{number:010X}"
    match step:
        case 0:
            return f"task-{task:07}.f{life}.available" if life else f"task-{task:07}.available"
        case 1:
            return f"{claim}.claimed"
        case 2:
            return f"done/{claim}"
    return f"task-{task:07}.f{life + 1}.available"


def _churn(tasks: int, rate: float, seconds: float, probes: int, move: Move) -> None:
    """Change names at this rate; in between, the probes move to the top and back."""
    renamed: dict[str, float] = {}
    waiting: list[tuple[float, Callable[[], None]]] = []
    source = changes(tasks)
    start = now = time.monotonic()
    made = shown = 0
    while now < start + seconds:
        while shown < probes and now >= start + seconds * shown / probes:
            ident = probe(shown)
            move(f"{ident}.available", f"{ident}.f0p9.available")
            renamed[ident] = time.monotonic()
            waiting.append((now + SHOWN, _demotion(ident, move)))
            shown += 1
            made += 1
        while waiting and waiting[0][0] <= now:
            waiting.pop(0)[1]()
            made += 1
        while made < rate * (now - start):
            move(*next(source))
            made += 1
        time.sleep(_TICK)
        now = time.monotonic()
    json.dump({"made": made, "seconds": now - start, "renamed": renamed}, sys.stdout)


def _demotion(ident: str, move: Move) -> Callable[[], None]:
    return lambda: move(f"{ident}.f0p9.available", f"{ident}.f1.available")


def _told() -> Move:
    """Renames, and writes that to the log."""
    log = dibs.open(".").log
    assert isinstance(log, Journal)

    def move(src: str, dst: str) -> None:
        os.rename(src, dst)
        log.write("move", os.path.basename(src).partition(".")[0], src, dst, "bench")

    return move


def _beat(ttl: float) -> None:
    """Beat every claim three times per ttl, evenly spread."""
    stems = sorted(os.listdir(".dibs/records"))
    due = time.monotonic()
    while True:
        for stem in stems:
            os.utime(f".dibs/records/{stem}")
            due += ttl / 3 / len(stems)
            time.sleep(max(0.0, due - time.monotonic()))


def main(argv: list[str]) -> None:
    what, board, *numbers = argv
    os.chdir(Path(board))
    if what == "beat":
        _beat(float(numbers[0]))
    else:
        tasks, rate, seconds, probes = map(float, numbers)
        _churn(int(tasks), rate, seconds, int(probes), os.rename if what == "churn" else _told())


if __name__ == "__main__":
    main(sys.argv[1:])
