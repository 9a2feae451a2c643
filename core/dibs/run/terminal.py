"""The terminal, which is lent to the command so that it gets the keyboard."""

from __future__ import annotations

import os
import signal
import termios
from contextlib import suppress
from typing import Any


class Terminal:
    """The controlling terminal; without one, no method does anything."""

    def __init__(self) -> None:
        self._fd = -1
        self._own = os.getpgrp()
        self._modes: list[Any] | None = None
        self._asked = 0
        self._shared = not (os.isatty(0) and os.isatty(1))
        """Whether we are in a pipeline, whose other commands may need the keyboard too."""
        self.lent = 0
        """The process group that the terminal is lent to; 0 if none."""
        with suppress(OSError):
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)

    @property
    def there(self) -> bool:
        """Whether there is a terminal."""
        return self._fd >= 0

    def lend(self, pgid: int) -> bool:
        """Put the command's group in the foreground, if we may; returns whether it was done."""
        if not self._may_have(pgid):
            return False
        with suppress(termios.error):
            self._modes = termios.tcgetattr(self._fd)
        self._set(pgid)
        self.lent = pgid
        return True

    def reclaim(self, *, restore: bool = False) -> None:
        """Return to the foreground; with `restore`, also restore the terminal's modes."""
        if not self.lent:
            return
        if self._front() == self.lent:
            self._set(self._own)
            if restore and self._modes is not None:
                with suppress(termios.error):
                    termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        self.lent = 0

    def close(self) -> None:
        """Return to the foreground and close the terminal."""
        self.reclaim()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def follow(self, pid: int) -> bool:
        """React to a command that the terminal has stopped; returns whether it has the foreground.

        A command that needs the keyboard while another process has it continues as soon as we are
        in the foreground. A command that ctrl+z stopped stops us too, so that the shell returns.
        """
        if self._fd < 0:
            return False
        number = stopped_by(pid)
        if number in (signal.SIGTTIN, signal.SIGTTOU):
            self._asked = pid
        elif number:
            self.stop()
            self._resume(pid)
            return bool(self.lent)
        if (number or not self.lent) and self._may_have(pid):
            self._resume(pid)  # brought to the foreground
        return bool(self.lent)

    def stop(self) -> None:
        """Stop as ctrl+z does; the kernel ignores it if no shell could continue us."""
        self.reclaim(restore=True)
        old = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, old)

    def _may_have(self, pgid: int) -> bool:
        """Whether we may give the foreground to this group."""
        if self._shared and pgid != self._asked:
            return False
        return self._front() in (self._own, pgid)

    def _resume(self, pgid: int) -> None:
        self.lend(pgid)
        with suppress(ProcessLookupError):
            os.killpg(pgid, signal.SIGCONT)

    def _front(self) -> int:
        """The process group in the foreground; -1 if unknown."""
        try:
            return os.tcgetpgrp(self._fd) if self._fd >= 0 else -1
        except OSError:
            return -1

    def _set(self, pgid: int) -> None:
        old = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):
            os.tcsetpgrp(self._fd, pgid)
        signal.signal(signal.SIGTTOU, old)


def stopped_by(pid: int) -> int:
    """The signal that has just stopped a child; 0 if none has."""
    try:
        found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return found.si_status if found is not None else 0
