"""Ends the dashboard cleanly on every signal that would end it, and when the terminal is gone."""

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

_ALWAYS = (signal.SIGTERM, signal.SIGHUP)
_NOT_FATAL = (
    *(signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)
"""By default these signals do not end a process."""
_UNCATCHABLE = (
    *(signal.SIGKILL, signal.SIGSTOP),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
)
"""After a handler of the latter, the faulty instruction would run again, without end."""
_GRACE = 1.2
_LOOK = 0.5
_OWN_SCREEN = b"".join(
    b"\x1b[%b" % mode
    for mode in (b"<u", b"?2004l", b"?1000l", b"?1003l", b"?1015l", b"?1006l", b"?1004l", b"?7h",
                 b"?1049l", b"?25h")
)  # fmt: skip
"""Escape codes that restore the shell's screen, keys and mouse."""


@contextmanager
def end_on_signals(app: App[None]) -> Iterator[None]:
    """End the app on a signal that ends processes or a lost terminal, within two seconds."""

    modes = termios.tcgetattr(0)

    def on_signal(number: int, _frame: object) -> None:
        _end_app(app, 128 + number, modes)

    before = {number: signal.signal(number, on_signal) for number in _fatal()}
    done = threading.Event()
    threading.Thread(target=_watch, args=(app, done, modes), daemon=True).start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _fatal() -> list[int]:
    """The signals that would end this process and leave the terminal as the dashboard needs it.

    One that the caller ignores stays ignored, as programs in the background need.
    """
    left = (signal.SIG_DFL, signal.default_int_handler)
    others = signal.valid_signals() - {*_ALWAYS, *_NOT_FATAL, *_UNCATCHABLE}
    return [*_ALWAYS, *(number for number in others if signal.getsignal(number) in left)]


def forget_output() -> None:
    """Discard output to a terminal that is gone: an error at exit would change the exit code."""
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for fd, stream in ((1, sys.__stdout__), (2, sys.__stderr__)):
        os.dup2(nothing, fd)
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os.close(nothing)


def _end_app(app: App[None], code: int, modes: list[Any]) -> None:
    threading.Thread(target=_force, args=(code, modes), daemon=True).start()
    app._return_code = code
    try:
        app.call_later(app.exit, return_code=code)
    except Exception:  # the app is not running yet, or not any more
        os._exit(code)


def _force(code: int, modes: list[Any]) -> None:
    """End the process even if the terminal takes no output or the disk hangs."""
    time.sleep(_GRACE)
    with suppress(OSError, termios.error):
        if os.tcgetpgrp(0) == os.getpgrp():
            termios.tcsetattr(0, termios.TCSANOW, modes)
            terminal = os.open(os.ttyname(0), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.write(terminal, _OWN_SCREEN)
    os._exit(code)


def _watch(app: App[None], done: threading.Event, modes: list[Any]) -> None:
    """Notice that the terminal is gone: a process that ignores SIGHUP gets no signal."""
    while not done.wait(_LOOK):
        if not os.isatty(0):
            _end_app(app, 129, modes)
            return
