"""The directory vanishes, is replaced, or changes unnoticed: this is shown, and recovers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import dibs
from tests.tui.sequences import parse
from tests.tui.terminal import Terminal, terminal, verb
from tests.tui.troubled import answers, recovered, three_tasks, troubled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claimed and two available tasks."""
    return three_tasks(tmp_path)


def test_a_directory_that_is_renamed_away_is_missing_until_it_is_back(
    path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        path.rename(tmp_path / "elsewhere")
        troubled(shown, "MISSING", f"/{path.name} ", "retrying")
        answers(shown)
        shown.send("8")
        shown.shows("problems 1", "✗ board", "missing  ")
        shown.lacks("all clear")
        (tmp_path / "elsewhere").rename(path)
        shown.lacks("✗ board")
        shown.send("1")
        recovered(shown, path, "MISSING")


def test_a_replaced_directory_is_shown_with_its_new_content(path: Path, tmp_path: Path) -> None:
    other = dibs.open(tmp_path / "other", create=True)
    other.add("quite-another")
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        path.rename(tmp_path / "elsewhere")
        (tmp_path / "other").rename(path)
        shown.shows("quite-another", "avail 1", "claimed 0")
        assert "task-2" not in shown.text
        recovered(shown, path)


def test_a_board_that_is_created_later_is_found(tmp_path: Path) -> None:
    path = tmp_path / "board"
    with terminal(tmp_path, path) as shown:
        shown.shows("MISSING", str(path), "make a new board with", "init")
        dibs.open(path, create=True)
        shown.shows("No tasks yet", "1  add a task      dibs add hello", "dibs demo")
        verb(path, "add", "task-2")
        shown.shows("task-2", "● live")


def test_a_board_of_a_newer_format_says_what_to_do(path: Path, tmp_path: Path) -> None:
    settings = path / ".dibs/board.toml"
    before = settings.read_text()
    settings.write_text(re.sub(r"format *= *2", "format = 99", before))
    with terminal(tmp_path, path) as shown:
        shown.shows("NEWER", str(path), "Install a newer version")
        settings.write_text(before)
        shown.shows("task-2", "● live")


def test_a_format_that_becomes_newer_locks_the_board_until_it_can_be_read(
    path: Path, tmp_path: Path
) -> None:
    settings = path / ".dibs/board.toml"
    before = settings.read_text()
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        settings.write_text("format = 99\n")
        shown.shows("NEWER", str(path), "Install a newer version")
        shown.lacks("task-2")
        shown.send("X")
        shown.shows("locked while the board cannot be read")
        settings.write_text(before)
        recovered(shown, path, "NEWER")
        shown.shows("task-2")


def test_invalid_settings_say_what_to_fix(path: Path, tmp_path: Path) -> None:
    settings = path / ".dibs/board.toml"
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        settings.write_text("ttl = 'soon'\n")
        shown.shows("BAD SETTINGS", str(path), "Fix the settings")
        shown.wait_for(lambda: "1 to 86400 seconds" in " ".join(shown.text.split()))
        settings.unlink()
        recovered(shown, path, "BAD SETTINGS")


def test_the_head_shows_the_state_from_the_first_row_on(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2")
        shown.lacks("looking")
        shown.shows("● live")


def test_a_path_that_is_no_board_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with terminal(tmp_path, path) as shown:
        shown.shows("NOT A BOARD", str(path), "q quits")
        shown.send("q")
        assert shown.leaves() == 0


def test_changes_lost_by_the_kernel_are_found(path: Path, tmp_path: Path) -> None:
    for n in range(5000):
        (path / f"old-{n:05}.available").touch()
    with terminal(tmp_path, path) as shown:
        shown.shows("● live", "available 5,002")
        os.kill(shown.pid, signal.SIGSTOP)
        for n in range(12000):  # more than its queue holds
            (path / f"new-{n:05}.available").touch()
        for n in range(5000):
            (path / f"new-{n:05}.available").rename(path / f"new-{n:05}.claimed")
        for n in range(3000):
            (path / f"old-{n:05}.available").unlink()
        os.kill(shown.pid, signal.SIGCONT)
        shown.shows("available 9,002", "claimed 5,001")
        shown.send("2/id=old-03000\r")
        shown.shows("1 of 9,002 match", "old-03000")
        shown.send("\x1b")
        shown.lacks("match")
        verb(path, "add", "task-9")
        shown.shows("available 9,003", "● live")


def test_the_cursor_is_visible_without_colour(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path, env={"NO_COLOR": "1"}) as shown:
        shown.shows("task-2", "● live")
        shown.press("2", "j")
        row = shown.wait_for(lambda: under_cursor(shown, "task-3"))
        assert not any(cell.reverse for cell in shown.cells(row - 1))
        shown.press("8", "9", "0", "?", "\x1b", "1", "/", "i", "\x1b", "i", "\r", "\x1b", ":")
        assert shown.leaves_by_q() == 0
        assert coloured(parse(bytes(shown.raw)).kinds) == set()


def under_cursor(shown: Terminal, text: str) -> int:
    """The row with this text if all of it is reversed, else 0."""
    rows = [y for y, line in enumerate(shown.lines) if text in line]
    return next((y for y in rows if all(c.reverse for c in shown.cells(y)[2:100])), 0)


def coloured(kinds: frozenset[str]) -> set[str]:
    """The sequences that set a colour."""
    plain = {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29, 39, 49}
    found = {kind for kind in kinds if kind.endswith(" m")}
    return {kind for kind in found if not (kind[4:-2].isdigit() and int(kind[4:-2]) in plain)}


def test_a_board_whose_mount_is_lost_is_missing_and_not_offered_for_creation(
    tmp_path: Path,
) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=755", "dibs-test", place], capture_output=True
    )
    if done.returncode:
        pytest.skip(f"A LOST MOUNT WAS NOT TRIED: {done.stderr.decode().strip()}")
    try:
        board = dibs.open(place, create=True)
        board.add("task-2")
        with terminal(tmp_path, place) as shown:
            shown.shows("task-2", "● live")
            subprocess.run(["umount", "--lazy", place], check=True)
            shown.shows("MISSING", "mount it", "task-2")
            shown.lacks("make a new board")
            assert "No tasks yet" not in shown.text
            assert list(place.iterdir()) == []
            shown.send("q")
            assert shown.leaves() == 0
        with terminal(tmp_path, place) as shown:  # another dashboard knows about it from the start
            shown.shows("NOT MOUNTED", "as soon as it is mounted")
            assert "that was here is on another mount" in " ".join(shown.text.split())
            assert list(place.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], capture_output=True)
