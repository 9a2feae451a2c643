"""A short storm: processes that claim tasks in parallel, some of which are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import dibs
from tests.contract.command import CORE
from tests.contract.place import Place
from tests.patience import PATIENCE

TASKS, WORKERS, KILLED_AFTER = 40, 3, 4
WORKER = """
import os, signal, sys
import dibs

board, last = dibs.open(sys.argv[1]), int(sys.argv[3])
ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
taken = 0
while (claim := board.claim(process=os.getpid())) is not None:
    os.write(ledger, f"took {claim.id} {claim.fence}\\n".encode())
    taken += 1
    if taken == last:
        os.kill(os.getpid(), signal.SIGKILL)
    claim.beat()
    claim.done()
    os.write(ledger, f"done {claim.id} {claim.fence}\\n".encode())
"""


def worker(place: Place, ledger: Path, last: int = 0) -> subprocess.Popen[bytes]:
    """A process that works until nothing is left, or kills itself with its last claim."""
    where = place.board.location.where
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, where, str(ledger), str(last)],
        env={"PATH": "/usr/bin:/bin", **os.environ, "PYTHONPATH": str(CORE)},
    )


def test_no_task_is_lost_or_given_twice_while_workers_are_killed(
    place: Place, tmp_path: Path
) -> None:
    for number in range(TASKS):
        place.board.add(f"task-{number:02}", f"payload {number}".encode())
    ledger = tmp_path / "ledger"
    killed = [worker(place, ledger, KILLED_AFTER) for _ in range(WORKERS)]
    steady = [worker(place, ledger) for _ in range(WORKERS)]
    for each in (*killed, *steady):
        each.wait(PATIENCE)
    # The steady workers may end before the last claim of a killed one can be reaped.
    assert worker(place, ledger).wait(PATIENCE) == 0
    board = place.other()
    assert board.snapshot().counts()["done"] == TASKS
    assert [each.returncode for each in steady] == [0] * WORKERS
    fences: defaultdict[str, list[int]] = defaultdict(list)
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for line in ledger.read_text().splitlines():
        what, ident, fence = line.split()
        (fences if what == "took" else ends)[ident].append(int(fence))
    assert len(ends) == TASKS
    for ident, granted in fences.items():
        assert sorted(set(granted)) == sorted(granted), f"a fence of {ident} was granted twice"
        assert ends[ident] == [max(granted)], f"{ident} was done by another than its last holder"
        # A reaper that was slow to write its line writes it after the next holder's.
        assert [event.verb for event in board.log.of(ident)].count("done") == 1


def test_a_contended_lock_has_one_holder_at_a_time(place: Place, tmp_path: Path) -> None:
    code = """
import os, sys
import dibs

board, path = dibs.open(sys.argv[1]), sys.argv[2]
for _ in range(3):
    lease = board.wait_for(lambda: board.acquire("door", ttl=600), 600)
    os.mkdir(path)  # fails where another is inside
    lease.verify()
    os.rmdir(path)
    lease.release()
"""
    command = [sys.executable, "-c", code, place.board.location.where, str(tmp_path / "inside")]
    env = {"PATH": "/usr/bin:/bin", **os.environ, "PYTHONPATH": str(CORE)}
    many = [subprocess.Popen(command, env=env) for _ in range(WORKERS)]
    assert [each.wait(PATIENCE) for each in many] == [0] * WORKERS
    found = place.other().acquire("door")
    assert found.fence == 3 * WORKERS + 1
    with_door = [event.verb for event in place.board.log.of("door")]
    assert with_door.count("release") == 3 * WORKERS


def test_the_board_has_the_same_location_for_every_process(place: Place) -> None:
    where = place.board.location.where
    assert dibs.open(where).location == place.other().location
