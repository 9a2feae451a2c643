"""Leaving in good order: hang-up, termination, and a terminal that is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

_GRACE = 1.5
_LOOK = 0.5


@contextmanager
def leave_when_told(app: App[None]) -> Iterator[None]:
    """End the app on SIGHUP, SIGTERM or a lost terminal; for sure within two seconds."""

    def told(number: int, _frame: object) -> None:
        _leave(app, 128 + number)

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGHUP)}
    done = threading.Event()
    threading.Thread(target=_watch, args=(app, done), daemon=True, name="dibs-terminal").start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(app: App[None], code: int) -> None:
    threading.Thread(target=_force, args=(code,), daemon=True).start()
    app._return_code = code
    try:
        app.call_later(app.exit, return_code=code)
    except Exception:  # the app is not running yet, or no more
        os._exit(code)


def _force(code: int) -> None:
    """A write to a terminal that is gone, or a disk that hangs, must not keep the process."""
    time.sleep(_GRACE)
    os._exit(code)


def _watch(app: App[None], done: threading.Event) -> None:
    """Notice that the terminal has gone, which nobody tells a process that ignores SIGHUP."""
    while not done.wait(_LOOK):
        try:
            os.tcgetpgrp(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        except OSError:
            try:
                os.tcgetpgrp(0)
            except OSError:
                _leave(app, 129)
                return
