"""The processes of a claim: the command's group, and those that left it but carry its mark."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple

from dibs.host import FOREIGN_PROC, LINUX, boottime, has_ended, proc_is_own, user_name
from dibs.model.errors import StorageError
from dibs.model.sample import SECOND

CLAIM = "DIBS_CLAIM"
WITHIN = "DIBS_WITHIN"
"""The outer claims, if `dibs run` was started by the command of another `dibs run`."""
TICK = 0.25
"""The longest time in seconds between two reads of the clock, which runs on in suspend."""
QUICK = 0.01
"""Seconds between two looks at processes that were asked to end."""
_DYING = SECOND
"""How long after SIGKILL a process counts as one that cannot be ended."""
_SETTLED = 2
"""Seconds after a fork in which a process may not yet run its own program."""
_MARKS = (f"{CLAIM}=".encode(), f"{WITHIN}=".encode())
_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _GROUP, _SESSION, _FLAGS, _THREADS, _BORN, _SIZE = 0, 2, 3, 6, 17, 19, 20
_ENV_START, _ENV_END = 47, 48
_KERNEL_THREAD = 0x00200000


class Work(NamedTuple):
    """How to find the processes of one claim."""

    claim: str
    since: int
    """When `run` started; older processes cannot be marked and are not checked."""
    pgid: int = 0
    """The process group of the command; 0 until it has started."""
    session: int = 0


class Lease(NamedTuple):
    """When the work on a claim must end, on the boot-time clock in nanoseconds."""

    stop: int
    """When the processes get SIGTERM."""
    kill: int
    """When they get SIGKILL: the owner's deadline."""
    over: int
    """When another worker may hold the claim."""


def lease(deadline: int, ttl: float) -> Lease:
    """The times at the end of a lease; `deadline` is at four fifths of the ttl."""
    return Lease(deadline - int(ttl / 10 * SECOND), deadline, deadline + int(ttl / 5 * SECOND))


def environment(claim: str) -> dict[str, str]:
    """The variables that mark every process of the claim, in any group or session."""
    outer = [os.environ.get(name, "") for name in (WITHIN, CLAIM)]
    within = " ".join(filter(None, outer))
    return {CLAIM: claim, WITHIN: within} if within else {CLAIM: claim}


def unmarked() -> dict[str, str]:
    """The environment for a process that belongs to no claim."""
    return {name: value for name, value in os.environ.items() if name not in (CLAIM, WITHIN)}


def check() -> None:
    """Raise an error if processes could not be found, because they could not be ended."""
    if not LINUX:
        raise StorageError(
            "dibs run needs the /proc of Linux to find and end every process of its command: "
            "use `dibs claim`, `beat` and `done` here, or `acquire`"
        )
    if not proc_is_own():
        raise StorageError(FOREIGN_PROC.format(what="dibs run cannot find its processes"))


def born(pid: int | str) -> int:
    """When a process started, in ticks since boot; 0 if unknown."""
    with suppress(OSError, IndexError, ValueError):
        return int(_stat(pid)[_BORN])
    return 0


class Found(NamedTuple):
    """The result of one look at the processes."""

    members: list[int]
    """All live processes of the group, and all others that are marked with the claim."""
    starting: list[int]
    """Processes that are starting a program, so that their mark cannot be read right now."""


class _Kind(Enum):
    MEMBER = auto()
    OTHER = auto()
    """No member now; it is checked again at the next look."""
    STRANGER = auto()
    """A process that can belong to no claim of this `run`."""
    STARTING = auto()
    """In the middle of `exec`: the kernel shows an empty environment for some milliseconds."""


def look(work: Work) -> Found:
    """Find the processes of the claim among all processes."""
    return _strangers.look(work)


def _look_again(work: Work, pids: list[int]) -> Found:
    """Find the processes of the claim among these."""
    kinds = {pid: _kind(pid, work) for pid in pids}
    return Found(*([p for p in pids if kinds[p] is k] for k in (_Kind.MEMBER, _Kind.STARTING)))


class _Strangers:
    """A cache of the processes that can never belong to a claim of this `run`.

    Each is checked once, so that beside thousands of them the end of a task costs one listing of
    `/proc`. The inode there identifies a process, so one that reuses a pid is checked again.
    """

    def __init__(self) -> None:
        self._since = 0
        self._known: dict[str, int] = {}

    def look(self, work: Work) -> Found:
        """The processes of a claim; all except the cached strangers are checked each time."""
        known = self._known if work.since == self._since else {}
        self._since, self._known = work.since, {}
        found, own = Found([], []), str(os.getpid())
        with os.scandir("/proc") as entries:
            there = [(e.name, e.inode()) for e in entries if e.name.isdigit() and e.name != own]
        for name, inode in there:
            if known.get(name) == inode or (kind := _kind(int(name), work)) is _Kind.STRANGER:
                self._known[name] = inode
            elif kind is _Kind.MEMBER:
                found.members.append(int(name))
            elif kind is _Kind.STARTING:
                found.starting.append(int(name))
        return found


_strangers = _Strangers()


class Ending:
    """Ends all processes of a claim: SIGTERM at once, SIGKILL at `kill`."""

    def __init__(self, work: Work, kill: int) -> None:
        self.kill = kill
        self.stuck = False
        """Whether every process that is left refuses SIGKILL, as one of another user does."""
        self._work = work
        self._killed = 0
        # A stopped process handles SIGTERM only after SIGCONT.
        found = look(work)
        self.left, self._starting = found.members, found.starting
        _signal(self.left, work, signal.SIGTERM, signal.SIGCONT)
        self._quiet = not any(found)

    def over(self) -> bool:
        """Whether no process is left; call it repeatedly until it is true.

        It takes two empty looks: one look can miss a process that forks and dies meanwhile. A
        look is complete when each process that was starting a program has a readable mark again.
        """
        work, killing = self._work, boottime() >= self.kill
        found = _look_again(work, self._starting) if self._starting else look(work)
        if self._starting and found.members:
            found = look(work)
        self.left, self._starting = found
        if killing:
            self._killed = self._killed or boottime()
            refused = _signal(self.left, work, signal.SIGKILL)
            self.stuck = bool(self.left) and self.left == refused
        if self.left:
            self._quiet = False
        elif self._starting and not self.late(boottime()):
            return False
        quiet, self._quiet = self._quiet, not self.left
        return quiet and not self.left

    def late(self, now: int) -> bool:
        """Whether SIGKILL was sent some time ago; the lease is then no longer renewed."""
        return bool(self._killed) and now >= self._killed + _DYING


def _signal(pids: list[int], work: Work, *numbers: signal.Signals) -> list[int]:
    """Signal these processes; returns those that refused the signal."""
    refused = []
    for pid in pids:
        try:
            _send(pid, work, numbers)
        except PermissionError:
            refused.append(pid)
        except OSError:
            pass
    return refused


def shown(pids: Iterable[int]) -> str:
    """A list of processes for people: `812 (sleep, root)`."""
    return ", ".join(f"{pid} ({_described(pid)})" for pid in pids)


def _described(pid: int) -> str:
    name, owner = "?", "?"
    with suppress(OSError):
        owner = user_name(os.stat(f"/proc/{pid}").st_uid)
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.readline().strip()
    return f"{name}, {owner}"


def _send(pid: int, work: Work, numbers: tuple[signal.Signals, ...]) -> None:
    """Signal a process, through a pidfd so that a process that reuses its pid is never hit."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # the kernel or libc has no pidfds
        for number in numbers:
            os.kill(pid, number)
        return
    try:
        if _kind(pid, work) is _Kind.MEMBER:
            for number in numbers:
                signal.pidfd_send_signal(held, number)
    finally:
        os.close(held)


def _kind(pid: int, work: Work) -> _Kind:
    """Whether a process belongs to the claim, and if not, whether it has to be checked again."""
    with suppress(OSError, IndexError, ValueError):
        stat = _stat(pid)
        if has_ended(stat):
            return _Kind.OTHER
        group, session, began = int(stat[_GROUP]), int(stat[_SESSION]), int(stat[_BORN])
        if work.pgid and (group, session) == (work.pgid, work.session):
            return _Kind.MEMBER
        if began < work.since:
            return _Kind.STRANGER
        environ = _environment(pid, stat)
        if not environ and _is_starting(_stat(pid)):
            return _Kind.STARTING
        variables = environ.split(b"\0")
        if _marked(variables, work.claim.encode()):
            return _Kind.MEMBER
        # A process gets its mark with its own program, soon after the fork. And only processes of
        # our session can enter the group of another command.
        ours = session == os.getsid(0) or any(v.startswith(_MARKS) for v in variables)
        again = ours or began > _ticks() - _SETTLED * _TICKS
        return _Kind.OTHER if again else _Kind.STRANGER
    return _Kind.OTHER


def _is_starting(stat: list[bytes]) -> bool:
    """Whether a process with an empty environment is starting a program, which may fill it.

    A program that was started without an environment has a place for it, of length 0.
    """
    if int(stat[_FLAGS]) & _KERNEL_THREAD:
        return False
    start, end = int(stat[_ENV_START]), int(stat[_ENV_END])
    runs = int(stat[_SIZE]) > 0 or int(stat[_THREADS]) > 1
    return runs and not 0 < start == end


def _environment(pid: int, stat: list[bytes]) -> bytes:
    """The environment that a process started with; read from a thread that is still alive."""
    path = f"/proc/{pid}/environ"
    if stat[_STATE] == b"Z":
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        path = f"/proc/{pid}/task/{max(threads)}/environ"
    with open(path, "rb") as file:
        return file.read()


def _ticks() -> int:
    """The current time in ticks, as in `stat`."""
    return boottime() * _TICKS // SECOND


def _stat(pid: int | str) -> list[bytes]:
    """The fields after the name in a process's `stat`; raw calls, because it is read often."""
    file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split(None, _ENV_END + 1)
    finally:
        os.close(file)


def _marked(variables: list[bytes], claim: bytes) -> bool:
    if CLAIM.encode() + b"=" + claim in variables:
        return True
    within = f"{WITHIN}=".encode()
    return any(claim in v[len(within) :].split(b" ") for v in variables if v.startswith(within))
