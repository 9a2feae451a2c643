"""The cost of a waiter beside thousands of live claims, on a board that keeps changing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dibs
from tests.bench.harness import Limit, Row, spread
from tests.bench.places import Setup, add_tasks, others_busy, scratch

TITLE = "An idle waiter"

_CLAIMS = 5_000
_TTL = 3600.0
_RENAMES = 10
"""Renames per second, of names that no waiter waits for."""
_SETTLED = 3.0
_WAITERS = (
    ("claim", "--wait"),
    ("run", "--wait", "--", "true"),
    ("acquire", "door", "--wait"),
    ("claim", "task-0000000", "--wait"),
)


def run(setup: Setup) -> Iterator[Row]:
    seconds, rounds = setup.amount(15, 3), setup.amount(3, 1)
    others = others_busy()
    note = f"{others:.1f} cores were busy with something else" if others > 0.2 else ""
    with scratch(setup.ram) as where:
        board = dibs.open(where, create=True)
        add_tasks(where, 0, _CLAIMS)
        for _ in range(_CLAIMS):
            assert board.claim(ttl=_TTL) is not None
        board.acquire("door", ttl=_TTL)
        with _changing(where):
            for argv in _WAITERS:
                shares = [_share(where, argv, seconds) for _ in range(rounds)]
                yield Row(
                    f"`{' '.join(argv)}`, {_CLAIMS:,} live claims, {_RENAMES} renames a second",
                    spread(shares).mid,
                    "of a core",
                    limit=Limit("at most", 0.02, "measured"),
                    note=note,
                )


def _share(where: Path, argv: Sequence[str], seconds: float) -> float:
    """The CPU seconds per second of waiting, after the first complete look."""
    command = [sys.executable, "-m", "dibs", "-d", str(where), *argv]
    core = str(Path(dibs.__file__).parents[1])
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": core}) as waiter:
        try:
            time.sleep(_SETTLED)
            before, start = _cpu(waiter.pid), time.monotonic()
            time.sleep(seconds)
            return (_cpu(waiter.pid) - before) / (time.monotonic() - start)
        finally:
            waiter.kill()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _changing(where: Path) -> Iterator[None]:
    """Rename files on the board inside the block."""
    over = threading.Event()
    names = where / "notes-a", where / "notes-b"
    names[0].touch()

    def change() -> None:
        turn = 0
        while not over.wait(1 / _RENAMES):
            names[turn].rename(names[1 - turn])
            turn = 1 - turn

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
