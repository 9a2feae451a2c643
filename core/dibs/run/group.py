"""The processes that work on a claim: its group, and whoever left the group but not the claim."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

VARIABLE = "DIBS_CLAIM"
_POLL = 0.02


def members(pgid: int, claim: str) -> set[int]:
    """Every live process of the group, and every other that has the claim in its environment."""
    return {pid for pid in _pids() if pid != os.getpid() and _belongs(pid, pgid, claim)}


def end(pgid: int, claim: str, until: int) -> None:
    """End them all: asked first, made to before `until` on the boot-time clock.

    Processes may fork while this goes on, so it looks until nobody is left.
    """
    _tell(pgid, claim, signal.SIGTERM)
    _tell(pgid, claim, signal.SIGCONT)  # a stopped process cannot heed the first
    while time.clock_gettime_ns(time.CLOCK_BOOTTIME) < until:
        if not members(pgid, claim):
            return
        time.sleep(_POLL)
    while _tell(pgid, claim, signal.SIGKILL):
        time.sleep(_POLL)


def _tell(pgid: int, claim: str, number: signal.Signals) -> int:
    """Send a signal to every member; returns how many there were.

    The pid is held open while it is looked at again, so that no stranger who got the same
    number meanwhile is hit.
    """
    told = 0
    for pid in members(pgid, claim):
        try:
            held = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _belongs(pid, pgid, claim):
                signal.pidfd_send_signal(held, number)
                told += 1
        except OSError:
            pass
        finally:
            os.close(held)
    return told


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _belongs(pid: int, pgid: int, claim: str) -> bool:
    with suppress(OSError, IndexError, ValueError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, _, group = file.read(4096).rpartition(b")")[2].split()[:3]
        if state in (b"Z", b"X"):
            return False
        if pgid and int(group) == pgid:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{VARIABLE}={claim}".encode() in file.read().split(b"\0")
    return False
