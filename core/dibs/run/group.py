"""The processes that work on a claim: its group, and whoever left the group but not the claim."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from dibs.clock import SECOND
from dibs.errors import StorageError
from dibs.host import FOREIGN_PROC, has_ended, proc_is_own, user_name

CLAIM = "DIBS_CLAIM"
WITHIN = "DIBS_WITHIN"
"""The claims that a claim is worked on within: `dibs run` in the command of another."""
TICK = 0.25
"""Seconds, at most, between looks at the clock: it runs on while everything sleeps."""
QUICK = 0.01
"""Seconds between two looks at processes that have been told to end."""
_DYING = SECOND
"""How long a process may take to go that got SIGKILL, before it is one that cannot be ended."""
_SETTLED = 2
"""Seconds after which a process runs the program that it was forked for."""
_MARKS = (f"{CLAIM}=".encode(), f"{WITHIN}=".encode())
_TICKS = os.sysconf("SC_CLK_TCK")
_STATE, _GROUP, _SESSION, _BORN = 0, 2, 3, 19
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Work(NamedTuple):
    """How the processes of one claim are found."""

    claim: str
    since: int
    """When `run` was born: who is older cannot be marked, and need not be asked."""
    pgid: int = 0
    """0 until the command has started."""
    session: int = 0


class Lease(NamedTuple):
    """When the work on a claim has to end, on the boot-time clock in nanoseconds."""

    stop: int
    """The processes are asked to end."""
    kill: int
    """They are made to: the owner's deadline."""
    over: int
    """Somebody else may hold the claim."""


def lease(deadline: int, ttl: float) -> Lease:
    """The last moments of a claim whose owner's deadline is four fifths of its ttl."""
    return Lease(deadline - int(ttl / 10 * SECOND), deadline, deadline + int(ttl / 5 * SECOND))


def boottime() -> int:
    """Nanoseconds on a clock that runs through suspend, the one that deadlines are told by."""
    return time.clock_gettime_ns(_CLOCK)


def environment(claim: str) -> dict[str, str]:
    """What marks every process of the claim, whatever group or session it goes to."""
    outer = [os.environ.get(name, "") for name in (WITHIN, CLAIM)]
    within = " ".join(filter(None, outer))
    return {CLAIM: claim, WITHIN: within} if within else {CLAIM: claim}


def unmarked() -> dict[str, str]:
    """The environment of a process that belongs to no claim."""
    return {name: value for name, value in os.environ.items() if name not in (CLAIM, WITHIN)}


def check() -> None:
    """Refuse to run what could not be ended."""
    if not proc_is_own():
        raise StorageError(FOREIGN_PROC.format(what="dibs run finds its processes"))


def born(pid: int | str) -> int:
    """When a process began, in ticks since the boot; 0 where that cannot be told."""
    with suppress(OSError, IndexError, ValueError):
        return int(_stat(pid)[_BORN])
    return 0


def members(work: Work) -> list[int]:
    """Every live process of the group, and every other that is marked with the claim."""
    return _strangers.others(work)


class _Strangers:
    """The processes that belong to no claim of this `run` and never will: each is asked once.

    Beside thousands of them the end of a task costs one listing of `/proc`. A process is known
    again by its inode there, so that another one with its number is asked.
    """

    def __init__(self) -> None:
        self._since = 0
        self._known: dict[str, int] = {}

    def others(self, work: Work) -> list[int]:
        """The processes of a claim; who is no stranger is asked each time."""
        known = self._known if work.since == self._since else {}
        self._since, self._known = work.since, {}
        found, own = [], str(os.getpid())
        with os.scandir("/proc") as entries:
            there = [(e.name, e.inode()) for e in entries if e.name.isdigit() and e.name != own]
        for name, inode in there:
            if known.get(name) == inode or (belongs := _belongs(int(name), work)) is None:
                self._known[name] = inode
            elif belongs:
                found.append(int(name))
        return found


_strangers = _Strangers()


class Ending:
    """The end of all processes of a claim: asked at once, made to when it is time."""

    def __init__(self, work: Work, kill: int) -> None:
        self.kill = kill
        self.stuck = False
        """Every process that is left refuses SIGKILL: it became another user."""
        self._work = work
        self._killed = 0
        # A stopped process cannot heed the first before it gets the second.
        self.left, _ = _signal(work, signal.SIGTERM, signal.SIGCONT)
        self._quiet = not self.left

    def over(self) -> bool:
        """Whether nobody is left; to be asked again and again until then.

        A process that forks and dies while the list is read can be missed once.
        """
        if boottime() >= self.kill:
            self._killed = self._killed or boottime()
            self.left, refused = _signal(self._work, signal.SIGKILL)
            self.stuck = bool(self.left) and self.left == refused
        else:
            self.left = members(self._work)
        quiet, self._quiet = self._quiet, not self.left
        return quiet and not self.left

    def late(self, now: int) -> bool:
        """Whether SIGKILL was sent some time ago: no lease is renewed for what is left."""
        return bool(self._killed) and now >= self._killed + _DYING


def _signal(work: Work, *numbers: signal.Signals) -> tuple[list[int], list[int]]:
    """Send signals to every member; returns them all, and those that may not be signalled."""
    found, refused = members(work), []
    for pid in found:
        try:
            _send(pid, work, numbers)
        except PermissionError:
            refused.append(pid)
        except OSError:
            pass
    return found, refused


def shown(pids: Iterable[int]) -> str:
    """Processes as a person is shown them: `812 (sleep, root)`."""
    return ", ".join(f"{pid} ({_described(pid)})" for pid in pids)


def _described(pid: int) -> str:
    name, owner = "?", "?"
    with suppress(OSError):
        owner = user_name(os.stat(f"/proc/{pid}").st_uid)
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.readline().strip()
    return f"{name}, {owner}"


def _send(pid: int, work: Work, numbers: tuple[signal.Signals, ...]) -> None:
    """Signal a process; held open meanwhile, so that no stranger who got its number is hit."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # a kernel or a libc that does not know pidfds
        for number in numbers:
            os.kill(pid, number)
        return
    try:
        if _belongs(pid, work):
            for number in numbers:
                signal.pidfd_send_signal(held, number)
    finally:
        os.close(held)


def _belongs(pid: int, work: Work) -> bool | None:
    """Whether a process belongs to the claim; None for a stranger to every claim of this `run`."""
    with suppress(OSError, IndexError, ValueError):
        stat = _stat(pid)
        if has_ended(stat):
            return False
        group, session, began = int(stat[_GROUP]), int(stat[_SESSION]), int(stat[_BORN])
        if work.pgid and (group, session) == (work.pgid, work.session):
            return True
        if began < work.since:
            return None
        variables = _environment(pid, stat).split(b"\0")
        if _marked(variables, work.claim.encode()):
            return True
        # A mark comes with the program that a process begins with, soon after its fork; and into
        # the group of another command nothing comes from outside of our session.
        ours = session == os.getsid(0) or any(v.startswith(_MARKS) for v in variables)
        return False if ours or began > _ticks() - _SETTLED * _TICKS else None
    return False


def _environment(pid: int, stat: list[bytes]) -> bytes:
    """What a process was started with; of one whose first thread has ended, from another."""
    path = f"/proc/{pid}/environ"
    if stat[_STATE] == b"Z":
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        path = f"/proc/{pid}/task/{max(threads)}/environ"
    with open(path, "rb") as file:
        return file.read()


def _ticks() -> int:
    """Now, as `stat` counts it."""
    return boottime() * _TICKS // SECOND


def _stat(pid: int | str) -> list[bytes]:
    """What follows a process's name in its `stat`; read as cheaply as can be."""
    file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 4096).rpartition(b")")[2].split(None, _BORN + 1)
    finally:
        os.close(file)


def _marked(variables: list[bytes], claim: bytes) -> bool:
    if CLAIM.encode() + b"=" + claim in variables:
        return True
    within = f"{WITHIN}=".encode()
    return any(claim in v[len(within) :].split(b" ") for v in variables if v.startswith(within))
