"""The pipe through which the command of a `dibs run` says what it is doing.

`dibs note` writes one line into it, and `run` writes the note: so a note neither waits for storage
nor races with a heartbeat. The command inherits the pipe. A program that closed it reaches it below
`/proc`, where the inode proves that it is still the same pipe.
"""

from __future__ import annotations

import os
import select
import stat
from contextlib import suppress

from dibs.model.errors import Refused

VARIABLE = "DIBS_NOTES"
_BYTES = 4096
"""The longest line; a write of so many bytes is never torn."""


class NotePipe:
    """The end that `run` reads."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""

    def address(self, claim: str) -> str:
        """What the command is given, so that it finds the pipe of this claim."""
        return f"{os.getpid()}:{self.writer}:{os.fstat(self.writer).st_ino}:{claim}"

    def newest(self) -> str | None:
        """The last line since the call before; None if there is none."""
        data = b""
        with suppress(BlockingIOError):
            data = os.read(self.reader, 1 << 16)
        if not data:
            return None
        from dibs.model.outputs import NOTE_CHARS, one_line  # most commands say nothing

        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_BYTES:]
        return one_line(lines[-1].decode("utf-8", "replace"))[:NOTE_CHARS] if lines else None

    def close(self) -> None:
        """Close both ends."""
        os.close(self.reader)
        os.close(self.writer)


def send(address: str, claim: str, text: str) -> bool:
    """Send a note to the `run` of this claim; False if the address is of another claim."""
    pid, fd, inode, whose = (address.split(":", 3) + [""] * 3)[:4]
    if whose != claim or not (pid.isdigit() and fd.isdigit() and inode.isdigit()):
        return False
    pipe = _opened(int(pid), int(fd), int(inode))
    if pipe < 0:
        raise Refused(f"the `dibs run` of {claim} has ended or is out of reach: no note was taken")
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        ready = poll.poll(0)
        if not ready or ready[0][1] & select.POLLERR:
            raise Refused(f"the `dibs run` of {claim} does not read: no note was taken")
        os.write(pipe, f"{text}\n".encode())
    except OSError as error:
        raise Refused(f"the `dibs run` of {claim}: {error.strerror}: no note was taken") from error
    finally:
        if pipe != int(fd):
            os.close(pipe)
    return True


def _opened(pid: int, fd: int, inode: int) -> int:
    """The pipe, inherited or opened through `/proc`; -1 if it is neither."""
    if _is_pipe(fd, inode):
        return fd
    path = f"/proc/{pid}/fd/{fd}"
    with suppress(OSError):
        if not _is_pipe(path, inode):  # opening another file could have an effect
            return -1
        found = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if _is_pipe(found, inode):
            return found
        os.close(found)
    return -1


def _is_pipe(where: int | str, inode: int) -> bool:
    with suppress(OSError, OverflowError):
        found = os.stat(where)
        return stat.S_ISFIFO(found.st_mode) and found.st_ino == inode
    return False
