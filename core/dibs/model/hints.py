"""Hints about changed names, from outside the engine, so that a watch need not poll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Hints(Protocol):
    """Reports that names on one board may have changed.

    A hint is only a reason to look: it may be wrong, repeated or missing.

    >>> class NoHints:
    ...     why, alive, deaf = "this storage reports nothing", False, False
    ...     def start(self): ...
    ...     def stop(self): ...
    ...     def expect(self, name, seconds): ...
    >>> watch = board.watch(lambda delta: None, lambda where, changed: NoHints())
    >>> watch.stop(60)
    True
    """

    @property
    def why(self) -> str:
        """Why no hints are possible, in one line; empty if they are, and before `start`."""

    @property
    def alive(self) -> bool:
        """Whether it is listening for changes now."""

    @property
    def deaf(self) -> bool:
        """Whether an expected change was not heard in time."""

    def start(self) -> None:
        """Begin to listen; returns at once, even if the storage hangs."""

    def stop(self) -> None:
        """Stop; nothing is reported afterwards."""

    def expect(self, name: str, seconds: float) -> None:
        """Announce a change of `name`; if it is not heard in time, `deaf` becomes true."""


HintSource = Callable[[str, Callable[[set[str]], object]], Hints]
"""Makes the hints for the board at a place; the callable receives each batch of changed names.

Names are relative to the board. The name of a folder (`""` is the board itself) in a batch means
that hints for it begin now: earlier changes in it were not heard.
"""
