"""Leaving in good order: hang-up, termination, and a terminal that is gone."""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

_GRACE = 1.2
_LOOK = 0.5
_OWN_SCREEN = b"".join(
    b"\x1b[%b" % mode
    for mode in (b"<u", b"?2004l", b"?1000l", b"?1003l", b"?1015l", b"?1006l", b"?1004l", b"?7h",
                 b"?1049l", b"?25h")
)  # fmt: skip
"""What gives the shell its screen, its keys and its mouse back."""


@contextmanager
def leave_when_told(app: App[None]) -> Iterator[None]:
    """End the app on SIGHUP, SIGTERM or a lost terminal; for sure within two seconds."""

    modes = termios.tcgetattr(0)

    def told(number: int, _frame: object) -> None:
        _leave(app, 128 + number, modes)

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGHUP)}
    done = threading.Event()
    threading.Thread(target=_watch, args=(app, done, modes), daemon=True).start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def forget_output() -> None:
    """The terminal has gone: what is still to be written to it would only spoil the exit code."""
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for fd, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        os.dup2(nothing, fd)
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os.close(nothing)


def _leave(app: App[None], code: int, modes: list[Any]) -> None:
    threading.Thread(target=_force, args=(code, modes), daemon=True).start()
    app._return_code = code
    try:
        app.call_later(app.exit, return_code=code)
    except Exception:  # the app is not running yet, or no more
        os._exit(code)


def _force(code: int, modes: list[Any]) -> None:
    """A terminal that takes no output, or a disk that hangs, must not keep the process."""
    time.sleep(_GRACE)
    with suppress(OSError, termios.error):
        if os.tcgetpgrp(0) == os.getpgrp():
            termios.tcsetattr(0, termios.TCSANOW, modes)
            terminal = os.open(os.ttyname(0), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.write(terminal, _OWN_SCREEN)
    os._exit(code)


def _watch(app: App[None], done: threading.Event, modes: list[Any]) -> None:
    """Notice that the terminal has gone, which nobody tells a process that ignores SIGHUP."""
    while not done.wait(_LOOK):
        if not os.isatty(0):
            _leave(app, 129, modes)
            return
