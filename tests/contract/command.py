"""The command `dibs -d BOARD …` as a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dibs.board import locate
from tests.patience import PATIENCE

CORE = Path(__file__).parents[2] / "core"


class Command:
    """Runs `dibs -d BOARD …` as a separate process."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.env = os.environ | {"PYTHONPATH": str(CORE), "USER": "tester"}

    def __call__(self, *argv: str, code: int = 0) -> str:
        """Run it and return its output; checks the exit code and that stderr is one line.

        Each command that a message quotes has to name the board; it is returned without that.
        """
        done = self.run(*argv)
        assert done.returncode == code, done
        message = done.stderr.decode("utf-8", "surrogateescape")
        assert "Traceback" not in message
        assert len(message.splitlines()) <= 1, message
        if code in (1, 2, 3, 5):
            assert message.startswith("dibs: ")
        printed = done.stdout.decode("utf-8", "surrogateescape")
        for line in (printed + message).split("\n"):
            assert line.isprintable(), line
        assert self.runnable(message) == message
        message = message.replace(self.runnable("`dibs ls").removesuffix("ls"), "`dibs ")
        return (printed if code in (0, 4, 6) else message).rstrip("\n")

    def runnable(self, text: str) -> str:
        """A text in which each command of dibs names the board."""
        return locate(self.where).runnable(text)

    def run(self, *argv: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "dibs", "-d", self.where, *argv]
        return subprocess.run(command, capture_output=True, env=self.env, timeout=PATIENCE)

    def run_with(self, text: str, *argv: str) -> subprocess.CompletedProcess[bytes]:
        """The same with a text on standard input."""
        command = [sys.executable, "-m", "dibs", "-d", self.where, *argv]
        data = text.encode()
        return subprocess.run(
            command, input=data, capture_output=True, env=self.env, timeout=PATIENCE
        )
