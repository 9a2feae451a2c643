"""The standard streams of the command, which may be closed or full."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, TextIO

from dibs.model.errors import BadName


def mute(fd: int) -> None:
    """Discard what a standard stream still buffers, which would fail again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)


def unwritten(error: OSError, *, acted: bool = False) -> int:
    """Report that the answer could not be written; returns the exit code.

    A reader that has left is an error only after an act on many, whose outcomes are then unread.
    """
    mute(1)
    if isinstance(error, BrokenPipeError) and not acted:
        return 0
    from dibs.cli.say import complain

    where = error.filename or "standard output"
    complain(f"{where}: {error.strerror}: check the board before you try again")
    return 1


class _ClosedStdout(io.StringIO):
    """A standard output that loses what is written, and says so in the next flush.

    An error in `write` would stop a verb between two of its steps.
    """

    _lost = False

    def write(self, text: str) -> int:
        """Remember that something was written."""
        self._lost = self._lost or bool(text)
        return len(text)

    def flush(self) -> None:
        """Raise an error once, if something was written since the last one."""
        lost, self._lost = self._lost, False
        if lost:
            raise OSError(errno.EBADF, "closed")


class _LastingStdout(io.TextIOBase):
    """A standard output that remembers its first error and discards what follows."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write, unless an earlier write has failed."""
        self._attempt(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, unless an earlier write has failed."""
        self._attempt(self.stream.flush)

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return self.stream.isatty()

    def _attempt(self, step: Callable[[], object]) -> None:
        if self.error is not None:
            return
        try:
            step()
        except OSError as error:
            self.error = error
            mute(1)


def to_the_end(act: Callable[[], int]) -> int:
    """Run an act on many to its end, also if its answer cannot be written; the exit code is then 1.

    Otherwise `| head` would end it between two of its tasks.
    """
    lasting = _LastingStdout(sys.stdout)
    sys.stdout = lasting
    try:
        code = act()
        lasting.flush()
    finally:
        sys.stdout = lasting.stream
    return code if lasting.error is None else unwritten(lasting.error, acted=True)


closed: list[int] = []
"""The standard streams that the caller has closed, by number."""


def standard_input() -> BinaryIO:
    """What the caller gives on standard input; `BadName` if it is closed: that is no empty text."""
    if 0 in closed:
        raise BadName("standard input is closed: give `-` only with something to read")
    return sys.stdin.buffer


def flush_between() -> None:
    """Show what a verb has printed so far; only its end reports a closed standard output."""
    if 1 not in closed:
        sys.stdout.flush()


def open_stdio() -> None:
    """Open closed standard streams on `/dev/null`, so that no other file gets their number."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            closed.append(fd)
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or _ClosedStdout()
    sys.stderr = sys.stderr or os.fdopen(2, "w")
