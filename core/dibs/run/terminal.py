"""The terminal's foreground, lent to the command so that the keyboard is its own."""

from __future__ import annotations

import os
import signal
import termios
from contextlib import suppress
from typing import Any


class Terminal:
    """The controlling terminal; where there is none, nothing here does anything."""

    def __init__(self) -> None:
        self._fd = -1
        self._own = os.getpgrp()
        self._modes: list[Any] | None = None
        self._asked = 0
        self._shared = not (os.isatty(0) and os.isatty(1))
        """Another command of a pipeline may want the keyboard: ours gets it when it asks."""
        self.lent = 0
        """The group that has the foreground now; 0 where it was not lent."""
        with suppress(OSError):
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)

    @property
    def there(self) -> bool:
        """Whether there is one."""
        return self._fd >= 0

    def lend(self, pgid: int) -> bool:
        """Put the command's group in the foreground, if it is ours to give."""
        if not self._may_have(pgid):
            return False
        with suppress(termios.error):
            self._modes = termios.tcgetattr(self._fd)
        self._set(pgid)
        self.lent = pgid
        return True

    def take_back(self, *, restore: bool = False) -> None:
        """Be in the foreground again, with the terminal as it was before."""
        if not self.lent:
            return
        if self._front() == self.lent:
            self._set(self._own)
            if restore and self._modes is not None:
                with suppress(termios.error):
                    termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        self.lent = 0

    def close(self) -> None:
        """Let go of it."""
        self.take_back()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def follow(self, pid: int) -> bool:
        """Do as the command does when the keyboard or the terminal stops it.

        One that wants the keyboard while somebody else has it goes on as soon as we are in the
        foreground. One that was stopped by ctrl+z stops us too, so that the shell comes back.
        Returns whether it has the foreground.
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
        """Stop as ctrl+z would; without a shell to continue us, the kernel lets it pass."""
        self.take_back(restore=True)
        old = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, old)

    def _may_have(self, pgid: int) -> bool:
        """Whether the foreground is ours to give, and for this group."""
        if self._shared and pgid != self._asked:
            return False
        return self._front() in (self._own, pgid)

    def _resume(self, pgid: int) -> None:
        self.lend(pgid)
        with suppress(ProcessLookupError):
            os.killpg(pgid, signal.SIGCONT)

    def _front(self) -> int:
        """The group in the foreground; -1 where that cannot be told."""
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
    """The signal that has just stopped a child; 0 where none has."""
    try:
        found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:
        return 0
    return found.si_status if found is not None else 0
