"""What `/proc` says on Linux, found out another way where there is none, as on macOS."""

from __future__ import annotations

import calendar
import ctypes
import os
import subprocess
from contextlib import suppress

_BOOT_IDS = (b"kern.bootsessionuuid", b"kern.boot_id")
"""The id of a boot, on macOS and on FreeBSD."""
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_PATIENCE = 5
"""Seconds after which `ps` is given up; the answer is then that nothing is known."""


def boot_id() -> str:
    """The id of this boot; empty if the system has none."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "sysctlbyname"):
        return ""
    for name in _BOOT_IDS:
        found = ctypes.create_string_buffer(128)
        size = ctypes.c_size_t(len(found))
        if libc.sysctlbyname(name, found, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
            return found.value.decode("ascii", "replace").strip()
    return ""


def start_time(pid: int) -> int | None:
    """When a process started, in milliseconds since 1970; -1 if it has exited; None if unknown.

    `ps` knows only the second, so a process that reuses a pid within it is not recognised.
    """
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(
            ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
        )
        state, _, month, day, clock, year = done.stdout.split()
        if state[:1] in (b"Z", b"X"):
            return -1
        hour, minute, second = map(int, clock.split(b":"))
        date = (int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second)
        return calendar.timegm(date) * 1000
    return None
