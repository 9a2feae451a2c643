"""One claim at work: the command, its beats, and how both end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.claims import Away
from dibs.clock import SECOND
from dibs.errors import BadName, DibsError, Lost, Stop, StorageError, Uncertain
from dibs.run import group
from dibs.run.group import Ending, Work, boottime, shown
from dibs.run.keeper import Keeper
from dibs.run.telling import Pump

if TYPE_CHECKING:
    from dibs.claims import Claim
    from dibs.run.guard import Guard
    from dibs.run.telling import Events

GRACE = 5.0
"""Seconds, at most, that the command may take to end when it is asked to."""
_TOLD: dict[int, str] = {
    signal.SIGINT: "interrupted from the keyboard",
    signal.SIGQUIT: "interrupted from the keyboard",
    signal.SIGHUP: "the terminal hung up",
}
"""What a command on a terminal is told from there, and what its claim goes back for."""
_JOINED = 1.0
"""Seconds to wait for a thread that should be at its end."""


class Orders(NamedTuple):
    """What every job of one `dibs run` shares."""

    command: Sequence[str]
    root: str
    guard: Guard
    events: Events
    wake: Callable[[], None]
    quiet_stdin: bool = False


class Job:
    """A command in a process group of its own, alive only while its claim is."""

    def __init__(self, claim: Claim, orders: Orders) -> None:
        self.claim = claim
        self.interrupted = False
        """Ctrl+c ended it."""
        self.lent = False
        """The command has the terminal, and is told what comes from there instead of us."""
        self.outcome = ""
        """The event that the claim ended with."""
        self._orders = orders
        self._started = boottime()
        self._keeper = Keeper(claim, orders.guard, orders.wake)
        self._told = 0
        self._ending: Ending | None = None
        self._status: int | None = None
        self._giving_back = ""
        self._code = 0
        self._pump: Pump | None = None
        self._stop: DibsError | None = None
        try:
            self._keeper.start()  # whoever should read our stderr may keep us waiting
            orders.events.tell("acquired", claim)
            # Guarded before it starts: `run` may be killed between any two lines.
            self._work = Work(claim.name, group.born("self"))
            self._keeper.keep(self._work)
            self._in_time()
            self._process = self._start()
        except Stop as stop:
            self._give_up(stop)
            raise
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: too many threads
            self._not_started(error)
        self.pid = self._process.pid
        self._work = self._work._replace(pgid=self.pid, session=os.getsid(0))
        self._keeper.keep(self._work)

    def _in_time(self) -> None:
        """Refuse to start what would have to end at once: we may have been stopped, or waiting."""
        if boottime() >= self._keeper.lease.stop:
            raise Uncertain(f"{self.claim.name}: it took as long as its lease to start; stop")

    def _start(self) -> subprocess.Popen[bytes]:
        # On a terminal the command writes there itself; elsewhere its last line is the reason.
        if os.isatty(2):
            return self._popen(None)
        pipe, writer = os.pipe()
        try:
            self._pump = Pump(pipe, self._orders.events.stderr)
            return self._popen(writer)
        finally:
            os.close(writer)

    def _popen(self, stderr: int | None) -> subprocess.Popen[bytes]:
        claim, root = self.claim, self._orders.root
        environment = os.environ | {
            "DIBS_ID": claim.id,
            **group.environment(claim.name),
            "DIBS_FENCE": str(claim.fence),
            "DIBS_PAYLOAD": os.path.join(root, claim.payload),
            "DIBS_DIR": root,
        }
        return subprocess.Popen(
            self._orders.command,
            env=environment,
            stdin=subprocess.DEVNULL if self._orders.quiet_stdin else None,
            stderr=stderr,
            close_fds=False,  # what we were given is the command's too; nothing of ours is
            process_group=0,
        )

    def _not_started(self, error: OSError | ValueError | RuntimeError) -> None:
        """Nothing was done: the claim goes back, unless it can never be worked on."""
        self._keeper.end()
        what = getattr(error, "strerror", None) or str(error)
        reason = f"the command could not be started: {what}"
        with suppress(DibsError):
            if isinstance(error, ValueError) and self.claim.task.kind == "task":
                self.claim.fail(reason)  # a NUL in its id, which no environment can carry
                self.outcome = "failed"
            else:
                self.claim.release(reason)
                self.outcome = "released"
            self._orders.events.tell(self.outcome, self.claim, reason=reason)
        self._orders.guard.dismiss(self.claim.name)
        raise BadName(f"{self._orders.command[0]}: {what}: give a command that can run") from None

    @property
    def ending(self) -> bool:
        """The work is being ended, or its claim."""
        return self._ending is not None

    def pause(self) -> float:
        """Seconds until this job has to be looked at again, if nothing wakes us before."""
        if self._ending is not None:
            return group.QUICK
        return max(0.0, (self._keeper.lease.stop - boottime()) / SECOND)

    def release(self, reason: str, code: int) -> None:
        """Stop the work and give the claim back; this is no attempt.

        Whoever tells `run` to end often tells the command too. One that ended well before that
        is committed, one that any signal ended did not fail.
        """
        if self._status is None:
            self._status = self._exited()
        if not self._giving_back and self._status != 0:
            self._giving_back, self._code = reason, code
            self._end()

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to the command's group, as the keyboard would."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def look(self) -> int | None:
        """Do what is to be done now; the exit code once the claim has ended."""
        while self._told < self._keeper.beats:
            self._told += 1
            self._orders.events.tell("renewed", self.claim)
        self._look_for_trouble()
        if self._ending is None:
            self._status = self._exited()
            if self._status is None:
                return None
            self._end()
        if not self._gone():
            return None
        if self._stop is not None:
            return self._give_up(self._stop)
        self._keeper.end()
        if self._keeper.is_alive():
            return None
        return self._settle()

    def _look_for_trouble(self) -> None:
        if self._stop is not None:
            return
        lease, now = self._keeper.lease, boottime()
        if self._keeper.error is not None:
            self._stop = self._keeper.error
        elif now >= (lease.stop if self._ending is None else lease.kill):
            self._stop = Uncertain(f"{self.claim.name}: its lease could not be renewed in time")
        if self._stop is not None:
            self._end()
            if self._ending is not None:
                self._ending.kill = min(self._ending.kill, lease.kill)

    def _end(self) -> None:
        """Ask every process of the claim to end; they are made to before the lease is over."""
        if self._ending is None:
            grace = int(min(GRACE, self.claim.ttl / 10) * SECOND)
            self._ending = Ending(self._work, min(boottime() + grace, self._keeper.lease.kill))

    def _exited(self) -> int | None:
        """The command's exit status once it has ended, negative for a signal.

        It is left unburied, so that nobody else can get its number while its group is ended.
        """
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _gone(self) -> bool:
        """Whether nobody works on the claim any more."""
        assert self._ending is not None
        if self._process.returncode is not None:
            return True
        start = boottime()  # we may be stopped while we look
        if not self._ending.over():
            return self._hopeless(start) and self._leave_behind()
        if self._status is None:
            self._status = self._exited()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # whoever forked faster than we could read
        self._process.wait()
        if self._pump is not None:
            self._pump.join(_JOINED)
        return True

    def _hopeless(self, now: int) -> bool:
        """Whether to stop trying: what is left refuses to end, or does not in time."""
        assert self._ending is not None
        late = self._ending.late(now)
        if late:
            self._keeper.end()  # from now on the lease only runs out
        over = late and now >= self._keeper.lease.over
        return bool(self._ending.left) and (self._ending.stuck or over)

    def _leave_behind(self) -> bool:
        """Report what cannot be ended, and let the claim expire: work on it goes on."""
        assert self._ending is not None
        self._keeper.end()
        self._process.poll()  # bury the command
        if self._pump is not None:
            self._orders.events.stderr.forget(self._pump)  # it may write without end
        what = f"these processes cannot be ended: {shown(self._ending.left)}"
        if self._stop is None:
            self._stop = Uncertain(f"{what}; {self.claim.name} is left to expire")
        else:
            self._orders.events.complain(what)
        return True

    def _settle(self) -> int | None:
        """End the claim as its command ended; tried again while the disk says no and time is."""
        try:
            return self._settled()
        except Away:
            return None
        except Stop as stop:
            return self._give_up(stop)
        except StorageError as error:
            if boottime() >= self._keeper.lease.stop:
                return self._give_up(error)
        return None

    def _settled(self) -> int:
        claim, status = self.claim, self._status or 0
        code = status if status >= 0 else 128 - status
        facts: dict[str, object] = {"held": round((boottime() - self._started) / SECOND, 3)}
        number = -status if status < 0 else status - 128
        if self.lent and number in _TOLD:
            self._giving_back, self._code = _TOLD[number], code
            self.interrupted = number == signal.SIGINT
        if self._giving_back:
            code = self._code
            claim.release(self._giving_back)
            self.outcome, facts["reason"] = "released", self._giving_back
        elif claim.task.kind == "lock":
            claim.release()
            self.outcome, facts["exit"] = "released", code
        elif status == 0:
            claim.done()
            self.outcome = "done"
        else:
            reason = self._reason(status)
            claim.fail(reason)
            self.outcome = "failed"
            facts |= {"exit": code, "reason": reason}
        self._orders.events.tell(self.outcome, claim, **facts)
        self._orders.guard.dismiss(claim.name)
        return code

    def _give_up(self, stop: DibsError) -> int:
        """The claim is lost, or nobody can tell: touch nothing."""
        # After a stop the beat that is overdue finds out which, and leaves its trace for operators.
        self._keeper.join(_JOINED)
        if isinstance(self._keeper.error, Lost):
            stop = self._keeper.error
        self._keeper.end()
        self.outcome = "lost" if isinstance(stop, Lost) else "uncertain"
        self._orders.events.tell(self.outcome, self.claim, reason=str(stop))
        self._orders.guard.dismiss(self.claim.name)
        return stop.exit_code

    def _reason(self, status: int) -> str:
        how = f"exit {status}" if status >= 0 else f"killed by {signal_name(-status)}"
        last = self._pump.last_line if self._pump is not None else ""
        return f"{how}: {last}" if last else how


def signal_name(number: int) -> str:
    """A signal's name, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
