"""The real `dibs` in a tmux of its own: the screen that an operator over ssh has."""

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
    """One window of one server; keys go in, and what it shows is read."""

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
        """The whole screen."""
        return "\n".join(self.lines)

    def wait_for(self, found: Callable[[str], Found], seconds: float = PATIENCE) -> Found:
        """What is found on the screen as soon as it is; tmux tells nobody of a change."""
        end = time.monotonic() + seconds
        while True:
            text = self.text
            it = found(text)
            if it:
                return it
            assert time.monotonic() < end, f"not seen within {seconds} s on\n{text}"
            time.sleep(0.01)

    def shows(self, *texts: str, seconds: float = PATIENCE) -> None:
        """Wait until all of these stand on the screen."""
        self.wait_for(lambda seen: all(text in seen for text in texts), seconds)

    def lacks(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until this stands nowhere on the screen."""
        self.wait_for(lambda seen: text not in seen, seconds)

    def send(self, *keys: str) -> None:
        """Press keys by the names that tmux has for them."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._run("send-keys", "-l", text)

    def resize(self, size: tuple[int, int]) -> None:
        """Drag the window to another size."""
        columns, rows = map(str, size)
        self._run("resize-window", "-x", columns, "-y", rows)

    def end(self) -> None:
        """End the server, and with it all that runs there; tmux leaves its socket behind."""
        subprocess.run([*self._server, "kill-server"], capture_output=True, timeout=PATIENCE)
        self._socket.unlink(missing_ok=True)


@contextmanager
def tmux(home: Path, size: tuple[int, int], *argv: str | Path) -> Iterator[Tmux]:
    """`dibs …` in a tmux, ended at the end."""
    if shutil.which("tmux") is None:
        pytest.skip("NOTHING WAS TRIED END TO END: tmux is not installed")
    env = environment(home, SHELL="/bin/sh")  # a user without a shell would end the server
    del env["TERM"], env["COLORTERM"]
    made = Tmux(size, join(map(str, (*DIBS, *argv))), env)
    try:
        yield made
    finally:
        made.end()
