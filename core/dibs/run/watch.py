"""The guard itself: it ends the work on a claim when `dibs run` no longer can.

It shares nothing with `run` but the pipe that is its standard input. The pipe closes when `run`
dies. Each new deadline comes through it, and when none comes in time (`run` was stopped, or hangs
on a dead mount) the deadline passes. Either way every process of the claim is ended before the
lease is, and a claim whose `run` died is given back.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from dibs.clock import SECOND
from dibs.errors import DibsError
from dibs.run.group import QUICK, TICK, Ending, Lease, Work, boottime

GRACE = SECOND
"""How long the work of a `run` that was killed may take to end by itself."""
_STARTING = SECOND // 4
"""How long a command may take from its fork until it can be told by its environment."""


def main() -> None:
    """Guard whatever the pipe tells of, until it closes and nothing is left to end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watch = Watch(sys.argv[2])
    rest, open_ = b"", True
    while open_ or watch.jobs:
        if not select.select([0] if open_ else [], [], [], watch.pause())[0]:
            pass
        elif data := os.read(0, 65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                watch.hear(json.loads(line))
        else:
            open_ = False
            watch.orphaned()
        watch.look()


class Watch:
    """The claims that are guarded."""

    def __init__(self, root: str) -> None:
        self.jobs: dict[str, _Job] = {}
        self._root = root

    def hear(self, said: list[Any]) -> None:
        """A claim with its work and its lease, or alone when it has ended."""
        claim: str = said[0]
        if len(said) == 1:
            self.jobs.pop(claim, None)
            return
        work, lease = Work(*said[:4]), Lease(*said[4:])
        if claim not in self.jobs:
            self.jobs[claim] = _Job(work, lease)
        elif self.jobs[claim].ending is None:
            self.jobs[claim].work, self.jobs[claim].lease = work, lease

    def pause(self) -> float:
        """Seconds until something may have to be done; short, for the clock may jump."""
        if any(job.ending is not None for job in self.jobs.values()):
            return QUICK
        due = min((job.due for job in self.jobs.values()), default=boottime() + SECOND)
        return min(TICK, max(0.0, (due - boottime()) / SECOND))

    def orphaned(self) -> None:
        """`run` is dead: nobody will end this work, or the claim, but the guard."""
        for job in self.jobs.values():
            job.orphan = True
            job.since = boottime()
            if job.ending is None:
                job.ending = Ending(job.work, min(job.lease.kill, boottime() + GRACE))

    def look(self) -> None:
        """End the work whose lease is about to end."""
        for claim, job in list(self.jobs.items()):
            start = boottime()
            if job.ending is None and start >= job.due:
                job.ending = Ending(job.work, job.lease.kill)
            if job.ending is None:
                continue
            if not job.ending.over():
                if job.hopeless(start):
                    del self.jobs[claim]  # it expires
            elif not job.starting:
                del self.jobs[claim]
                if job.orphan and boottime() < job.lease.kill:
                    self._give_back(claim)

    def _give_back(self, claim: str) -> None:
        from dibs.board import open

        with suppress(DibsError):
            found = open(self._root).attach(claim)
            if found.task.state == "held":
                found.release("dibs run was killed")
            else:
                found.fail("dibs run was killed")


class _Job:
    def __init__(self, work: Work, lease: Lease) -> None:
        self.work = work
        self.lease = lease
        self.ending: Ending | None = None
        self.orphan = False
        self.since = 0

    @property
    def starting(self) -> bool:
        """`run` died while it started the command, which may be about to appear."""
        return self.orphan and not self.work.pgid and boottime() < self.since + _STARTING

    def hopeless(self, now: int) -> bool:
        """Whether what is left cannot be ended, and `run` no longer keeps its claim."""
        if self.ending is None or not self.ending.left:
            return False
        over = self.ending.late(now) and now >= self.lease.over
        return over or (self.orphan and self.ending.stuck)

    @property
    def due(self) -> int:
        """A little after `run` itself would have asked the work to end, which is asked once."""
        return self.lease.stop + (self.lease.kill - self.lease.stop) // 4
