"""The loop of `dibs run`: claims work, keeps its leases, and obeys signals and the terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import SECOND
from dibs.errors import DibsError, Stop
from dibs.run.guard import TICK
from dibs.run.job import Job

if TYPE_CHECKING:
    from dibs.claims import Claim

EVENTS_VERSION = 1
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Plan(NamedTuple):
    """What `dibs run` was asked to do."""

    take: Callable[[], Claim | None]
    """Gets the next claim without waiting; None when there is nothing to take."""
    command: Sequence[str]
    root: str
    loop: bool = False
    jobs: int = 1
    wait: float = 0.0
    """Seconds to wait for something to take; infinite is allowed."""
    events: int | None = None
    """A file descriptor for numbered JSON events."""


class Supervisor:
    """Runs the command on one claim after another, several at a time if asked."""

    def __init__(self, plan: Plan, pause: Callable[[float], None]) -> None:
        self._plan = plan
        self._pause = pause
        self._jobs: list[Job] = []
        self._code = 0
        self._signal = 0
        self._number = 0
        self._terminal = _Terminal()

    def run(self) -> int:
        """Work until there is no more to do; returns the exit code of `dibs run`."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        old = {number: signal.signal(number, self._noted) for number in _SIGNALS}
        old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            return self._work(reader)
        finally:
            for job in self._jobs:
                job.release("dibs run ended")
            signal.set_wakeup_fd(wakeup)
            for number, handler in old.items():
                signal.signal(number, handler)
            self._terminal.take_back()
            os.close(reader)
            os.close(writer)

    def _work(self, reader: int) -> int:
        until = _boottime() + self._plan.wait * SECOND
        hungry = True
        while True:
            while hungry and not self._signal and len(self._jobs) < self._plan.jobs:
                if not self._begin():
                    break
                hungry = self._plan.loop
                until = _boottime() + self._plan.wait * SECOND
            if not self._jobs:
                if self._signal or not hungry:
                    return 128 + self._signal if self._signal else self._code
                left = (until - _boottime()) / SECOND
                if left <= 0:
                    return self._code if self._number else 4
                self._pause(left)
                continue
            self._sleep(reader)
            self._look()
            if self._signal:
                self._end_all()

    def _begin(self) -> bool:
        claim = self._plan.take()
        if claim is None:
            if not self._number:
                self._tell("waiting", None)
            return False
        self._tell("acquired", claim)
        job = Job(claim, self._plan.command, self._plan.root, self._tell)
        self._jobs.append(job)
        if self._plan.jobs == 1:
            self._terminal.give(job.pid)
        return True

    def _sleep(self, reader: int) -> None:
        """Until a signal, output, or the next beat; short, because the clock may have jumped."""
        due = min(job.due() for job in self._jobs)
        least = min(TICK, *(job.claim.ttl / 20 for job in self._jobs))
        timeout = min(max(0.0, (due - _boottime()) / SECOND), 1.0 if least >= TICK else least)
        pipes = {job.stderr: job for job in self._jobs if job.stderr >= 0}
        for fd in select.select([reader, *pipes], [], [], timeout)[0]:
            if fd == reader:
                with suppress(BlockingIOError):
                    os.read(reader, 4096)
            elif not pipes[fd].pass_on():
                pipes[fd].stderr = -1

    def _look(self) -> None:
        for job in list(self._jobs):
            try:
                status = job.wait()
                if status is None:
                    job.look()
                    self._terminal.follow(job.pid)
                    continue
                self._jobs.remove(job)
                self._terminal.take_back()
                if status == -signal.SIGINT and self._terminal.present:
                    job.release("interrupted from the keyboard")
                    self._signal = signal.SIGINT
                    continue
                job.finish(status)
                self._code = status if status >= 0 else 128 - status
            except Stop as stop:
                if job in self._jobs:
                    self._jobs.remove(job)
                job.give_up(stop)
                self._terminal.take_back()
                self._code = 5
            except DibsError as error:
                print(f"dibs: {error}", file=sys.stderr)
                self._code = error.exit_code

    def _end_all(self) -> None:
        name = signal.Signals(self._signal).name
        while self._jobs:
            self._jobs.pop().release(f"dibs run was told to end by {name}")

    def _noted(self, number: int, _: object) -> None:
        self._signal = number

    def _tell(self, event: str, claim: Claim | None, **facts: object) -> None:
        self._number += claim is not None
        if self._plan.events is not None:
            self._lines += 1
            line: dict[str, object] = {"v": EVENTS_VERSION, "n": self._lines, "event": event}
            if claim is not None:
                line |= {"id": claim.id, "claim": claim.name, "fence": claim.fence}
            with suppress(OSError):
                os.write(self._plan.events, json.dumps(line | facts).encode() + b"\n")
        elif event in ("lost", "uncertain") or (sys.stderr.isatty() and event != "renewed"):
            name = claim.name if claim is not None else ""
            shown = " ".join(str(value) for key, value in facts.items() if key == "reason")
            print(f"dibs: {event} {name} {shown}".rstrip(), file=sys.stderr)

    _lines = 0


class _Terminal:
    """The terminal's foreground, lent to the command so that the keyboard is its own."""

    def __init__(self) -> None:
        self._fd = -1
        self._group = os.getpgrp()
        with suppress(OSError):
            fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
            if os.tcgetpgrp(fd) == self._group:
                self._fd = fd
            else:
                os.close(fd)

    @property
    def present(self) -> bool:
        return self._fd >= 0

    def give(self, pgid: int) -> None:
        """Put the command's group in the foreground."""
        if self.present:
            self._set(pgid)

    def take_back(self) -> None:
        """Be in the foreground again."""
        if self.present:
            self._set(self._group)

    def follow(self, pgid: int) -> None:
        """When the command was stopped from the keyboard, stop too; continue it when continued."""
        if not self.present or not _stopped(pgid):
            return
        self.take_back()
        os.kill(0, signal.SIGSTOP)
        self.give(pgid)
        with suppress(ProcessLookupError):
            os.killpg(pgid, signal.SIGCONT)

    def _set(self, pgid: int) -> None:
        old = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(self._fd, pgid)
        signal.signal(signal.SIGTTOU, old)


def _stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
