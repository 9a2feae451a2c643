"""A fault of the dashboard's own: one line for the person, the details in a file."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from dibs import DibsError
from dibs_tui.config import folder
from dibs_tui.text import clean

_NAME = "crash.txt"
_GONE = (errno.EIO, errno.ENXIO, errno.EBADF, errno.ENOTTY, errno.EPIPE)
"""What the calls on a terminal answer once it has gone."""


class Crashed(DibsError):
    """The dashboard has a fault; nothing that was read or answered is to blame."""

    exit_code = 70


def path(environ: Mapping[str, str] = os.environ) -> str:
    """Where the details of the last fault lie."""
    return os.path.join(folder(environ, "XDG_STATE_HOME", ".local/state"), _NAME)


def crashed(error: BaseException) -> Crashed:
    """The line that tells of a fault, once its details are kept."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        _keep(error)
        where = f"the details are in {path()}: please report it with them"
    except (OSError, ValueError) as refused:
        where = f"the details could not be kept in {path()}: {refused}"
    return Crashed(clean(f"this is a fault in dibs: {said[:200]}; {where}"))


class NotInstalled(DibsError):
    """What the dashboard draws with is not installed."""

    exit_code = 2


def not_installed(error: ModuleNotFoundError) -> NotInstalled | None:
    """What to install; None where it is a module of our own that is missing."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "dibs", "dibs_tui"):
        return None
    line = shlex.join(["pip", "install", *_requirements()])
    return NotInstalled(
        f"the dashboard needs {module}, which is not installed: `{line}` installs all that it "
        "needs; every verb, `dibs ls` and `dibs --once` work without"
    )


def _requirements() -> list[str]:
    """What the dashboard needs, as the package says it."""
    from importlib.metadata import PackageNotFoundError, requires

    found: list[str] = []
    with suppress(PackageNotFoundError):
        found = [line for line in requires("dibs") or () if ";" not in line]
    return found or ["humanize", "textual", "watchfiles"]


def hung_up(error: BaseException) -> bool:
    """Whether all that went wrong is that the terminal has gone: a window closed, a line cut."""
    code = error.args[0] if isinstance(error, (OSError, termios.error)) and error.args else None
    return code in _GONE and not os.isatty(0)


@contextmanager
def threads_tell(tell: Callable[[str], object]) -> Iterator[None]:
    """A fault in a thread is told in a line, never on the screen as it comes."""

    def told(fault: threading.ExceptHookArgs) -> None:
        if fault.exc_value is not None and not hung_up(fault.exc_value):
            tell(str(crashed(fault.exc_value)))

    before, threading.excepthook = threading.excepthook, told
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
