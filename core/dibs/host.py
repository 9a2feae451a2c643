"""What this machine knows of itself: enough to say that a process is gone, never more."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple


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
        """That process as a claim's holder, or None where the system does not tell."""
        start = _start_time(pid)
        return None if start is None else Process(self.name, self.boot, self.pidns, pid, start)

    def gone(self, process: Process) -> bool | None:
        """Whether the process has ended for sure; None where this host cannot know."""
        if (process.host, process.boot, process.pidns) != (self.name, self.boot, self.pidns):
            return None
        if not process.boot or not 0 < process.pid < 2**31:
            return None
        try:
            os.kill(process.pid, 0)  # /proc may hide other users' processes, this does not
        except ProcessLookupError:
            return True
        except OSError:
            pass
        start = _start_time(process.pid)
        return None if start is None else start != process.start


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


def _start_time(pid: int) -> int | None:
    """The process's start in clock ticks since boot; a zombie has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return -1 if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None
