"""A mount that hangs stops neither the keyboard nor the end of the dashboard."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.tui.terminal import Terminal, terminal, verb
from tests.tui.troubled import answers, three_tasks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claim and two waiting tasks."""
    return three_tasks(tmp_path)


class Hanging:
    """A mount whose file system can be made to hang, and to go on."""

    def __init__(self, below: Path, place: Path) -> None:
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
        """Answer nothing more."""
        os.kill(self._daemon.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        os.kill(self._daemon.pid, signal.SIGCONT)

    def end(self) -> None:
        """Take it down; nobody is left waiting for it."""
        if self._daemon.poll() is None:
            self.go_on()
            subprocess.run(["umount", "--lazy", self.place], capture_output=True, timeout=PATIENCE)
            self._daemon.terminate()
        self._daemon.wait(PATIENCE)


@pytest.fixture
def hanging(path: Path, tmp_path: Path) -> Iterator[Hanging]:
    """The board seen through a mount that can hang."""
    if shutil.which("bindfs") is None:
        pytest.skip("A MOUNT THAT HANGS WAS NOT TRIED: bindfs is not installed")
    config = tmp_path / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("poll = 0.5\n")
    mount = Hanging(path, tmp_path / "mount")
    yield mount
    mount.end()


def test_a_mount_that_hangs_never_stops_the_keyboard(
    hanging: Hanging, path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows("task-2", "polling")
        shown.lacks("claims 0/min")  # the journal was read, so the board was seen whole
        hanging.hang()
        troubled_while_hanging(shown, hanging.place)
        hanging.go_on()
        shown.lacks("NO ANSWER")
        shown.shows("Acts on many are locked.")
        assert re.search(r"the storage (stalled|stalls|is slow): ", shown.text)
        verb(path, "add", "task-9")
        shown.shows("task-9")


def troubled_while_hanging(shown: Terminal, place: Path) -> None:
    """It is named after a while; keys are answered before and after."""
    answers(shown)
    shown.shows("NO ANSWER", str(place))
    answers(shown)
    shown.send("j?")
    shown.shows("What waits to be taken.")
    shown.send("\x1b")
    shown.lacks("What waits to be taken.")
    shown.send("i")
    shown.shows("inspect")
    answers(shown)
    shown.send("i")


@pytest.mark.parametrize("how", ["q", "SIGTERM"])
def test_a_mount_that_hangs_does_not_keep_it(hanging: Hanging, tmp_path: Path, how: str) -> None:
    """A request that the daemon had just taken is waited for by the kernel, even under SIGKILL."""
    assert any(leaves_while_hanging(hanging, tmp_path, how) for _ in range(4))


def leaves_while_hanging(hanging: Hanging, tmp_path: Path, how: str) -> bool:
    """Whether it is gone while nothing answers; if so, in good order."""
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows("task-2", "polling")
        hanging.hang()
        time.sleep(1)  # so that it has asked, and waits for the answer
        if how == "q":
            shown.send("q")
        else:
            os.kill(shown.pid, signal.SIGTERM)
        try:
            code = shown.leaves(10)
        except subprocess.TimeoutExpired:
            return False
        finally:
            hanging.go_on()
        assert code == (0 if how == "q" else 128 + signal.SIGTERM)
        assert termios.tcgetattr(shown.slave) == shown.modes
        assert b"\x1b[?1049l" in shown.raw
    return True


def test_a_mount_that_hangs_from_the_start_shows_where(hanging: Hanging, tmp_path: Path) -> None:
    hanging.hang()
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows(str(hanging.place))
        shown.shows("NO ANSWER")
        hanging.go_on()
        shown.shows("task-2")
