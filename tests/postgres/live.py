"""From commit to painted row: the dashboard while others change a database 1,000 times a second.

    python -m tests.postgres.live                        10,000 tasks, 30 seconds
    python -m tests.postgres.live --seconds 10 --open    with a transaction left open elsewhere

Workers claim, finish and requeue tasks at that rate. Twenty times a second a probe moves to the
top, where it is visible: what is measured is the time from the return of that call to its id on
the terminal. The exit code is 0 when p99 is below 250 ms, and the dashboard below 20 % of a core.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import psycopg

import dibs
from dibs.model.settings import Settings
from tests.bench.dashboard_fleet import SHOWN, probe
from tests.bench.dashboard_setup import percentile, words
from tests.bench.pty_terminal import Terminal
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import server
from tests.postgres.many_claims import fill
from tests.stress.crowd import Crowd

ROOT = Path(__file__).parents[2]
RATE = 1000
WRITERS = 2
LONGEST, SHARE = 0.25, 20.0
LEAST = 1000
"""The tasks that the writers change, over and over: the first ones."""
_WORKING = 100
_PROBES = 20
"""How many a second."""
_DASHBOARD = "import sys; from dibs_tui.cli import main; sys.exit(main())"


def churn(where: str, file: Path, rate: float, seconds: float, first: int) -> None:
    """Claim, finish and requeue at this rate; writes down how many changes it made."""
    board, made = dibs.open(where), 0
    start = now = time.monotonic()
    claims: list[dibs.Claim] = []
    numbers = count(first, WRITERS)
    while now < start + seconds:
        while made < rate * (now - start):
            if len(claims) < _WORKING:
                claim = board.claim(f"task-{next(numbers) % LEAST + 1:06}", ttl=600)
                assert claim is not None
                claims.append(claim)
            else:
                board.requeue(claims.pop(0).done().name)
                made += 1
            made += 1
            if time.monotonic() > start + seconds:
                break
        time.sleep(0.002)
        now = time.monotonic()
    file.write_text(str(made))


def probes(place: Site, seconds: float) -> dict[str, float]:
    """Move the probes to the top and back; returns when each move had returned."""
    board, moved = place.board, dict[str, float]()
    start = time.monotonic()
    for number in range(int(seconds * _PROBES)):
        time.sleep(max(0.0, start + number / _PROBES - time.monotonic()))
        board.prioritize(f"{probe(number)}.available", 9)
        moved[probe(number)] = time.monotonic()
        back = number - int(SHOWN * _PROBES)
        if back >= 0:
            board.prioritize(f"{probe(back)}.f0p9.available", 1)
    return moved


def measure(place: Site, folder: Path, tasks: int, seconds: float) -> bool:
    """Measure, print, and say whether it is within its limits."""
    board = place.board
    fill(place, tasks)
    board.add("first", priority=8)
    for number in range(int(seconds * _PROBES)):
        board.add(probe(number), priority=5)
    path = os.pathsep.join(str(ROOT / part) for part in ("", "core", "tui"))
    env = os.environ | {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONPATH": path,
    }
    files = [folder / str(number) for number in range(WRITERS)]
    command = [sys.executable, "-c", _DASHBOARD, "-d", place.where]
    with Terminal(command, env) as terminal, Crowd() as crowd:
        terminal.wait(words("first"))
        time.sleep(2)
        for number, file in enumerate(files):
            body = partial(churn, place.where, file, RATE / WRITERS, seconds, number)
            crowd.start(f"w{number}", body)
        time.sleep(0.5)
        here, cpu, start = len(terminal.written), terminal.cpu(), time.monotonic()
        moved = probes(place, seconds - 1)
        took = time.monotonic() - start
        share = 100 * (terminal.cpu() - cpu) / took
        time.sleep(1)
        crowd.join(60)
        seen = [terminal.when(ident.removeprefix("zz-").encode(), here) for ident in moved]
        times = [
            found[1] - at if found is not None else 1.0
            for found, at in zip(seen, moved.values(), strict=True)
        ]
    made = sum(int(file.read_text()) for file in files) / seconds
    missing = sum(found is None for found in seen)
    p50, p99 = percentile(times, 50), percentile(times, 99)
    print(
        f"{tasks:,} tasks, {made:,.0f} changes/s: commit to row p50 {p50 * 1e3:.0f} ms, "
        f"p99 {p99 * 1e3:.0f} ms of {len(times)}, {missing} never shown, dashboard {share:.1f} % "
        f"of a core"
    )
    return p99 < LONGEST and share < SHARE and not crowd.failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--open", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server() as there, ExitStack() as stack:
        if given.open:
            other = stack.enter_context(psycopg.connect(there.url()))
            other.execute("SELECT pg_current_xact_id()")
        place = new_site(there, Settings(retry=()))
        return int(not measure(place, Path(folder), given.tasks, given.seconds))


if __name__ == "__main__":
    sys.exit(main())
