"""Limited terminals and locales, and a dashboard that is stopped for a while."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.tui.terminal import Terminal, terminal
from tests.tui.troubled import three_tasks

ASCII = {"LC_ALL": "C", "LANG": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claimed and two available tasks."""
    return three_tasks(tmp_path)


def test_a_dumb_terminal_gets_one_frame_of_plain_text(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path, env={"TERM": "dumb"}) as shown:
        assert shown.leaves() == 0
        assert b"\x1b" not in shown.raw
        assert "task-2" in shown.text


@pytest.mark.parametrize("locale", [ASCII, LATIN, {"LC_ALL": "C"}])
def test_no_locale_makes_it_show_escapes(
    path: Path, tmp_path: Path, locale: dict[str, str]
) -> None:
    with terminal(tmp_path, path, env=locale) as shown:
        shown.shows("task-2", "* live", "3 * claimed 1")
        assert shown.text.isascii(), "a locale without UTF-8 gets the plain glyphs"
        assert "\\u" not in shown.text
        assert "\\x" not in shown.text
        shown.send("q")
        assert shown.leaves() == 0


def stopped(shown: Terminal) -> bool:
    """Whether a signal has stopped the process."""
    return Path(f"/proc/{shown.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_ctrl_z_stops_it_and_restores_the_terminal_until_it_continues(
    path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("\x1a")
        until = time.monotonic() + PATIENCE
        while not stopped(shown):
            assert time.monotonic() < until, shown.text
            time.sleep(0.01)
        shown.wait_for(lambda: shown.raw.rfind(b"\x1b[?1049l") > shown.raw.rfind(b"\x1b[?1049h"))
        with shown.still:
            shown.screen.reset()
        os.kill(shown.pid, signal.SIGCONT)
        shown.shows("task-2", "● live", "3 ● claimed 1", "? help")
        shown.send("2")
        shown.shows("sorted by priority")
        shown.send("q")
        assert shown.leaves() == 0


def test_a_screen_that_another_program_spoilt_is_redrawn(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        with shown.still:
            shown.screen.reset()
        shown.send("\x0c")
        shown.shows("task-2", "● live", "3 ● claimed 1", "? help")
