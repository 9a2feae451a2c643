"""Work beside the screen: a disk that hangs holds up neither the keyboard nor the end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


def aside(work: Callable[[], None]) -> None:
    """Do it in a thread of its own, which the program's end does not wait for."""
    Thread(target=work, daemon=True, name="dibs-aside").start()
