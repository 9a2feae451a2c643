"""Runs work in a thread, so that a disk that hangs blocks neither the keys nor the exit."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


def run_in_background(work: Callable[[], object]) -> None:
    """Run `work` in a daemon thread, which the exit does not wait for."""
    Thread(target=work, daemon=True, name="dibs-background").start()
