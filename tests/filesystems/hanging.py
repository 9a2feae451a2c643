"""A mount that hangs when a test wants it to: the silent twin of one that is gone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE


class Hanging:
    """A mount whose file system can be made to hang, and to continue."""

    def __init__(self, below: Path, place: Path) -> None:
        if shutil.which("bindfs") is None:
            pytest.skip("A MOUNT THAT HANGS WAS NOT TRIED: bindfs is not installed")
        self.place = place
        place.mkdir()
        self._daemon = subprocess.Popen(
            ["bindfs", "-f", below, place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE
        while not os.path.ismount(place):
            if self._daemon.poll() is not None or time.monotonic() > end:
                self.end()
                pytest.skip("A MOUNT THAT HANGS WAS NOT TRIED: bindfs cannot mount here")
            time.sleep(0.01)

    def hang(self) -> None:
        """Stop answering."""
        os.kill(self._daemon.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        os.kill(self._daemon.pid, signal.SIGCONT)

    def end(self) -> None:
        """Unmount it, and release everything that waits for it."""
        if self._daemon.poll() is None:
            self.go_on()
            subprocess.run(["umount", "--lazy", self.place], capture_output=True, timeout=PATIENCE)
            self._daemon.terminate()
        self._daemon.wait(PATIENCE)
