"""A hanging mount blocks neither the keyboard nor the dashboard's exit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filesystems.hanging import Hanging
from tests.tui.terminal import Terminal, terminal, verb
from tests.tui.troubled import answers, three_tasks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claimed and two available tasks."""
    return three_tasks(tmp_path)


@pytest.fixture
def hanging(path: Path, tmp_path: Path) -> Iterator[Hanging]:
    """The board, seen through a mount that can hang."""
    config = tmp_path / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("poll = 0.5\n")
    mount = Hanging(path, tmp_path / "mount")
    yield mount
    mount.end()


def test_a_hanging_mount_never_blocks_the_keyboard(
    hanging: Hanging, path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows("task-2", "polling")
        shown.shows("5 failed 0")  # the board was seen in full: then a hang is a sign of trouble
        hanging.hang()
        troubled_while_hanging(shown, hanging.place)
        shown.shows("BRAKE")
        hanging.go_on()
        shown.lacks("NO ANSWER")
        locked = r"bulk\s+acts\s+are\s+locked\s+for\s+\S+:"
        words = rf"{locked}\s+the\s+storage\s+(stalled|is\s+stalled|is\s+slow)"
        shown.wait_for(lambda: re.search(words, shown.text, re.DOTALL))
        verb(path, "add", "task-9")
        shown.shows("task-9")


def troubled_while_hanging(shown: Terminal, place: Path) -> None:
    """Wait until the trouble is named; keys are answered before and after."""
    answers(shown)
    shown.shows("NO ANSWER", f"/{place.name} ")
    answers(shown)
    shown.send("j?")
    shown.shows("Show the tasks that workers can claim.")
    shown.send("\x1b")
    shown.lacks("Show the tasks that workers can claim.")
    shown.send("i")
    shown.shows("inspect")
    answers(shown)
    shown.send("i")


@pytest.mark.parametrize("how", ["q", "SIGTERM"])
def test_a_hanging_mount_does_not_keep_it_from_exiting(
    hanging: Hanging, tmp_path: Path, how: str
) -> None:
    """The kernel waits for a request that the daemon has just taken, even under SIGKILL."""
    assert any(leaves_while_hanging(hanging, tmp_path, how) for _ in range(4))


def leaves_while_hanging(hanging: Hanging, tmp_path: Path, how: str) -> bool:
    """Whether it exits cleanly while nothing answers."""
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows("task-2", "polling")
        hanging.hang()
        time.sleep(1)  # so that it waits for an answer
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


def test_a_mount_that_hangs_from_the_start_is_named(hanging: Hanging, tmp_path: Path) -> None:
    hanging.hang()
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows(str(hanging.place))
        shown.shows("NO ANSWER")
        hanging.go_on()
        shown.shows("task-2")
