"""Reports a fault in the dashboard: one line for the user, the details in a file."""

from __future__ import annotations

import errno
import os
import platform
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from dibs import DibsError, NotInstalled
from dibs.installed import install_command
from dibs_tui.settings.config import folder
from dibs_tui.text.safe import clean

_NAME = "crash.txt"
_GONE = (errno.EIO, errno.ENXIO, errno.EBADF, errno.ENOTTY, errno.EPIPE)
"""Errors of calls on a terminal that is gone."""


class Crashed(DibsError):
    """A fault in the dashboard, not in the board or in the input."""

    exit_code = 70


def path(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the file with the details of the last fault."""
    return os.path.join(folder(environ, "XDG_STATE_HOME", ".local/state"), _NAME)


def crashed(error: BaseException) -> Crashed:
    """Save the details of a fault; returns the error that reports it in one line."""
    summary = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        _keep(error)
        where = f"please report it with the details in {path()}"
    except (OSError, ValueError) as refused:
        where = f"the details could not be saved in {path()}: {refused}"
    return Crashed(clean(f"this is a fault in dibs: {summary[:200]}; {where}"))


def not_installed(error: ModuleNotFoundError) -> NotInstalled | None:
    """The error that says what to install; None if the missing module is dibs' own."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "dibs", "dibs_tui"):
        return None
    return NotInstalled(
        f"the dashboard needs {module}, which is not installed: run {install_command()}; "
        "all verbs and `dibs --once` work without it"
    )


def hung_up(error: BaseException) -> bool:
    """Whether the error means only that the terminal is gone: window closed, connection lost."""
    code = error.args[0] if isinstance(error, (OSError, termios.error)) and error.args else None
    return code in _GONE and not os.isatty(0)


@contextmanager
def report_thread_faults(show: Callable[[str], object]) -> Iterator[None]:
    """Report faults of threads by `show`, in one line; a traceback would spoil the screen."""

    def report(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_value is not None and not hung_up(fault.exc_value):
            show(str(crashed(fault.exc_value)))

    before, threading.excepthook = threading.excepthook, report
    try:
        yield
    finally:
        threading.excepthook = before


def _keep(error: BaseException) -> None:
    place = path()
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        os.unlink(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(place, flags, 0o600), "w", errors="backslashreplace") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {sys.argv}\n{_versions()}\n\n")
        file.writelines(traceback.format_exception(error))


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = [f"Python {platform.python_version()}, {platform.platform()}"]
    for name in ("dibs", "textual", "rich", "watchfiles"):
        with suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)
