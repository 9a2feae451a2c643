"""The demo's workers; they use only the calls that any worker has."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random
from select import select
from typing import Protocol

import dibs
from dibs.files.board_files import BoardFiles
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs.model.breaker import Breaker
from dibs.model.delays import is_due
from dibs.model.task import AVAILABLE, LATER
from dibs.model.waiters import BROKEN, IDLE, PAUSED
from dibs_tui.demo import databases, tasks

FIRST = 120
"""The number of tasks before the first worker starts."""
MAILS = 24
"""The number of mails before the first worker starts."""
_WAITING = 120
_UP, _DOWN = 6.0, 54.0
"""Seconds for which the mail server answers at first, and for which it is down after that."""
_EVERY = 200.0
"""Seconds after which the same happens again."""
_SLOTS = 3
_LOCK = "deploy-prod"
_SHELL = Path(__file__).with_name("worker.sh")
_REASONS = (
    "exit code 1: no space left on the scratch disk",
    "the model server answered 503 three times",
    "checksum of the result differs",
    "exit code 137",
)
_STEPS = ("reading the input", "step 1 of 3", "step 2 of 3", "step 3 of 3")
_OWN = ("report-", tasks.MAIL)
"""How the ids of tasks begin that have their own workers: a shell script, and the mailers."""
_OUTPUT = 1 << 16
_QUESTIONS = (
    "The tests of the old API fail. Keep the old API until 2.0, or remove it now?",
    "Two invoices have this number, of 3 March and of 5 March. Which one counts?",
    "The source is 4:3 and the template is 16:9. Crop it, or add bars?",
)


@dataclass(slots=True)
class _WorkerClaim:
    """One of a worker's claims."""

    claim: dibs.Claim
    ends: float
    beats: float


class _Waiting(Protocol):
    """What a worker sees of the board between two looks."""

    @property
    def tasks(self) -> Mapping[str, dibs.Task]: ...

    @property
    def asked(self) -> Collection[object]: ...

    def scan(self) -> object: ...


def board_as(path: str, host: str) -> tuple[dibs.Board, _Waiting]:
    """The board as seen from a host of that name, empty for this host; and its tasks."""
    here = dibs.this_host()
    seen_from = here._replace(name=host) if host else here
    if databases.is_database(path):
        return databases.board_as(path, seen_from)
    store = BoardFiles(Disk(path), seen_from)
    store.open()
    board = FilesBoard(store, path)
    return board, board.view(ended=False)


class Worker:
    """One worker of the crew, in its own process, which ends when its keeper does."""

    def __init__(
        self, path: str, host: str, owner: str, ttl: float, keeper: int, opened: float = 0.0
    ) -> None:
        """`opened`: when the demo began, on the monotonic clock."""
        self._path = path
        self.board, self._view = board_as(path, host)
        self.owner = owner
        self._ttl = ttl
        self._keeper = keeper
        self._opened = opened
        self._chance = Random()
        self._presence = self.board.presence(owner)
        self._idle = IDLE
        """Why it has no task."""

    def steady(self) -> None:
        """Work on a few tasks at a time with heartbeats; some of them fail."""
        jobs: list[_WorkerClaim] = []
        while True:
            if len(jobs) < _SLOTS and (claim := self._take()) is not None:
                now = time.monotonic()
                self._says(claim)
                jobs.append(
                    _WorkerClaim(claim, now + self._chance.uniform(2, 9), now + claim.ttl / 3)
                )
            job = min(jobs, key=lambda job: min(job.ends, job.beats), default=None)
            if len(jobs) < _SLOTS or job is None:
                self._rest(self._chance.uniform(0.2, 1))
            else:
                self._rest(min(job.ends, job.beats) - time.monotonic())
            jobs = [job for job in jobs if self._go_on(job)]

    def crash(self) -> None:
        """Crash during the work; the recorded process proves that the claim is dead."""
        claim = self._wait_for_task(self.board.host.process(os.getpid()))
        self._work(claim, self._chance.uniform(3, 6))
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self) -> None:
        """Send no heartbeat for so long that the commit is refused."""
        while True:
            claim = self._wait_for_task()
            self._rest(80)
            with suppress(dibs.DibsError):
                claim.done()
            self._rest(10)

    def pause(self) -> None:
        """Be stopped until the lease has expired, then come back."""
        while True:
            claim = self._wait_for_task()
            with suppress(dibs.DibsError):  # another worker has it by now
                self._work(claim, self._chance.uniform(2, 4))
                os.kill(os.getpid(), signal.SIGSTOP)
                claim = self._back(claim)
                self._work(claim, 4)
                claim.done()
            self._rest(15)

    def stall(self) -> None:
        """Hang in the middle of the work while a thread goes on to send heartbeats."""
        while True:
            claim = self._wait_for_task(of="invoice-")
            with suppress(dibs.DibsError):  # an operator force-released it
                claim.note("step 2 of 3: waiting for the tax service")
                self._work(claim, 900)
                claim.done()
            self._rest(60)

    def mail(self) -> None:
        """Send mails, which all fail while the mail server is down; wait after many failures."""
        breaker = Breaker(5)
        while True:
            resting = breaker.waiting and not breaker.over(time.monotonic_ns())
            claim = None if resting else self._take(of=tasks.MAIL)
            if claim is None:
                self._presence.keep(BROKEN if resting else self._idle)
                self._rest(0.5)
                continue
            with suppress(dibs.DibsError):  # an operator force-released it
                breaker.began(claim.name)
                breaker.ended(claim.name, self._send(claim), time.monotonic_ns())

    def _send(self, claim: dibs.Claim) -> str:
        """Send one mail; returns how that ended."""
        claim.note("talking to smtp.example.com")
        self._work(claim, self._chance.uniform(0.5, 2))
        if _UP <= (time.monotonic() - self._opened) % _EVERY < _UP + _DOWN:
            claim.fail(tasks.MAIL_ERROR)
            return "failed"
        claim.done()
        return "done"

    def ask(self) -> None:
        """Ask a person about one task at a time, first when the dead worker was seen."""
        self._rest(12)
        for question in cycle(_QUESTIONS):
            claim = self._wait_for_task()
            with suppress(dibs.DibsError):  # an operator force-released it
                self._work(claim, self._chance.uniform(2, 4))
                claim.ask(question)
            self._view.scan()
            while self._view.asked:
                self._rest(2)
                self._view.scan()
            self._rest(10)

    def shell(self) -> None:
        """Work as a shell script that uses only `mv`, without dibs."""
        shell = subprocess.Popen(["sh", str(_SHELL), self._path, self.owner])
        while shell.poll() is None:
            self._rest(1)

    def hold(self) -> None:
        """Hold the lock most of the time."""
        while True:
            url = f"https://example.com/deploy/{self._chance.randint(400, 499)}"
            self._lease(f'{{"what": "rolling out 4.2.1", "url": "{url}"}}', 40)
            self._rest(4)

    def wait(self) -> None:
        """Wait for the lock and hold it for a moment."""
        while True:
            if self._lease("hotfix 4.2.0-1", 6):
                self._rest(20)
            self._rest(1)

    def produce(self) -> None:
        """Keep the number of available tasks about constant."""
        mails = islice(tasks.mails(), MAILS, None)
        for count, draft in enumerate(islice(tasks.stream(), FIRST, None)):
            while not self.board.room(_WAITING):
                self._rest(2)
            for each in (draft, *islice(mails, 0 if count % 12 else 1)):
                with suppress(dibs.Exists):
                    self.board.add(each.id, each.payload, priority=each.priority)
            self._rest(self._chance.uniform(0.1, 0.6))

    def reap(self) -> None:
        """Reap stale claims, so rarely that some are left for the operator to see."""
        while True:
            self.board.reap()
            self._rest(45)

    def _rest(self, seconds: float) -> None:
        """Sleep; end this process and its shell if the keeper dies, as nothing else would."""
        if select([self._keeper], [], [], max(0.0, seconds))[0]:
            os.killpg(0, signal.SIGKILL)

    def _take(self, process: dibs.Process | None = None, *, of: str = "") -> dibs.Claim | None:
        """Claim one of the more urgent tasks of a kind; without one, any that has no own workers.

        The claim names an id: claiming the next task would reap stale claims first, which the
        operator should see.
        """
        self._view.scan()
        now = time.time_ns()
        waiting = [
            task
            for task in self._view.tasks.values()
            if (task.state == AVAILABLE or (task.state == LATER and is_due(task, now)))
            and (task.id.startswith(of) if of else not task.id.startswith(_OWN))
        ]
        if not waiting:
            return None
        task = max(
            waiting,
            key=lambda task: (task.state == LATER, task.priority + 4 * self._chance.random()),
        )
        note = tasks.note(task.id, self._chance)
        try:
            claim = self.board.claim(
                task.id, owner=self.owner, ttl=self._ttl, metadata=note, process=process
            )
        except dibs.Paused:
            self._idle = PAUSED
            self._presence.keep(PAUSED)
            return None
        except (dibs.Held, dibs.Refused):  # another worker was faster
            return None
        self._idle = IDLE
        self._presence.end()
        return claim

    def _wait_for_task(self, process: dibs.Process | None = None, *, of: str = "") -> dibs.Claim:
        while (claim := self._take(process, of=of)) is None:
            self._rest(1)
        return claim

    def _work(self, claim: dibs.Claim, seconds: float) -> None:
        """Work for `seconds`, with a heartbeat every third of the ttl."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._rest(min(left, claim.ttl / 3))
            claim.beat()

    def _back(self, claim: dibs.Claim) -> dibs.Claim:
        """The claim after its lease has expired: claimed again, unless another worker has it."""
        try:
            claim.beat()
        except dibs.DibsError:
            return self.board.resume(claim.id, owner=self.owner, ttl=self._ttl)
        return claim

    def _go_on(self, job: _WorkerClaim) -> bool:
        """Do what is due for a claim; False when it has ended."""
        now = time.monotonic()
        try:
            if now >= job.ends:
                self._end(job.claim)
                return False
            if now >= job.beats:
                job.claim.beat(note=self._chance.choice(_STEPS))
                job.beats = now + job.claim.ttl / 3
        except dibs.DibsError:  # an operator force-released it
            return False
        return True

    def _end(self, claim: dibs.Claim) -> None:
        """Commit or fail; fingerprints fail so often that some run out of attempts."""
        if self._chance.random() < (0.9 if claim.id.startswith("fingerprint-") else 0.05):
            claim.fail(self._chance.choice(_REASONS))
        else:
            claim.done(b'{"rows": %d}\n' % self._chance.randint(1_000, 90_000))

    def _says(self, claim: dibs.Claim) -> None:
        """Note a first step, and keep a few lines of output as `dibs run --log` does."""
        with suppress(dibs.DibsError):
            claim.note(_STEPS[0])
            lines = "".join(f"{step} …\n" for step in _STEPS)
            claim.keep_output(_OUTPUT).keep(lines.encode(), 0)

    def _lease(self, note: str, seconds: float) -> bool:
        """Hold the lock for `seconds`; False if another worker has it."""
        try:
            lease = self.board.acquire(_LOCK, owner=self.owner, ttl=self._ttl, metadata=note)
            self._work(lease, seconds)
            lease.release()
        except dibs.DibsError:
            return False
        return True
