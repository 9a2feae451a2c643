"""The main loop of `dibs run`: claims tasks, watches their jobs, handles signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.intake import Intake
from dibs.model.breaker import Breaker
from dibs.model.errors import DibsError, Stop
from dibs.run import group
from dibs.run.guard import Guard
from dibs.run.job import Job, Orders
from dibs.run.reporting import STDOUT, EventWriter, OutputStream, Stderr, ready_among
from dibs.run.result_files import ResultFolder
from dibs.run.terminal import Terminal

if TYPE_CHECKING:
    from dibs.model.location import Location
    from dibs.protocols import Claim, Presence, Retry

NOTHING = 4
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class Plan(NamedTuple):
    """The arguments of one `dibs run`."""

    take: Callable[[], Claim | None]
    """Makes the next claim without waiting; None if there is none. May raise `Held`."""
    retry: Retry
    """Decides when to try again."""
    ended: Callable[[Claim, str, int], None]
    """Called as each claim ends, with its outcome and exit code."""
    command: Sequence[str]
    location: Location
    loop: bool = False
    jobs: int = 1
    wait: float = 0.0
    """Seconds to wait for a task; may be infinite."""
    log_json: bool = False
    presence: Presence | None = None
    """Shows others that this worker waits, while it has no job."""
    log_bytes: int = 0
    """How much of each command's output to keep; 0 keeps none."""
    timeout: float = 0
    """Seconds after which a command is ended; 0 for no limit."""
    idle: float = 0
    """Seconds without output and notes after which a command is ended; 0 for no limit."""
    breaker: int = 0
    """After so many failures in a row `run` waits; 0 for never."""
    runnable: Callable[[str], str] = str
    """Makes the commands in a message run as they are typed."""


class Supervisor:
    """Runs the command for one claim after another, or for several at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._events = EventWriter(
            Stderr(), as_json=plan.log_json, board=plan.location.label, runnable=plan.runnable
        )
        self._stdout = OutputStream(STDOUT)
        self._intake = Intake(
            plan.take,
            plan.retry,
            Breaker(plan.breaker),
            loop=plan.loop,
            wait=plan.wait,
            presence=plan.presence,
            stopped=lambda: bool(self._signal),
            report=lambda event, **facts: self._events.report(event, **facts),
        )
        self._outage = self._intake.outage
        self._jobs: list[Job] = []
        self.interrupted = False
        """Whether ctrl+c ended the command."""
        self._code: int | None = None
        self._signal = 0
        self._suspended = False
        self._lost = self._lost_at_end = False
        """Whether a claim was lost, and whether one was after a signal."""

    @property
    def signalled(self) -> bool:
        """Whether a signal ended it before the work was done."""
        return bool(self._signal)

    def run(self) -> int:
        """Work until there is nothing left to do; returns the exit code of `dibs run`."""
        group.check()
        self._terminal = Terminal()
        with self._signals():
            results = ResultFolder()
            guard = Guard(self._plan.location.where, results.path)
            self._orders = Orders(
                self._plan.command,
                self._plan.location,
                guard,
                self._events,
                lambda: _poke(self._writer),
                self._stdout,
                results,
                quiet_stdin=self._plan.jobs > 1,
                log_bytes=self._plan.log_bytes,
                timeout=self._plan.timeout,
                idle=self._plan.idle,
            )
            try:
                return self._work(guard)
            finally:
                self._intake.hide()
                self._terminal.close()
                guard.end()
                results.remove()

    def _work(self, guard: Guard) -> int:
        while True:
            self._take()
            if not self._jobs and self._intake.over():
                self._pass_on()
                if self._signal and not self._lost_at_end:
                    return 128 + self._signal
                return NOTHING if self._code is None else self._code
            self._intake.show(busy=bool(self._jobs))
            self._sleep([self._intake.pause(room=self._room()), *(j.pause() for j in self._jobs)])
            guard.restore()
            if os.getpid() == 1:
                _reap_orphans({guard.pid, *(job.pid for job in self._jobs)})
            if self._signal:
                name = signal.Signals(self._signal).name
                for job in self._jobs:
                    job.release(f"dibs run was ended by {name}", 128 + self._signal)
            for job in list(self._jobs):
                self._look(job)
            self._note_outage()

    def _take(self) -> None:
        """Claim tasks while there is room and an attempt is due."""
        self._intake.look()
        while self._room() and self._plan.retry.due():
            try:
                claim = self._intake.next(busy=bool(self._jobs))
                if claim is None:
                    return
                if not self._begin(claim):
                    continue
            except DibsError as error:
                if not self._jobs:
                    raise
                self._events.complain(str(error))  # the running jobs go on
                self._intake.hungry = False
                self._count(error.exit_code, lost=isinstance(error, Stop))
                return
            if self._plan.jobs == 1:
                self._lend(self._jobs[0])

    def _begin(self, claim: Claim) -> bool:
        """Start the command; a loop goes on if the claim is lost before that."""
        try:
            self._jobs.append(Job(claim, self._orders))
        except Stop as stop:
            if not self._plan.loop:
                raise
            self._count(stop.exit_code, lost=True)
            self._note_end(claim, "lost")
            return False
        return True

    def _lend(self, job: Job) -> None:
        """Lend the terminal to the command, and pass on a ctrl+c that came just before."""
        job.lent = self._terminal.lend(job.pid)
        if job.lent and self._signal == signal.SIGINT:
            self._signal = 0
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGINT)

    def _room(self) -> bool:
        return len(self._jobs) < self._plan.jobs and self._intake.room()

    def _sleep(self, pauses: Sequence[float]) -> None:
        """Sleep until a signal, a note, the end of a command, or the next thing to do."""
        by_pipe = {job.notes: job for job in self._jobs if job.notes >= 0}
        for pipe in ready_among([self._reader, *by_pipe], min(pauses)):
            if pipe in by_pipe:
                by_pipe[pipe].take_notes()
                continue
            with suppress(BlockingIOError):
                os.read(self._reader, 65_536)
        if self._suspended:
            self._suspend()

    def _suspend(self) -> None:
        """Stop with all commands after a ctrl+z that came while none of them had the terminal."""
        self._suspended = False
        for job in self._jobs:
            job.send(signal.SIGTSTP)
        self._terminal.stop()
        for job in self._jobs:
            job.send(signal.SIGCONT)

    def _pass_on(self) -> None:
        """Wait until a slow reader has everything that the commands wrote to stderr."""
        while (self._events.stderr.behind or self._stdout.behind) and not self._signal:
            self._sleep([self._plan.retry.every])

    def _look(self, job: Job) -> None:
        code = job.look()
        if code is None:
            if not job.ending and self._plan.jobs == 1:
                job.lent = self._terminal.follow(job.pid) or job.lent
            return
        self._jobs.remove(job)
        if job.outcome != "uncertain":
            self._outage.note("")
        self._terminal.reclaim(restore=code != 0)
        self._count(code, lost=job.outcome in ("lost", "uncertain"))
        self.interrupted = job.interrupted
        self._plan.ended(job.claim, job.outcome, code)
        self._note_end(job.claim, "stuck" if job.left_behind else job.outcome)

    def _note_end(self, claim: Claim, outcome: str) -> None:
        if self._intake.ended(claim.name, outcome):
            breaker = self._intake.breaker
            self._events.report("breaker", failures=breaker.failures, wait=breaker.wait)

    def _note_outage(self) -> None:
        """Report the begin and the end of an outage, each once."""
        why = next((job.outage for job in self._jobs if job.outage), "")
        if why:
            self._outage.note(f"{why}: trying again until the lease is over")
        elif self._jobs and self._intake.away is None:
            self._outage.note("")

    def _count(self, code: int, *, lost: bool) -> None:
        """Note the exit code: that of a lost claim wins, else the last that was not 0."""
        if not self._lost:
            self._code = code or self._code or 0
        self._lost = self._lost or lost
        self._lost_at_end = self._lost_at_end or (lost and bool(self._signal))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals while we run; an ignored one stays ignored, as `nohup` needs."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        heard = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
        old = {number: signal.signal(number, self._noted) for number in heard}
        if self._terminal.there and signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
            old[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop_noted)
        old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in old.items():
                signal.signal(number, handler)

    def _noted(self, number: int, _: object) -> None:
        self._signal = number

    def _stop_noted(self, *_: object) -> None:
        self._suspended = True


def _reap_orphans(ours: set[int]) -> None:
    """Reap orphaned processes, which the first process of a container has to do."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in ours:
                return
            os.waitpid(found.si_pid, 0)


def _poke(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.write(pipe, b"\0")
