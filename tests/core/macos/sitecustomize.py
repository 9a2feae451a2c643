"""Python imports this at its start, if the folder is in PYTHONPATH: this process is then on macOS.

There is no `/proc`; calls, constants and functions of libc that only Linux has are gone, and those
that macOS has instead are there, made from what Linux has. Where the real `ps` reads `/proc`
itself, which it may: it is another process.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import signal
import sys
import sysconfig
import time
from collections.abc import Callable
from typing import Any

BOOT_ID = b"8C6F2A0E-5E2B-4B7C-9D57-000000000000"
LINUX_ONLY: dict[Any, tuple[str, ...]] = {
    os: (
        *("pipe2", "waitid", "P_PID", "P_ALL", "P_PGID", "WNOWAIT", "WEXITED", "pidfd_open"),
        *(
            "O_TMPFILE",
            "O_PATH",
            "O_DIRECT",
            "memfd_create",
            "eventfd",
            "splice",
            "sched_getaffinity",
        ),
        *("getxattr", "setxattr", "listxattr", "copy_file_range", "posix_fallocate", "getrandom"),
        *("posix_fadvise", "fdatasync", "unshare", "setns"),
    ),
    signal: ("pidfd_send_signal", "SIGPWR", "SIGSTKFLT", "sigtimedwait", "sigwaitinfo"),
    time: ("CLOCK_BOOTTIME", "CLOCK_TAI"),
}
NO_LIBC = ("renameat2", "statx", "syncfs", "gettid")
LIBRARY = ctypes.CDLL


class Library:
    """The libc of macOS: an unknown number of `syscall` is some other call there."""

    def __init__(self, name: str | None = None, use_errno: bool = False) -> None:
        self._libc = LIBRARY(name, use_errno=use_errno)

    def __getattr__(self, name: str) -> Any:
        if name in NO_LIBC:
            raise AttributeError(name)
        if name == "syscall":
            raise SystemExit("a number of Linux was given to another system")
        if name == "renamex_np":
            return lambda src, dst, flags: self._libc.renameat2(-100, src, -100, dst, {4: 1}[flags])
        if name == "sysctlbyname":
            return _sysctlbyname
        return getattr(self._libc, name)


def _sysctlbyname(name: bytes, found: Any, size: Any, new: None, length: Any) -> int:
    if name != b"kern.bootsessionuuid":
        return -1
    found.value = BOOT_ID
    return 0


def _is_proc(path: object) -> bool:
    if isinstance(path, (str, bytes, os.PathLike)):
        text = os.fsdecode(path)
        return text == "/proc" or text.startswith("/proc/")
    return False


def _without_proc(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call for which there is no `/proc`."""

    def checked(*args: Any, **options: Any) -> Any:
        path = args[0] if args else options.get("path")
        if _is_proc(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return call(*args, **options)

    return checked


def pretend() -> None:
    """Make this process one on macOS."""
    sysconfig.get_config_vars()  # it is in a file that is named after the real system
    sys.platform = "darwin"
    for module, names in LINUX_ONLY.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in ("open", "stat", "lstat", "readlink", "listdir", "scandir", "access"):
        setattr(os, name, _without_proc(getattr(os, name)))
    builtins.open = _without_proc(builtins.open)
    ctypes.CDLL = Library  # type: ignore[misc,assignment]


pretend()
