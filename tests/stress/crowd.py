"""Groups of real processes: started, stopped, killed, and all ended on exit."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import TracebackType

from tests.stress import ledger as log
from tests.stress.ledger import Ledger, boottime

PATIENCE = 120.0
"""The seconds without any progress after which the crew counts as stuck."""
_fork = multiprocessing.get_context("fork")
_DIE_WITH_PARENT = 1


class Crowd:
    """Runs functions in processes; on exit it ends each of them by its pid.

    The signal to stop is the end of file of a pipe: a process that is killed while it listens
    cannot keep it from the others. Each process leads a group, and what it starts dies with it.
    """

    def __init__(self) -> None:
        self.halt, self._hold = os.pipe()
        self.failures: list[str] = []
        self._running: dict[str, BaseProcess] = {}

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._running):
            self.end(name)
        self.word()
        os.close(self.halt)

    def start(self, name: str, body: Callable[[], None]) -> None:
        process = _fork.Process(target=self._run, args=(body,), name=name)
        process.start()
        assert process.pid is not None
        with suppress(OSError):  # the child does the same: the first one wins
            os.setpgid(process.pid, process.pid)
        self._running[name] = process

    def end(self, name: str) -> None:
        """End one process, and wait for its end."""
        process = self._running.pop(name)
        send(process, signal.SIGKILL)
        process.join()

    def word(self) -> None:
        """Signal all processes to stop."""
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1

    def join(self, seconds: float) -> None:
        """Wait until all processes have stopped; the others are failures."""
        until = boottime() + int(seconds * 1e9)
        for name, process in list(self._running.items()):
            process.join(max(0.0, (until - boottime()) / 1e9))
            if process.exitcode is None:
                self.failures.append(f"{name} did not stop")
                continue
            self._ended(name, process)

    def fallen(self, seconds: float) -> list[str]:
        """Wait at most this long for processes to end; returns their names."""
        wait([process.sentinel for process in self._running.values()], seconds)
        ended = [(n, p) for n, p in self._running.items() if p.exitcode is not None]
        for name, process in ended:
            self._ended(name, process)
        return [name for name, _ in ended]

    def running(self) -> dict[str, BaseProcess]:
        return dict(self._running)

    def _ended(self, name: str, process: BaseProcess) -> None:
        process.join()
        del self._running[name]
        if process.exitcode not in (0, -signal.SIGKILL):
            self.failures.append(f"{name} ended with {process.exitcode}")

    def _run(self, body: Callable[[], None]) -> None:
        with suppress(OSError):
            os.setpgid(0, 0)
        os.close(self._hold)
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        body()


class Chaos:
    """Kills and stops processes at random, and records which."""

    def __init__(self, ledger: Ledger, seed: int, longest: float) -> None:
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._longest = longest
        self._asleep: dict[int, tuple[BaseProcess, int]] = {}

    def strike(self, processes: list[BaseProcess], gap: float) -> float:
        """Kill or stop a process and wake the due ones; returns the time until the next strike."""
        self._wake(boottime())
        awake = [p for p in processes if p.exitcode is None and p.pid not in self._asleep]
        if len(awake) > len(processes) // 2:
            victim = self._chance.choice(awake)
            assert victim.pid is not None
            if self._chance.random() < 0.4:
                # Recorded before the kill: no process may be judged dead sooner.
                self._ledger.write(log.KILLED, pid=victim.pid)
                send(victim, signal.SIGKILL)
            else:
                self._ledger.write(log.STOPPED, pid=victim.pid)
                send(victim, signal.SIGSTOP)
                nap = self._chance.random() ** 2 * self._longest
                self._asleep[victim.pid] = (victim, boottime() + int(nap * 1e9))
        return self._chance.uniform(0.2, 1.8) * gap

    def calm(self) -> None:
        """Wake all stopped processes."""
        self._wake(None)

    def _wake(self, now: int | None) -> None:
        for pid, (process, until) in list(self._asleep.items()):
            if now is None or until <= now:
                del self._asleep[pid]
                send(process, signal.SIGCONT)


def send(process: BaseProcess, number: signal.Signals) -> None:
    """Signal a process and its group, unless it has ended: then its pid may be reused."""
    if process.exitcode is None and process.pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def blow(
    crowd: Crowd,
    chaos: Chaos,
    bodies: Mapping[str, Callable[[], None]],
    finished: Callable[[], int],
    goal: int,
    *,
    seconds: float,
    gap: float,
) -> None:
    """Strike these processes, and replace the dead, until the goal or the time is reached.

    After `seconds` the strikes stop, and the crew may finish the rest.
    """
    for name, body in bodies.items():
        crowd.start(name, body)
    start = progress = strike = boottime()
    count = -1
    while len(crowd.failures) <= 5:
        for name in crowd.fallen(max(0.0, min(0.1, (strike - boottime()) / 1e9))):
            if name in bodies:
                crowd.start(name, bodies[name])
        now, before, count = boottime(), count, finished()
        if count >= goal:
            break
        progress = now if count != before else progress
        if now - progress > PATIENCE * 1e9:
            crowd.failures.append(f"stuck for {PATIENCE:.0f} s with {count} of {goal} finished")
            break
        if now - start > seconds * 1e9:
            chaos.calm()
            strike = now + int(1e9)
        elif now >= strike:
            victims = [p for name, p in crowd.running().items() if name in bodies]
            strike = now + int(1e9 * chaos.strike(victims, gap))
    chaos.calm()
