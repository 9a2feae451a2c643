"""One claim and its command: the heartbeats, and how both end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.host import boottime
from dibs.model.errors import BadName, Changed, DibsError, Lost, Stop, StorageError, Uncertain
from dibs.model.questions import environment as answers_for
from dibs.model.questions import has_asked
from dibs.model.sample import SECOND
from dibs.run import group, note_pipe, result_files
from dibs.run.group import Ending, Work, shown
from dibs.run.keeper import Keeper
from dibs.run.note_pipe import NotePipe
from dibs.run.reporting import TIMED_OUT, Pump

if TYPE_CHECKING:
    from dibs.model.location import Location
    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.run.guard import Guard
    from dibs.run.output_log import OutputLog
    from dibs.run.reporting import EventWriter, OutputStream
    from dibs.run.result_files import ResultFolder

ASKED_CODE = 7
"""The exit code if the command ended its claim with a question."""
GRACE = 5.0
"""The longest time in seconds between SIGTERM and SIGKILL."""
_FROM_TERMINAL: dict[int, str] = {
    signal.SIGINT: "interrupted from the keyboard",
    signal.SIGQUIT: "interrupted from the keyboard",
    signal.SIGHUP: "the terminal hung up",
}
"""Signals from the terminal, with the reason for which the claim is then released."""
_JOINED = 1.0
"""Seconds to wait for a thread that is about to end."""
_SLOW = 5.0
"""Seconds after which a heartbeat without an answer is reported."""


class Orders(NamedTuple):
    """What all jobs of one `dibs run` share."""

    command: Sequence[str]
    location: Location
    guard: Guard
    events: EventWriter
    wake: Callable[[], None]
    stdout: OutputStream
    results: ResultFolder
    quiet_stdin: bool = False
    log_bytes: int = 0
    """How much of the output to keep; 0 keeps none."""
    timeout: float = 0
    """Seconds after which the work is ended; 0 for no limit."""
    idle: float = 0
    """Seconds without output and notes after which the work is ended; 0 for no limit."""

    @property
    def captures(self) -> bool:
        """Whether `run` has to see what the command prints."""
        return bool(self.log_bytes or self.idle)


class Job:
    """A command in its own process group, which is ended before its claim is lost."""

    def __init__(self, claim: Claim, orders: Orders) -> None:
        self.claim = claim
        self.interrupted = False
        """Whether ctrl+c ended it."""
        self.lent = False
        """Whether the command has the terminal, so that it gets ctrl+c instead of us."""
        self.outcome = ""
        """The event with which the claim ended."""
        self.left_behind = False
        """Whether processes of the command still work, because they cannot be ended."""
        self._orders = orders
        self._started = boottime()
        self._keeper = Keeper(claim, orders.guard, orders.wake)
        self._reported = 0
        self._ending: Ending | None = None
        self._status: int | None = None
        self._release_reason = ""
        self._code = 0
        self._pump: Pump | None = None
        self._out: Pump | None = None
        self._log: OutputLog | None = None
        self._notes: NotePipe | None = None
        self._noted = 0
        self._failure = ""
        """Why the work was ended by a limit."""
        self._result = orders.results.next() if claim.task.kind == "task" else ""
        self._over: int | None = None
        """The exit code, once the claim has ended."""
        self._abandoned = False
        self._stop: DibsError | None = None
        self._unwritten: DibsError | None = None
        """Why the claim could not be ended yet, although the work has."""
        self._prepared = False
        """Whether only the command itself is left to start."""
        try:
            self._keeper.start()  # first, because a slow reader of stderr can block us
            orders.events.report("acquired", claim)
            # The guard knows it before it starts: `run` may be killed between any two lines.
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
        """Raise an error if the lease is almost over, as after a stop or a long wait."""
        if boottime() >= self._keeper.lease.stop:
            raise Uncertain(
                f"{self.claim.name}: starting the command took longer than the lease; stop"
            )

    def _start(self) -> subprocess.Popen[bytes]:
        orders = self._orders
        if orders.log_bytes:
            from dibs.run.output_log import OutputLog

            keeper = self.claim.keep_output(orders.log_bytes)
            self._log = OutputLog(keeper, orders.log_bytes, orders.events.complain)
        self._notes = NotePipe()
        writers: list[int] = []
        try:
            # The command writes to a terminal directly; elsewhere we keep its last line as the
            # reason.
            if orders.captures or not os.isatty(2):
                self._pump = self._piped(orders.events.stderr, writers)
            if orders.captures:
                self._out = self._piped(orders.stdout, writers)
            return self._popen(*writers)
        finally:
            for writer in writers:
                os.close(writer)

    def _piped(self, stream: OutputStream, writers: list[int]) -> Pump:
        """A pump for a stream of the command; `writers` gets the end that the command writes."""
        pipe, writer = os.pipe()
        writers.append(writer)
        return Pump(pipe, stream, self._log)

    def _popen(
        self, stderr: int | None = None, stdout: int | None = None
    ) -> subprocess.Popen[bytes]:
        assert self._notes is not None
        writer = self._notes.writer
        self._prepared = True
        os.set_inheritable(writer, True)  # only this command gets it
        try:
            return subprocess.Popen(
                self._orders.command,
                env=self._environment(self._notes),
                stdin=subprocess.DEVNULL if self._orders.quiet_stdin else None,
                stdout=stdout,
                stderr=stderr,
                close_fds=False,  # pass on inherited ones; ours are not inheritable
                process_group=0,
            )
        finally:
            os.set_inheritable(writer, False)

    def _environment(self, notes: NotePipe) -> dict[str, str]:
        claim, where = self.claim, self._orders.location.where
        environment = os.environ | {
            "DIBS_ID": claim.id,
            **group.environment(claim.name),
            "DIBS_FENCE": str(claim.fence),
            "DIBS_PAYLOAD": self._payload(),
            "DIBS_ANSWERS": answers_for(claim.answers),
            "DIBS_BOARD": where,
            "DIBS_DIR": where,
            note_pipe.VARIABLE: notes.address(claim.name),
            result_files.VARIABLE: self._result,
        }
        if not self._result:  # a lock has none, and that of an outer `run` is not ours
            del environment[result_files.VARIABLE]
        if claim.task.kind == "lock":
            environment["DIBS_SLOT"] = str(claim.slot)
        return environment

    def _payload(self) -> str:
        """The path of the payload; of one that is no file, a copy that lives as long as the job."""
        path = self.claim.path
        if path is not None or not self._result:
            return path or ""
        try:
            return result_files.copy(f"{self._result}.payload", self.claim.payload())
        except StorageError as error:
            raise OSError(errno.EIO, str(error)) from error

    def _not_started(self, error: OSError | ValueError | RuntimeError) -> None:
        """Release the claim, or fail it if no command could ever start for it."""
        self._keeper.end()
        self._close()
        if self._log is not None:
            self._log.finish(_JOINED)
        what = getattr(error, "strerror", None) or str(error)
        if self._prepared:
            reason = f"the command could not be started: {what}"
            advice = f"{self._orders.command[0]}: {what}: give a command that can be started"
        else:  # our guard process or a thread: the command is not to blame
            what = f"{getattr(error, 'filename', None) or 'a part of it'}: {what}"
            reason = f"dibs run could not start {what}"
            advice = f"{reason}: the command was not started; fix this and try again"
        with suppress(DibsError):
            if isinstance(error, ValueError) and self.claim.task.kind == "task":
                self.claim.fail(reason)  # a NUL in the id, which an environment cannot contain
                self.outcome = "failed"
            else:
                self.claim.release(reason)
                self.outcome = "released"
            self._orders.events.report(self.outcome, self.claim, reason=reason)
        self._orders.guard.dismiss(self.claim.name)
        raise BadName(advice) from None

    @property
    def ending(self) -> bool:
        """Whether the work or its claim is being ended."""
        return self._ending is not None

    def pause(self) -> float:
        """Seconds until the next look at this job, unless something wakes us earlier."""
        if self._over is not None:
            return _JOINED
        if self._ending is not None:
            return group.QUICK
        due = [self._keeper.lease.stop, *(at for at, _ in self._limits())]
        if self._keeper.waits_since and not self.outage:
            due.append(self._keeper.waits_since + int(_SLOW * SECOND))
        return max(0.0, (min(due) - boottime()) / SECOND)

    @property
    def outage(self) -> str:
        """Why the board does not hear of this job now; empty if it does."""
        if self._unwritten is not None:
            return str(self._unwritten)
        since = self._keeper.waits_since
        if not since or boottime() < since + int(_SLOW * SECOND):
            return ""
        return f"the heartbeat of {self.claim.name} has had no answer for {_SLOW:g} s"

    @property
    def notes(self) -> int:
        """The descriptor on which notes of the command arrive; -1 once the claim has ended."""
        return self._notes.reader if self._notes is not None else -1

    def take_notes(self) -> None:
        """Pass the last note of the command on to the thread that writes it."""
        text = self._notes.newest() if self._notes is not None else None
        if text is not None:
            self._noted = boottime()
            self._keeper.note(text)

    def _limits(self) -> Iterator[tuple[int, str]]:
        """When each limit ends the work, and the reason then."""
        orders = self._orders
        if orders.timeout:
            yield (
                self._started + int(orders.timeout * SECOND),
                f"timed out after {orders.timeout:g} s",
            )
        if orders.idle:
            heard = [pump.last for pump in (self._pump, self._out) if pump is not None]
            yield (
                max(self._started, self._noted, *heard) + int(orders.idle * SECOND),
                f"idle for {orders.idle:g} s: no output and no note",
            )

    def release(self, reason: str, code: int) -> None:
        """Stop the work and release the claim; no attempt is counted.

        A signal to `run` is often sent to the command too. A command that had already ended with
        0 is committed; one that a signal ended has not failed.
        """
        self._abandoned = True
        if self._over is not None:
            return
        if self._status is None:
            self._status = self._exited()
        if not self._release_reason and not self._failure and self._status != 0:
            self._release_reason, self._code = reason, code
            self._end()

    def send(self, number: signal.Signals) -> None:
        """Signal the command's group, as the keyboard does."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def look(self) -> int | None:
        """Do the next step; returns the exit code once the claim and its output have ended."""
        if self._over is None:
            self._over = self._step()
            if self._over is None:
                return None
            self._close()
        # What is printed after the claim ended, such as its JSON, follows the command's output.
        if self._out is not None and self._out.behind and not self._abandoned:
            return None
        if self._log is not None:
            self._log.finish(_JOINED)
        return self._over

    def _close(self) -> None:
        """Take no more notes, and remove the copy of the payload."""
        with suppress(OSError):
            os.unlink(f"{self._result}.payload")
        if self._notes is not None:
            self._notes.close()
            self._notes = None

    def _step(self) -> int | None:
        """Do the next step; returns the exit code once the claim has ended."""
        while self._reported < self._keeper.beats:
            self._reported += 1
            self._orders.events.report("renewed", self.claim)
        if self._ending is None:
            self._status = self._exited()
            if self._status is not None or self._past_limit():
                self._end()
        self._look_for_trouble()
        if self._ending is None:
            return None
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
        lease, now, error = self._keeper.lease, boottime(), self._keeper.error
        if self._process.returncode is not None:  # no process is left: only the end is unwritten
            if isinstance(error, Lost):
                self._stop = error
            elif now >= lease.over:
                why = self._unwritten or f"{self.claim.name}: the board did not answer"
                self._stop = Uncertain(f"{why}: the lease is over")
        elif error is not None:
            self._stop = error
        elif now >= (lease.stop if self._ending is None else lease.kill):
            self._stop = Uncertain(f"{self.claim.name}: its lease could not be renewed in time")
        if self._stop is not None:
            self._end()
            if self._ending is not None:
                self._ending.kill = min(self._ending.kill, lease.kill)

    def _past_limit(self) -> bool:
        """Whether a limit ends the work now."""
        now = boottime()
        self._failure = next((reason for at, reason in self._limits() if now >= at), "")
        return bool(self._failure)

    def _end(self) -> None:
        """Begin to end every process of the claim; SIGKILL follows before the lease is over."""
        if self._ending is None:
            grace = int(min(GRACE, self.claim.ttl / 10) * SECOND)
            self._ending = Ending(self._work, min(boottime() + grace, self._keeper.lease.kill))

    def _exited(self) -> int | None:
        """The command's exit status once it has ended, negative for a signal.

        It stays a zombie, so that its pid cannot be reused while its group is ended.
        """
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _gone(self) -> bool:
        """Whether no process works on the claim any more."""
        assert self._ending is not None
        if self._process.returncode is not None:
            return True
        start = boottime()  # read before the look: we may be stopped during it
        if not self._ending.over():
            return self._hopeless(start) and self._leave_behind()
        if self._status is None:
            self._status = self._exited()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # processes that forked faster than we could read
        self._process.wait()
        for pump in (self._pump, self._out):
            if pump is not None:
                pump.join(_JOINED)
        return True

    def _hopeless(self, now: int) -> bool:
        """Whether to give up: the remaining processes refuse to end, or do not end in time."""
        assert self._ending is not None
        late = self._ending.late(now)
        if late:
            self._keeper.end()  # no more heartbeats: the lease runs out
        over = late and now >= self._keeper.lease.over
        return bool(self._ending.left) and (self._ending.stuck or over)

    def _leave_behind(self) -> bool:
        """Report the processes that cannot be ended; the claim expires, because they still work."""
        assert self._ending is not None
        self._keeper.end()
        self._process.poll()  # reap the command
        self._abandoned = self.left_behind = True
        if self._pump is not None:
            self._orders.events.stderr.forget(self._pump)  # it may write without end
        if self._out is not None:
            self._orders.stdout.forget(self._out)
        what = f"these processes cannot be ended: {shown(self._ending.left)}"
        if self._stop is None:
            self._stop = Uncertain(f"{what}; {self.claim.name} is left to expire")
        else:
            self._orders.events.complain(what)
        return True

    def _settle(self) -> int | None:
        """End the claim as its command ended; try again until the lease is over.

        The step compares the claim's exact name, so it is safe however late: it ends this claim, or
        it is refused.
        """
        try:
            self.take_notes()
            self._keeper.write_note()
            return self._settled()
        except Stop as stop:
            if not (isinstance(stop, Uncertain) and stop.again):
                return self._give_up(stop)
            self._unwritten = stop
        except StorageError as error:
            self._unwritten = error
        return None

    def _settled(self) -> int:
        claim, status = self.claim, self._status or 0
        code = status if status >= 0 else 128 - status
        facts: dict[str, object] = {"held": round((boottime() - self._started) / SECOND, 3)}
        number = -status if status < 0 else status - 128
        if self.lent and number in _FROM_TERMINAL:
            self._release_reason, self._code = _FROM_TERMINAL[number], code
            self.interrupted = number == signal.SIGINT
        if self._release_reason:
            code = self._code
            claim.release(self._release_reason)
            self.outcome, facts["reason"] = "released", self._release_reason
        elif self._failure:
            code = TIMED_OUT
            self._end_badly(self._failure, facts | {"exit": code})
            return code
        elif claim.task.kind == "lock":
            claim.release()
            self.outcome, facts["exit"] = "released", code
        elif status == 0:
            try:
                claim.done(result_files.take(self._result) if self._result else None)
            except BadName as error:
                self._end_badly(str(error), facts | {"exit": 1})
                return 1
            except Changed as error:  # the command committed its claim, with another result
                self._orders.events.complain(str(error))
                code = error.exit_code
            self.outcome = "done"
        else:
            self._end_badly(self._reason(status), facts | {"exit": code})
            return code
        self._orders.events.report(self.outcome, claim, **facts)
        self._orders.guard.dismiss(claim.name)
        return code

    def _end_badly(self, reason: str, facts: dict[str, object]) -> None:
        """Fail the task for this reason; a lock is released."""
        if self.claim.task.kind == "lock":
            self.claim.release(reason)
            self.outcome = "released"
        else:
            self.claim.fail(reason)
            self.outcome = "failed"
        self._orders.events.report(self.outcome, self.claim, **facts, reason=reason)
        self._orders.guard.dismiss(self.claim.name)

    def _give_up(self, stop: DibsError) -> int:
        """Report that the claim is lost or uncertain, or has asked; nothing else is done."""
        # After a suspend the overdue heartbeat finds out which, and logs it for operators.
        self._keeper.join(_JOINED)
        if isinstance(self._keeper.error, Lost):
            stop = self._keeper.error
        self._keeper.end()
        asked = isinstance(stop, Lost) and has_asked(self.claim.task, stop.now)
        self.outcome = "asked" if asked else "lost" if isinstance(stop, Lost) else "uncertain"
        why = "the task waits for an answer" if asked else why_stopped(stop, self.claim.task)
        self._orders.events.report(self.outcome, self.claim, reason=why)
        self._orders.guard.dismiss(self.claim.name)
        return ASKED_CODE if asked else Stop.exit_code

    def _reason(self, status: int) -> str:
        how = f"exit {status}" if status >= 0 else f"killed by {signal_name(-status)}"
        last = self._pump.last_line if self._pump is not None else ""
        return f"{how}: {last}" if last else how


def signal_name(number: int) -> str:
    """A signal's name, or its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def why_stopped(stop: DibsError, task: Task) -> str:
    """Why a command was stopped, without the advice for workers that have the claim themselves."""
    from dibs.model.refusals import stop_or_commit

    return str(stop).removesuffix(f": {stop_or_commit(task)}").removesuffix("; stop")
