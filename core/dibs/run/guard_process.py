"""The guard process: it ends the work on a claim when `dibs run` no longer can.

It shares only the pipe on its standard input with `run`. The pipe closes when `run` dies, and each
new deadline comes through it. If none comes in time, because `run` was stopped or hangs on a dead
mount, the old deadline passes. In both cases every process of the claim is ended before the lease
is, and if `run` died the claim is ended too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from dibs.host import boottime
from dibs.model.errors import DibsError
from dibs.model.sample import SECOND
from dibs.run.group import QUICK, TICK, Ending, Lease, Work
from dibs.run.result_files import clear

GRACE = SECOND
"""How long the work may take to end after SIGTERM if its `run` was killed."""
_STARTING = SECOND // 4
"""How long after its fork a command can be recognised by its environment."""


def main() -> None:
    """Guard the claims that come through the pipe, until it closes and all have ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    claims = GuardedClaims(os.environ["DIBS_BOARD"])
    rest, open_ = b"", True
    while open_ or claims.jobs:
        if not select.select([0] if open_ else [], [], [], claims.pause())[0]:
            pass
        elif data := os.read(0, 65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                claims.update(json.loads(line))
        else:
            open_ = False
            claims.orphaned()
        claims.look()
    clear(sys.argv[2])


class GuardedClaims:
    """The claims that are guarded."""

    def __init__(self, where: str) -> None:
        self.jobs: dict[str, _GuardedJob] = {}
        self._where = where

    def update(self, fields: list[Any]) -> None:
        """Note a claim's work and lease; the name alone means that the claim has ended."""
        claim: str = fields[0]
        if len(fields) == 1:
            self.jobs.pop(claim, None)
            return
        work, lease = Work(*fields[:4]), Lease(*fields[4:])
        if claim not in self.jobs:
            self.jobs[claim] = _GuardedJob(work, lease)
        elif self.jobs[claim].ending is None:
            self.jobs[claim].work, self.jobs[claim].lease = work, lease

    def pause(self) -> float:
        """Seconds until the next look; short, because the clock may jump."""
        if any(job.ending is not None for job in self.jobs.values()):
            return QUICK
        due = min((job.due for job in self.jobs.values()), default=boottime() + SECOND)
        return min(TICK, max(0.0, (due - boottime()) / SECOND))

    def orphaned(self) -> None:
        """`run` has died: only the guard can end its work and its claims now."""
        for job in self.jobs.values():
            job.orphan = True
            job.since = boottime()
            if job.ending is None:
                job.ending = Ending(job.work, min(job.lease.kill, boottime() + GRACE))

    def look(self) -> None:
        """End the work whose lease is about to end, and the claims of a dead `run`."""
        for claim, job in list(self.jobs.items()):
            start = boottime()
            if job.ending is None and start >= job.due:
                job.ending = Ending(job.work, job.lease.kill)
            if job.ending is None:
                continue
            if not job.ending.over():
                if job.hopeless(start):
                    del self.jobs[claim]  # left to expire
            elif not job.starting:
                del self.jobs[claim]
                if job.orphan and boottime() < job.lease.kill:
                    self._end_claim(claim)

    def _end_claim(self, claim: str) -> None:
        from dibs.board import open

        with suppress(DibsError):
            found = open(self._where).attach(claim)
            if found.task.state == "held":
                found.release("dibs run was killed")
            else:
                found.fail("dibs run was killed")


class _GuardedJob:
    def __init__(self, work: Work, lease: Lease) -> None:
        self.work = work
        self.lease = lease
        self.ending: Ending | None = None
        self.orphan = False
        self.since = 0

    @property
    def starting(self) -> bool:
        """Whether `run` died while starting the command, which may still appear."""
        return self.orphan and not self.work.pgid and boottime() < self.since + _STARTING

    def hopeless(self, now: int) -> bool:
        """Whether the remaining processes cannot be ended and `run` no longer keeps the claim."""
        if self.ending is None or not self.ending.left:
            return False
        over = self.ending.late(now) and now >= self.lease.over
        return over or (self.orphan and self.ending.stuck)

    @property
    def due(self) -> int:
        """When the guard acts: a little after `run` should have, so that it rarely has to."""
        return self.lease.stop + (self.lease.kill - self.lease.stop) // 4
