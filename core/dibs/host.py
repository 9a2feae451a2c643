"""What this machine knows of itself: enough to say that a process is gone, never more."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from dibs.errors import BadName, StorageError, short


class Process(NamedTuple):
    """One process for all time: a pid alone may have been used again."""

    host: str
    boot: str
    pidns: str
    pid: int
    start: int


class Host(NamedTuple):
    """Where this code runs; the boot id makes boot-time clocks comparable."""

    name: str
    boot: str
    """The boot id and the time namespace; empty where the system does not show the boot id."""
    pidns: str
    user: str
    terminal: str = ""

    @property
    def tag(self) -> str:
        """Names this boot's clock in files' names, whatever the host is called; empty if unknown.

        Containers of one kernel share that clock, each under a host name of its own.
        """
        return "".join(c for c in self.boot if c.isalnum() and c.isascii())[:64]

    @property
    def signature(self) -> str:
        """Who acts here, for the journal: `user@host`, and the terminal where there is one."""
        return f"{self.user}@{self.name} {self.terminal}".rstrip()

    def process(self, pid: int) -> Process | None:
        """That process as a claim's holder; None where it has ended or cannot be known here."""
        start = _start_time(pid) if self._sees() else None
        if start is None or start < 0:
            return None
        return Process(self.name, self.boot, self.pidns, pid, start)

    def holder(self, pid: Process | int) -> Process:
        """That process as a claim's holder, or the reason why it cannot be one."""
        if isinstance(pid, Process):
            return _checked(pid)
        if isinstance(pid, bool) or not isinstance(pid, int) or not 0 < pid < 2**31:
            raise BadName(f"a process is named by its number, got {short(pid)}")
        if not self._sees():
            raise StorageError(FOREIGN_PROC.format(what=f"process {pid} is looked up"))
        found = self.process(pid)
        if found is not None:
            return found
        if _start_time(pid) is not None:
            raise BadName(f"process {pid} has ended: give one that is running")
        if self.has_number(pid):
            raise BadName(f"process {pid} is hidden from this user in /proc")
        raise BadName(f"there is no process {pid} on this host")

    def has_number(self, pid: int) -> bool:
        """Whether a process has that number, be it a zombie or hidden from this user."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True

    def gone(self, process: Process) -> bool | None:
        """Whether the process has ended for sure; None where this host cannot know."""
        if (process.host, process.boot, process.pidns) != (self.name, self.boot, self.pidns):
            return None
        if not process.boot or not 0 < process.pid < 2**31 or not self._sees():
            return None
        if self.has_number(process.pid):  # /proc may hide other users' processes, this does not
            start = _start_time(process.pid)
            if start is None:
                return None
            if start == process.start:
                return False
        return True if proc_is_own(self.pidns) else None  # it may have been mounted over

    def _sees(self) -> bool:
        """Whether the numbers of processes mean here what they meant when this was read."""
        return bool(self.pidns) and _proc_was_own(os.getpid(), self.pidns)


FOREIGN_PROC = "{what} in /proc, which shows another pid namespace or is not mounted: mount it"


def proc_is_own(pidns: str = "") -> bool:
    """Whether `/proc` shows the pid namespace of this process, the given one if it is given.

    In another one every number is a different process: a live holder would be judged dead.
    """
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return False
        if pidns and os.readlink("/proc/self/ns/pid") != pidns:
            return False
        with open("/proc/self/status", "rb") as file:
            # One number for each namespace from that of /proc down to our own.
            numbers = [line.split()[1:] for line in file if line.startswith(b"NSpid:")]
    except OSError:
        return False
    return not numbers or len(numbers[0]) == 1


@cache
def _proc_was_own(pid: int, pidns: str) -> bool:
    """The same, looked up once in each process: a child may be in another namespace."""
    return pid == os.getpid() and proc_is_own(pidns)


@cache
def this_host() -> Host:
    """This machine, read once."""
    boot = _first_line("/proc/sys/kernel/random/boot_id")
    if boot:  # `subset=pid` hides it; a time namespace alone is the same number on every machine
        boot += _link("/proc/self/ns/time")  # it has a boot clock of its own
    pidns = _link("/proc/self/ns/pid")
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or user_name(os.geteuid())
    return Host(os.uname().nodename or "localhost", boot, pidns, user, _terminal())


def user_name(uid: int) -> str:
    """The name of a user; the number itself in a container that knows no names."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _terminal() -> str:
    try:
        return os.ttyname(2).removeprefix("/dev/")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _checked(process: Process) -> Process:
    """The process itself, if a record can hold it."""
    texts, numbers = process[:3], process[3:]
    fine = all(isinstance(text, str) for text in texts)
    if not fine or any(type(number) is not int or number < 0 for number in numbers):
        raise BadName(f"not a process: {short(process)}")
    return process


def _start_time(pid: int) -> int | None:
    """The process's start in clock ticks since boot; -1 where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return -1 if has_ended(fields) else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def has_ended(stat: list[bytes]) -> bool:
    """Whether a process is a zombie, by its `stat` from behind the name.

    One whose first thread has ended looks like a zombie while other threads go on.
    """
    return stat[0] == b"X" or (stat[0] == b"Z" and int(stat[17]) <= 1)
