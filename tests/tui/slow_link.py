"""A terminal at the end of a slow link, which carries a limited number of bytes a second."""

from __future__ import annotations

import os
import select
import time

from tests.tui.terminal import Terminal

_STEP = 0.02
_ASKED = b"\x1b[6n"


class SlowTerminal(Terminal):
    """Reads bytes no faster than the link; reports its cursor when asked, if `answers` is set."""

    rate = 30_000
    answers = True

    def _read(self) -> None:
        due, tail = time.monotonic(), b""
        while True:
            ready, _, _ = select.select([self.master, self._stop], [], [])
            if self._stop in ready:
                return
            data = os.read(self.master, max(1, int(self.rate * _STEP)))
            due = max(due, time.monotonic() - _STEP) + len(data) / self.rate
            time.sleep(max(0.0, due - time.monotonic()))
            with self.still:
                self.raw += data
                self._stream.feed(data.replace(b"\x1b[<u", b""))
                self.still.notify_all()
            tail += data
            asked = tail.count(_ASKED)
            tail = tail.rpartition(_ASKED)[2][1 - len(_ASKED) :]
            if self.answers and asked:
                os.write(self.master, b"\x1b[1;3R" * asked)


class SlowTerminalWithoutAnswers(SlowTerminal):
    """A slow terminal that never reports its cursor."""

    answers = False
