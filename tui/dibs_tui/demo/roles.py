"""What each of the crew does all day, with nothing but the calls that any worker has."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from select import select

import dibs
from dibs.disk import Disk
from dibs.names import AVAILABLE
from dibs.store import Store
from dibs_tui.demo import tasks

FIRST = 120
"""How many tasks there are before the first worker starts."""
_WAITING = 100
_SLOTS = 3
_LOCK = "deploy-prod"
_SHELL = Path(__file__).with_name("worker.sh")
_REASONS = (
    "exit code 1: no space left on the scratch disk",
    "the model server answered 503 three times",
    "checksum of the result differs",
    "exit code 137",
)


@dataclass(slots=True)
class _Job:
    """One claim of a worker that has several."""

    claim: dibs.Claim
    ends: float
    beats: float


def board_as(path: str, host: str) -> dibs.Board:
    """The board as a machine of that name sees it; of this one's name where none is given."""
    here = dibs.this_host()
    store = Store(Disk(path), here._replace(name=host) if host else here)
    store.open()
    return dibs.Board(store, path)


class Worker:
    """One member of the crew, in a process of its own that ends when its keeper does."""

    def __init__(self, path: str, host: str, owner: str, ttl: float, keeper: int) -> None:
        self.board = board_as(path, host)
        self.owner = owner
        self._ttl = ttl
        self._keeper = keeper
        self._chance = Random()
        self._view = self.board.view(ended=False)

    def steady(self) -> None:
        """Work on a few tasks at a time, and beat for each; now and then one fails."""
        jobs: list[_Job] = []
        while True:
            if len(jobs) < _SLOTS and (claim := self._take()) is not None:
                now = time.monotonic()
                jobs.append(_Job(claim, now + self._chance.uniform(2, 9), now + claim.ttl / 3))
            job = min(jobs, key=lambda job: min(job.ends, job.beats), default=None)
            if len(jobs) < _SLOTS or job is None:
                self._rest(self._chance.uniform(0.2, 1))
            else:
                self._rest(min(job.ends, job.beats) - time.monotonic())
            jobs = [job for job in jobs if self._go_on(job)]

    def crash(self) -> None:
        """Die in the middle of the work, of which the process on record is the proof."""
        claim = self._wait_for_task(self.board.host.process(os.getpid()))
        self._work(claim, self._chance.uniform(3, 6))
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self) -> None:
        """Fall silent for so long that the commit is refused."""
        while True:
            claim = self._wait_for_task()
            self._rest(80)
            with suppress(dibs.DibsError):
                claim.done()
            self._rest(10)

    def pause(self) -> None:
        """Be stopped past the lease, and come back from the dead."""
        while True:
            claim = self._wait_for_task()
            with suppress(dibs.DibsError):  # it is somebody else's by now
                self._work(claim, self._chance.uniform(2, 4))
                os.kill(os.getpid(), signal.SIGSTOP)
                claim = self._back(claim)
                self._work(claim, 4)
                claim.done()
            self._rest(15)

    def shell(self) -> None:
        """Be a plain shell, which knows of no dibs."""
        shell = subprocess.Popen(["sh", str(_SHELL), self.board.path, self.owner])
        while shell.poll() is None:
            self._rest(1)

    def hold(self) -> None:
        """Hold the lock for most of the time."""
        while True:
            url = f"https://example.com/deploy/{self._chance.randint(400, 499)}"
            self._lease(f'{{"what": "rolling out 4.2.1", "url": "{url}"}}', 40)
            self._rest(4)

    def wait(self) -> None:
        """Wait for the lock, and have it for a moment."""
        while True:
            if self._lease("hotfix 4.2.0-1", 6):
                self._rest(20)
            self._rest(1)

    def produce(self) -> None:
        """Keep about as many tasks waiting as there were at first."""
        for draft in islice(tasks.stream(), FIRST, None):
            while not self.board.room(_WAITING):
                self._rest(2)
            with suppress(dibs.Exists):
                self.board.add(draft.id, draft.payload, priority=draft.priority)
                self._rest(self._chance.uniform(0.1, 0.6))

    def reap(self) -> None:
        """Give back what fell silent, so rarely that there is something left for an operator."""
        while True:
            self.board.reap()
            self._rest(45)

    def _rest(self, seconds: float) -> None:
        """Sleep; where the keeper dies nobody else is left to end this process and its shell."""
        if select([self._keeper], [], [], max(0.0, seconds))[0]:
            os.killpg(0, signal.SIGKILL)

    def _take(self, process: dibs.Process | None = None) -> dibs.Claim | None:
        """Claim one of the more urgent tasks, but no report: those are the shell's.

        By its id, because a claim of whatever comes next would reap what an operator should see.
        """
        self._view.scan()
        waiting = [
            task
            for task in self._view.tasks.values()
            if task.state == AVAILABLE and not task.id.startswith("report-")
        ]
        if not waiting:
            return None
        task = max(waiting, key=lambda task: task.priority + 4 * self._chance.random())
        note = tasks.note(task.id, self._chance)
        with suppress(dibs.Held, dibs.UnknownId):  # somebody was faster
            return self.board.claim(
                task.id, owner=self.owner, ttl=self._ttl, metadata=note, process=process
            )
        return None

    def _wait_for_task(self, process: dibs.Process | None = None) -> dibs.Claim:
        while (claim := self._take(process)) is None:
            self._rest(1)
        return claim

    def _work(self, claim: dibs.Claim, seconds: float) -> None:
        """Work for so long, with a beat every third of the ttl."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._rest(min(left, claim.ttl / 3))
            claim.beat()

    def _back(self, claim: dibs.Claim) -> dibs.Claim:
        """The claim after the lease has run out meanwhile: taken anew, if nobody else has."""
        try:
            claim.beat()
        except dibs.DibsError:
            return self.board.resume(claim.id, owner=self.owner, ttl=self._ttl)
        return claim

    def _go_on(self, job: _Job) -> bool:
        """Do for a job what is due; False when it is over."""
        now = time.monotonic()
        try:
            if now >= job.ends:
                self._end(job.claim)
                return False
            if now >= job.beats:
                job.claim.beat()
                job.beats = now + job.claim.ttl / 3
        except dibs.DibsError:  # an operator took it away
            return False
        return True

    def _end(self, claim: dibs.Claim) -> None:
        """Commit or fail; fingerprints fail so often that some are parked."""
        if self._chance.random() < (0.5 if claim.id.startswith("fingerprint-") else 0.05):
            claim.fail(self._chance.choice(_REASONS))
        else:
            claim.done()

    def _lease(self, note: str, seconds: float) -> bool:
        """Have the lock for so long; False where it is somebody else's."""
        try:
            lease = self.board.acquire(_LOCK, owner=self.owner, ttl=self._ttl, metadata=note)
            self._work(lease, seconds)
            lease.release()
        except dibs.DibsError:
            return False
        return True
