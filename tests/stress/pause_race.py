"""Workers race with an operator who pauses: `python -m tests.stress.pause_race --rounds 1000`.

In each round every worker claims and releases as fast as it can. The operator stops one of them
with SIGSTOP at any moment, pauses, and wakes it up. Whatever a worker then reports as claimed must
be in the list that the pause returned. The pause ends when every worker has met it.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import dibs
from tests.contract.command import CORE
from tests.patience import PATIENCE

TASKS = 32
WORKER = """
import os, sys, time
import dibs

board, ledger, me, blind = dibs.open(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
if blind:  # the control: a worker without the look after its rename
    import dibs.files.claims
    dibs.files.claims.find_pause = lambda store, *, lock: None
ledger = int(ledger)
met = ""
while True:
    try:
        claim = board.claim(owner=f"w{me}")
    except dibs.Paused as error:
        if error.pause.name != met:
            met = error.pause.name
            os.write(ledger, f"met {met} {me}\\n".encode())
        time.sleep(0.0005)
        continue
    if claim is None:
        continue
    os.write(ledger, f"got {claim.name} {me}\\n".encode())
    claim.release()
"""


class Raced(NamedTuple):
    """The result of a race."""

    rounds: int
    claims: int
    """How many claims the workers got in all."""
    listed: int
    """How many claims the pauses have listed."""
    late: tuple[str, ...]
    """The claims that were got after a pause had returned, and that it had not listed."""


class Reports:
    """What the workers report, through one pipe; a line is written at once."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._rest = b""

    def new(self, seconds: float = 0.0) -> list[list[str]]:
        """The complete lines that are there now, as words; waits so long for the first one."""
        select.select([self._reader], [], [], seconds)
        with suppress(BlockingIOError):
            while data := os.read(self._reader, 1 << 16):
                self._rest += data
        *found, self._rest = self._rest.split(b"\n")
        return [line.decode().split() for line in found]

    def close(self) -> None:
        os.close(self._reader)
        os.close(self.writer)


def race(
    where: Path,
    rounds: int,
    workers: int,
    *,
    blind: bool = False,
    seed: int = 1,
    far: Path | None = None,
) -> Raced:
    """Run the rounds; with `blind` no worker looks, and the race ends at the first fault.

    `far` is another path to the same directory, such as another host's mount. Every second worker
    uses it.
    """
    chance = random.Random(seed)
    board = dibs.open(where / "board", create=True)
    places = [str(where / "board"), str((far or where) / "board")]
    for n in range(TASKS):
        board.add(f"task-{n:02}")
    reports = Reports()
    env = {"PYTHONPATH": str(CORE), "PATH": "/usr/bin:/bin"}
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", WORKER, places[n % 2], str(reports.writer)),
                *(str(n), "blind" if blind else ""),
            ],
            env=env,
            pass_fds=[reports.writer],
        )
        for n in range(workers)
    ]
    claims = listed = done = 0
    late: list[str] = []
    try:
        for _ in range(rounds):
            claims += _wait_for_claims(reports, running)
            stopped = chance.choice(running)
            stopped.send_signal(signal.SIGSTOP)
            pause, held = board.pause_claims("race")
            before = reports.new()
            claims += sum(line[0] == "got" for line in before)
            met = sum(line[:2] == ["met", pause.name] for line in before)
            stopped.send_signal(signal.SIGCONT)
            names = {task.stem for task in held}
            listed += len(names)
            found = _until_met(reports, pause.name, running, met)
            claims += len(found)
            late += [name for name in found if name not in names]
            board.resume_claims([pause.name])
            done += 1
            if blind and late:
                break
    finally:
        for each in running:
            each.kill()
            each.wait(PATIENCE)
        reports.close()
    return Raced(done, claims, listed, tuple(late))


def _wait_for_claims(reports: Reports, running: list[subprocess.Popen[bytes]]) -> int:
    """Wait until someone has claimed again, so that every pause comes into a race."""
    until = time.monotonic() + PATIENCE
    while not (found := sum(line[0] == "got" for line in reports.new(1.0))):
        _check(running, until)
    return found


def _until_met(
    reports: Reports, name: str, running: list[subprocess.Popen[bytes]], met: int
) -> list[str]:
    """The claims that are reported until every worker has met this pause; `met` have already."""
    until, found = time.monotonic() + PATIENCE, list[str]()
    while met < len(running):
        for what, subject, _ in reports.new(1.0):
            met += what == "met" and subject == name
            found += [subject] if what == "got" else []
        _check(running, until)
    return found


def _check(running: list[subprocess.Popen[bytes]], until: float) -> None:
    assert time.monotonic() < until, "a worker has not met the pause"
    assert all(each.poll() is None for each in running), "a worker has died"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress.pause_race", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--blind", action="store_true", help="without the look after the rename")
    parser.add_argument("--where", help="a folder on the file system to use (default: tmpfs)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.where or "/dev/shm") as folder:
        begun = time.monotonic()
        found = race(Path(folder), args.rounds, args.workers, blind=args.blind)
    print(
        f"{found.rounds} rounds, {args.workers} workers, {time.monotonic() - begun:.0f} s: "
        f"{found.claims:,} claims, {found.listed:,} listed by a pause, "
        f"{len(found.late)} got after the pause had returned"
    )
    return int(bool(found.late))


if __name__ == "__main__":
    sys.exit(main())
