"""The loop of `dibs run`: takes work, looks after it, and obeys signals and the terminal."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import SECOND
from dibs.errors import DibsError, Held, Stop
from dibs.run import group
from dibs.run.group import boottime
from dibs.run.guard import Guard
from dibs.run.job import Job, Orders
from dibs.run.telling import Events, Stderr, ready
from dibs.run.terminal import Terminal
from dibs.waiting import LOOK

if TYPE_CHECKING:
    from dibs.claims import Claim
    from dibs.waiting import Retry

NOTHING = 4
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_LONGEST = 1.0


class Plan(NamedTuple):
    """What `dibs run` was asked to do."""

    take: Callable[[], Claim | None]
    """Gets the next claim without waiting; None when there is nothing to take. May raise `Held`."""
    retry: Retry
    """Says when taking is worth another attempt."""
    ended: Callable[[Claim, str, int], None]
    """Hears how each claim ended: its outcome and exit code."""
    command: Sequence[str]
    root: str
    loop: bool = False
    jobs: int = 1
    wait: float = 0.0
    """Seconds to wait for something to take; infinite is allowed."""
    log_json: bool = False


class Supervisor:
    """Runs the command on one claim after another, several at a time if asked."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._events = Events(Stderr(), as_json=plan.log_json)
        self._jobs: list[Job] = []
        self.interrupted = False
        """Ctrl+c ended the command."""
        self._hungry = True
        self._code: int | None = None
        self._signal = 0
        self._suspended = False
        self._lost = False
        self._waiting = False
        self._idle = boottime()

    def run(self) -> int:
        """Work until there is no more to do; returns the exit code of `dibs run`."""
        group.check()
        self._terminal = Terminal()
        with self._signals():
            guard = Guard(self._plan.root)
            self._orders = Orders(
                self._plan.command,
                self._plan.root,
                guard,
                self._events,
                lambda: _poke(self._writer),
                quiet_stdin=self._plan.jobs > 1,
            )
            try:
                return self._work(guard)
            finally:
                self._terminal.close()
                guard.end()

    def _work(self, guard: Guard) -> int:
        while True:
            self._take()
            if not self._jobs and not self._more():
                self._pass_on()
                if self._signal and not self._lost:
                    return 128 + self._signal
                return NOTHING if self._code is None else self._code
            self._sleep([LOOK if self._room() else _LONGEST, *(j.pause() for j in self._jobs)])
            guard.mend()
            if os.getpid() == 1:
                _bury({guard.pid, *(job.pid for job in self._jobs)})
            if self._signal:
                name = signal.Signals(self._signal).name
                for job in self._jobs:
                    job.release(f"dibs run was told to end by {name}", 128 + self._signal)
            for job in list(self._jobs):
                self._look(job)

    def _take(self) -> None:
        """Take what there is, as long as there is room; not again before something may be."""
        while self._room() and self._plan.retry.due():
            self._plan.retry.begin()
            claim = None
            try:
                claim = self._plan.take()
                if claim is not None:
                    self._jobs.append(Job(claim, self._orders))
                    if self._plan.jobs == 1:
                        self._lend(self._jobs[0])
            except Held as error:
                self._plan.retry.held(error)
            except DibsError as error:
                if not self._jobs:
                    raise
                self._events.complain(str(error))  # the work under way is worth more
                self._hungry = False
                self._count(error.exit_code, lost=isinstance(error, Stop))
                return
            if claim is None:
                self._plan.retry.missed()
                if not self._waiting and self._more():
                    self._events.tell("waiting")
                self._waiting = True
                return
            self._waiting = False
            self._hungry = self._plan.loop

    def _lend(self, job: Job) -> None:
        """Let the command have the terminal, and the ctrl+c that was typed just before it had."""
        job.lent = self._terminal.lend(job.pid)
        if job.lent and self._signal == signal.SIGINT:
            self._signal = 0
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGINT)

    def _room(self) -> bool:
        return self._hungry and not self._signal and len(self._jobs) < self._plan.jobs

    def _more(self) -> bool:
        """Whether to wait for something to take."""
        waited = (boottime() - self._idle) / SECOND
        return self._hungry and not self._signal and (bool(self._jobs) or waited < self._plan.wait)

    def _sleep(self, pauses: Sequence[float]) -> None:
        """Until a signal, the end of a command, or the next thing to do."""
        if ready(self._reader, select.POLLIN, min(pauses)):
            with suppress(BlockingIOError):
                os.read(self._reader, 65_536)
        if self._suspended:
            self._suspend()

    def _suspend(self) -> None:
        """Stop with all commands on a ctrl+z that was typed while none of them had the terminal."""
        self._suspended = False
        for job in self._jobs:
            job.tell(signal.SIGTSTP)
        self._terminal.stop()
        for job in self._jobs:
            job.tell(signal.SIGCONT)

    def _pass_on(self) -> None:
        """Let a slow reader have all that the commands wrote on stderr."""
        while self._events.stderr.behind and not self._signal:
            self._sleep([LOOK])

    def _look(self, job: Job) -> None:
        code = job.look()
        if code is None:
            if not job.ending and self._plan.jobs == 1:
                job.lent = self._terminal.follow(job.pid) or job.lent
            return
        self._jobs.remove(job)
        self._terminal.take_back(restore=code != 0)
        self._idle = boottime()
        self._count(code, lost=job.outcome in ("lost", "uncertain"))
        self.interrupted = job.interrupted
        if job.outcome not in ("done", "failed"):
            self._hungry = False  # what was lost is never quietly taken again
        self._plan.ended(job.claim, job.outcome, code)

    def _count(self, code: int, *, lost: bool) -> None:
        """Remember the exit code to end with: a loss above all, else the last that was not 0."""
        if not self._lost:
            self._code = code or self._code or 0
        self._lost = self._lost or lost

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Hear signals for as long as we run; one that is ignored stays so, as `nohup` wants."""
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


def _bury(ours: set[int]) -> None:
    """Bury whoever lost its parent, as the first process of a container has to."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in ours:
                return
            os.waitpid(found.si_pid, 0)


def _poke(pipe: int) -> None:
    with suppress(BlockingIOError):
        os.write(pipe, b"\0")
