"""The user's pager: it gets the terminal, and the dashboard takes it back afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from textual.app import App, SuspendNotSupported

from dibs_tui.text.safe import clean, clean_lines

_USUAL = "less"
_LONGEST = 1 << 20


def page_text(app: App[Any], data: bytes) -> str:
    """Show bytes in `$PAGER` and wait for its end; returns why that failed, or ""."""
    try:
        argv = shlex.split(os.environ.get("PAGER") or _USUAL) or [_USUAL]
    except ValueError as error:
        return clean(f"$PAGER cannot be read: {error}")
    text = clean_lines(data.decode("utf-8", "replace"), _LONGEST)
    environ = os.environ | {"LESSSECURE": "1"}  # what a board says must not become a command
    try:
        with app.suspend(), _interrupts_are_the_pagers():
            subprocess.run(argv, input=text.encode(), env=environ, check=False)
    except SuspendNotSupported:
        return "this terminal cannot be handed to a pager"
    except OSError as error:
        return clean(f"{argv[0]} cannot be run: {error.strerror}; set $PAGER")
    redraw = getattr(app, "redraw", None)
    if redraw is not None:
        redraw()
    return ""


@contextmanager
def _interrupts_are_the_pagers() -> Iterator[None]:
    """Leave Ctrl+C to the pager: the terminal sends it to both."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
