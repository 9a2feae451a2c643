"""Denied permissions are reported with a remedy, and noticed when they are granted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tui.terminal import DIBS, Terminal, environment
from tests.tui.troubled import answers, recovered, three_tasks, troubled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claimed and two available tasks."""
    return three_tasks(tmp_path)


UNPRIVILEGED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Root without the right to bypass permissions; other users do not have it."""


def unprivileged(*argv: str | Path) -> tuple[str | Path, ...]:
    """This command as a user whom permissions restrict."""
    if os.geteuid():
        return argv
    if shutil.which("setpriv") is None:
        pytest.skip("WHAT IS DENIED WAS NOT TRIED: root needs setpriv for it")
    return (*UNPRIVILEGED, *argv)


@contextmanager
def held_back(home: Path, path: Path) -> Iterator[Terminal]:
    """The dashboard of a user whom permissions restrict."""
    shown = Terminal(unprivileged(*DIBS, path), environment(home), columns=200)
    try:
        yield shown
    finally:
        for folder in ("", ".dibs", ".dibs/records", ".dibs/journal", "done"):
            (path / folder).chmod(0o755)
        shown.end()


@pytest.mark.parametrize(
    ("folder", "what"),
    [("", "enter"), (".dibs", "enter"), (".dibs/records", "enter"), ("done", "list")],
)
def test_a_denied_path_is_named_with_a_remedy_until_access_is_granted(
    path: Path, tmp_path: Path, folder: str, what: str
) -> None:
    with held_back(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        place = path / folder
        place.chmod(0 if what == "enter" else 0o111)
        troubled(shown, "DENIED", "permission denied")
        shown.send("8")
        shown.shows(f"cannot {what} it", "chmod u+rwx it")
        shown.send("1")
        assert "write" not in shown.text
        if not folder:
            answers(shown)
        place.chmod(0o755)
        recovered(shown, path, "DENIED")


def test_a_directory_denied_from_the_start_has_a_card(path: Path, tmp_path: Path) -> None:
    path.chmod(0)
    with held_back(tmp_path, path) as shown:
        shown.shows("DENIED", f"{path}: permission denied", "chmod u+rwx", "q quits")
        path.chmod(0o755)
        shown.shows("task-2", "● live")


def test_one_frame_of_a_denied_board_is_one_line_with_a_remedy(path: Path) -> None:
    (path / ".dibs").chmod(0)
    command = unprivileged(*DIBS, "--once", path)
    done = subprocess.run(command, env=environment(path.parent), capture_output=True, text=True)
    (path / ".dibs").chmod(0o755)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"dibs: {path}/.dibs: permission denied")
    assert "cannot enter it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_reason_for_polling_is_shown(path: Path, tmp_path: Path) -> None:
    (path / "failed").chmod(0o311)
    with held_back(tmp_path, path) as shown:
        shown.shows("DENIED")
        (path / "failed").chmod(0o755)
        (path / ".dibs/journal").chmod(0o311)
        shown.shows("task-2", "polling", ".dibs/journal cannot be read")


@pytest.mark.parametrize("folder", ["", "failed", ".dibs/records"])
def test_a_board_that_cannot_be_written_is_reported(path: Path, folder: str) -> None:
    asked = "import sys; from dibs.files.access import unwritable; print(unwritable(sys.argv[1]))"

    def report() -> str:
        command = unprivileged(sys.executable, "-c", asked, path)
        return subprocess.check_output(command, env=environment(path.parent), text=True)

    assert report() == "\n"
    (path / folder).chmod(0o555)
    assert report().startswith(f"{path / folder}: permission denied")
    assert "cannot write" in report()
