"""The real `dibs` in its own tmux: the screen of an operator over ssh."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shlex import join
from typing import TypeVar

import pytest

from tests.patience import PATIENCE
from tests.tui.terminal import DIBS, environment

SIZES = ((80, 24), (120, 40), (200, 60))
Found = TypeVar("Found")
_NUMBERS = count(1)


class Tmux:
    """One window of one tmux server: send keys to it and read its screen."""

    def __init__(self, size: tuple[int, int], command: str, env: Mapping[str, str]) -> None:
        self._server = ("tmux", "-L", f"dibs-e2e-{os.getpid()}-{next(_NUMBERS)}", "-f", os.devnull)
        self._env = env
        columns, rows = map(str, size)
        self._run("new-session", "-d", "-x", columns, "-y", rows, command)
        self._run("set-option", "-g", "window-size", "manual")
        self._socket = Path(self._run("display-message", "-p", "#{socket_path}").strip())

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            [*self._server, *command],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        return [line.rstrip() for line in self._run("capture-pane", "-p").split("\n")]

    @property
    def text(self) -> str:
        """The text of the full screen."""
        return "\n".join(self.lines)

    def wait_for(self, found: Callable[[str], Found], seconds: float = PATIENCE) -> Found:
        """The first true result of `found`; polls, because tmux does not report changes."""
        end = time.monotonic() + seconds
        while True:
            text = self.text
            it = found(text)
            if it:
                return it
            assert time.monotonic() < end, f"not seen within {seconds} s on\n{text}"
            time.sleep(0.01)

    def shows(self, *texts: str, seconds: float = PATIENCE) -> None:
        """Wait until all of these texts are on the screen."""
        self.wait_for(lambda seen: all(text in seen for text in texts), seconds)

    def lacks(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until this text is not on the screen."""
        self.wait_for(lambda seen: text not in seen, seconds)

    def send(self, *keys: str) -> None:
        """Press keys, by their names in tmux."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._run("send-keys", "-l", text)

    def resize(self, size: tuple[int, int]) -> None:
        """Resize the window."""
        columns, rows = map(str, size)
        self._run("resize-window", "-x", columns, "-y", rows)

    def end(self) -> None:
        """End the server and everything in it; tmux leaves its socket behind."""
        subprocess.run([*self._server, "kill-server"], capture_output=True, timeout=PATIENCE)
        self._socket.unlink(missing_ok=True)


@contextmanager
def tmux(home: Path, size: tuple[int, int], *argv: str | Path) -> Iterator[Tmux]:
    """`dibs …` in tmux; ended with the block."""
    if shutil.which("tmux") is None:
        pytest.skip("NOTHING WAS TRIED END TO END: tmux is not installed")
    env = environment(
        home, SHELL="/bin/sh"
    )  # the server would end at once for a user without a shell
    del env["TERM"], env["COLORTERM"]
    made = Tmux(size, join(map(str, (*DIBS, *argv))), env)
    try:
        yield made
    finally:
        made.end()
