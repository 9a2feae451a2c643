"""This machine: its identity, its processes, and the terms on which they claim."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from dibs.model.errors import BadName, StorageError, short
from dibs.model.names import check_metadata, check_nonce, fold_owner
from dibs.model.process import Process
from dibs.model.records import Record
from dibs.model.settings import Settings, check_ttl

LINUX = sys.platform == "linux"
"""Other systems have no `/proc` like this, and no pid namespaces: see `dibs.other_systems`."""
_ONLY = "only"
"""The pid namespace of a system that has just one."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_FORTY_BITS = (1 << 40) - 1
_ODD = 0x9E3779B97F
"""An odd factor that spreads near numbers far apart and maps forty bits one to one."""


class Host(NamedTuple):
    """The machine that this code runs on; equal boot ids share one boot-time clock.

    >>> board.host == dibs.this_host()
    True
    """

    name: str
    boot: str
    """The boot id and the time namespace; empty if the system hides the boot id."""
    pidns: str
    user: str
    terminal: str = ""

    @property
    def tag(self) -> str:
        """The name of this boot's clock in file names; empty if the boot id is unknown.

        It does not contain the host name, because containers of one kernel share the clock but
        have different host names.
        """
        return "".join(c for c in self.boot if c.isalnum() and c.isascii())[:64]

    @property
    def signature(self) -> str:
        """Who acts here, for the log: `user@host`, and the terminal if there is one."""
        return f"{self.user}@{self.name} {self.terminal}".rstrip()

    def process(self, pid: int) -> Process | None:
        """The identity of a running process; None if it has exited or cannot be seen here."""
        start = _start_time(pid) if self._sees() else None
        if start is None or start < 0:
            return None
        return Process(self.name, self.boot, self.pidns, pid, start)

    def holder(self, pid: Process | int) -> Process:
        """The identity of the process that holds a claim; raises an error if it cannot hold one."""
        if isinstance(pid, Process):
            return _checked(pid)
        if isinstance(pid, bool) or not isinstance(pid, int) or not 0 < pid < 2**31:
            raise BadName(f"a pid must be 1 or higher, got {short(pid)}")
        if not self._sees():
            raise StorageError(FOREIGN_PROC.format(what=f"cannot look up process {pid}"))
        found = self.process(pid)
        if found is not None:
            return found
        if _start_time(pid) is not None:
            raise BadName(f"process {pid} has exited: give one that is running")
        if self.has_number(pid):
            where = "in /proc" if LINUX else "by ps"
            raise BadName(f"process {pid} is hidden from this user {where}: give one of this user")
        raise BadName(f"there is no process {pid} on this host: give one that is running")

    def parent(self, pid: int) -> int:
        """The pid of the process that started a process; 0 if it cannot be seen."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                return int(file.read(4096).rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return 0

    def has_number(self, pid: int) -> bool:
        """Whether any process has that pid, even a zombie or one hidden from this user."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True

    def gone(self, process: Process) -> bool | None:
        """Whether the process has exited; None if this host cannot know."""
        if (process.host, process.boot, process.pidns) != (self.name, self.boot, self.pidns):
            return None
        if not process.boot or not 0 < process.pid < 2**31 or not self._sees():
            return None
        if self.has_number(process.pid):  # unlike /proc, this shows all users' processes
            start = _start_time(process.pid)
            if start is None:
                return None
            if start == process.start:
                return False
        return (
            True if proc_is_own(self.pidns) else None
        )  # /proc may have been mounted over meanwhile

    def _sees(self) -> bool:
        """Whether pids still have the meaning that they had when this host was read."""
        return bool(self.pidns) and _proc_was_own(os.getpid(), self.pidns)


class Terms:
    """The terms of a claim: its owner, its ttl, and what operators are shown of it."""

    def __init__(
        self,
        host: Host,
        settings: Settings,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str | None = "",
        process: Process | int | None = None,
        nonce: str = "",
    ) -> None:
        self.named_owner, self.named_ttl, self.named_metadata = owner, ttl, metadata
        """What the caller gave; None if the host's name and the board's ttl apply."""
        self.host = host.name
        self.owner = owner if owner is not None else host.name
        self.folded = fold_owner(self.owner)
        self.ttl = check_ttl(ttl) if ttl is not None else settings.ttl
        self.metadata = check_metadata("" if metadata is None else metadata)
        self.process = host.holder(process) if process is not None else None
        self.nonce = check_nonce(nonce) if nonce else ""
        """The end of the claim's name that the caller chose; empty if the engine makes it."""

    def keep_owner(self, owner: str) -> None:
        """Claim as the previous owner; a folded name stays the same when it is folded again."""
        self.owner, self.folded = owner, fold_owner(owner)

    def keep(self, record: Record) -> None:
        """Claim with the previous ttl and metadata, where the caller gave none."""
        if self.named_ttl is None and record.ttl is not None:
            self.ttl = record.ttl
        if self.named_metadata is None:
            self.metadata = record.metadata

    def record(self, at: float) -> Record:
        """The record that a claim on these terms gets at about that time."""
        return Record(self.owner, self.host, self.ttl, at, self.metadata, self.process)


FOREIGN_PROC = "{what}: /proc shows another pid namespace or is not mounted: mount it"


def proc_is_own(pidns: str = "") -> bool:
    """Whether `/proc` shows the pid namespace of this process, and the given one if any.

    In another namespace every pid is a different process: a live holder would be judged dead.
    A system without pid namespaces needs no `/proc` for that.
    """
    if not LINUX:
        return pidns in ("", _ONLY)
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return False
        if pidns and os.readlink("/proc/self/ns/pid") != pidns:
            return False
        with open("/proc/self/status", "rb") as file:
            # One number for each namespace, from that of /proc down to our own.
            numbers = [line.split()[1:] for line in file if line.startswith(b"NSpid:")]
    except OSError:
        return False
    return not numbers or len(numbers[0]) == 1


@cache
def _proc_was_own(pid: int, pidns: str) -> bool:
    """The same, cached for each process, because a child may be in another namespace."""
    return pid == os.getpid() and proc_is_own(pidns)


@cache
def this_host() -> Host:
    """This machine; it is read once.

    >>> dibs.this_host().process(os.getpid()).pid == os.getpid()
    True
    """
    if LINUX:
        boot = _first_line("/proc/sys/kernel/random/boot_id")
        if boot:  # hidden by `subset=pid`; the time namespace alone is not unique
            boot += _link("/proc/self/ns/time")  # a time namespace has its own boot clock
        pidns = _link("/proc/self/ns/pid")
    else:
        from dibs.other_systems import boot_id

        boot, pidns = boot_id(), _ONLY
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or user_name(os.geteuid())
    name = os.environ.get("DIBS_HOST") or os.uname().nodename or "localhost"
    terminal = ""
    with suppress(OSError):
        terminal = os.ttyname(2).removeprefix("/dev/")
    return Host(name, boot, pidns, user, terminal)


def boottime() -> int:
    """Nanoseconds on the boot-time clock, which runs in suspend and which deadlines use."""
    return time.clock_gettime_ns(_CLOCK)


def nonce() -> str:
    """Ten hex digits for one operation, which no other process of any host draws."""
    # Clones of one machine image can draw the same random bytes; time, pid and host differ.
    own = time.time_ns() * _ODD + _process_number()
    return f"{(int.from_bytes(os.urandom(5)) ^ own) & _FORTY_BITS:010X}"


@cache
def _process_number() -> int:
    """A number for each process of each host, cached because `getpid` is a system call."""
    host = int.from_bytes(os.uname().nodename.encode(errors="surrogateescape"))
    return (os.getpid() * _ODD + host) * _ODD & _FORTY_BITS


os.register_at_fork(after_in_child=_process_number.cache_clear)


def user_name(uid: int) -> str:
    """The name of a user, or the number if the system has no name for it."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _first_line(path: str) -> str:
    try:
        with open(path, "rb") as file:  # opening as text would import a codec
            return file.readline().decode("ascii", "replace").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _checked(process: Process) -> Process:
    """The process, if a record can store it; else `BadName`."""
    texts, numbers = process[:3], process[3:]
    fine = all(isinstance(text, str) for text in texts)
    if not fine or any(type(number) is not int or number < 0 for number in numbers):
        raise BadName(f"invalid process, a text or number is wrong: {short(process)}")
    return process


def _start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; -1 if it has exited; None if unknown.

    Without `/proc` it is in milliseconds since 1970: a number that is only compared.
    """
    if not LINUX:
        from dibs.other_systems import start_time

        return start_time(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return -1 if has_ended(fields) else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def has_ended(stat: list[bytes]) -> bool:
    """Whether a process has exited, by the fields of its `stat` after the name.

    A process whose first thread has exited looks like a zombie while other threads run.
    """
    return stat[0] == b"X" or (stat[0] == b"Z" and int(stat[17]) <= 1)
