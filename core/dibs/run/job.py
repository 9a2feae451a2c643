"""One claim at work: the command, its guard, its beats, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.clock import SECOND
from dibs.errors import BadName, DibsError, Lost, Stop
from dibs.run import group
from dibs.run.guard import Guard

if TYPE_CHECKING:
    from dibs.claims import Claim

_REASON_BYTES = 500
Tell = Callable[..., None]


class Job:
    """A command in a process group of its own, alive only while its claim is."""

    def __init__(self, claim: Claim, command: Sequence[str], root: str, tell: Tell) -> None:
        self.claim = claim
        self.started = _boottime()
        self._tell = tell
        self._tail = b""
        self._beat_at = self.started + self._third()
        self.guard = Guard(claim.name, claim.ttl, claim.deadline, self._orphaned)
        self.stderr = -1
        try:
            self._process = self._start(command, root)
        except OSError as error:
            self.guard.dismiss()
            claim.release(f"the command could not be started: {error.strerror}")
            raise BadName(f"{command[0]}: {error.strerror}: give a command that can run") from None
        self.pid = self._process.pid
        if self._process.stderr is not None:
            self.stderr = self._process.stderr.fileno()
            os.set_blocking(self.stderr, False)
        self.guard.tell(self.pid, claim.deadline)

    def _start(self, command: Sequence[str], root: str) -> subprocess.Popen[bytes]:
        claim = self.claim
        environment = os.environ | {
            "DIBS_ID": claim.id,
            group.VARIABLE: claim.name,
            "DIBS_FENCE": str(claim.fence),
            "DIBS_PAYLOAD": os.path.join(root, claim.payload),
            "DIBS_DIR": root,
        }
        # On a terminal the command writes there itself; elsewhere its last line is the reason.
        pipe = None if sys.stderr.isatty() else subprocess.PIPE
        return subprocess.Popen(
            command, env=environment, stderr=pipe, process_group=0, restore_signals=True
        )

    def pass_on(self) -> bool:
        """Pass the command's stderr through, and remember its end; False when it is closed."""
        try:
            data = os.read(self.stderr, 65_536)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._tail = (self._tail + data)[-4096:]
        with suppress(OSError):
            _write_all(2, data)
        return True

    def wait(self) -> int | None:
        """The command's exit status once it has ended, negative for a signal."""
        return self._process.poll()

    def due(self) -> int:
        """When this job wants to be looked at again, on the boot-time clock."""
        return min(self._beat_at, self.claim.deadline)

    def look(self) -> None:
        """Beat if it is time; raises `Stop` when the work must end."""
        now = _boottime()
        if now < self._beat_at and now < self.claim.deadline:
            return
        self.claim.beat()
        self._beat_at = now + self._third()
        self._tell("renewed", self.claim)
        if not self.guard.tell(self.pid, self.claim.deadline):
            self.guard = Guard(self.claim.name, self.claim.ttl, self.claim.deadline, self._orphaned)
            self.guard.tell(self.pid, self.claim.deadline)

    def stop(self) -> None:
        """End every process of the claim, before its lease ends."""
        grace = int(min(5.0, self.claim.ttl / 10) * SECOND)
        group.end(self.pid, self.claim.name, min(_boottime() + grace, self.claim.deadline + grace))
        self._process.wait()

    def finish(self, status: int) -> None:
        """The command has ended: nobody may work on, and then the claim ends as it did."""
        self.stop()
        while self.stderr >= 0 and self.pass_on() and self._ready():
            pass
        held = (_boottime() - self.started) / SECOND
        if self.claim.task.state == "held":
            self.claim.release()
            self._tell("released", self.claim, status=status, held=held)
        elif status == 0:
            self.claim.done()
            self._tell("done", self.claim, held=held)
        else:
            reason = self._reason(status)
            self.claim.fail(reason)
            self._tell("failed", self.claim, status=status, reason=reason, held=held)
        self.guard.dismiss()

    def release(self, reason: str) -> None:
        """Stop the work and give the claim back; this is no attempt."""
        self.stop()
        with suppress(Stop):
            self.claim.release(reason)
            self._tell("released", self.claim, reason=reason)
        self.guard.dismiss()

    def give_up(self, stop: Stop) -> None:
        """The claim is lost, or nobody can tell: stop the work and touch nothing."""
        self.stop()
        self._tell("lost" if isinstance(stop, Lost) else "uncertain", self.claim, reason=str(stop))
        self.guard.dismiss()

    def _orphaned(self) -> None:
        """In the guard, after `run` was killed: its work is ended, so the claim can go on."""
        with suppress(DibsError):
            if self.claim.task.state == "held":
                self.claim.release("dibs run was killed")
            else:
                self.claim.fail("dibs run was killed")

    def _ready(self) -> bool:
        import select

        return bool(select.select([self.stderr], [], [], 0)[0])

    def _reason(self, status: int) -> str:
        how = f"exit {status}" if status >= 0 else f"killed by {signal_name(-status)}"
        lines = [line for line in self._tail.splitlines() if line.strip()]
        last = lines[-1][:_REASON_BYTES].decode("utf-8", "replace").strip() if lines else ""
        return f"{how}: {last}" if last else how

    def _third(self) -> int:
        return int(self.claim.ttl * SECOND / 3)


def signal_name(number: int) -> str:
    """A signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
