"""What denies is named with what helps, and let in again by itself."""

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
    """A board with one claim and two waiting tasks."""
    return three_tasks(tmp_path)


UNPRIVILEGED = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Root without the right to pass over permissions; everybody else has none."""


def unprivileged(*argv: str | Path) -> tuple[str | Path, ...]:
    """That command as somebody whom permissions hold back."""
    if os.geteuid():
        return argv
    if shutil.which("setpriv") is None:
        pytest.skip("WHAT IS DENIED WAS NOT TRIED: root needs setpriv for it")
    return (*UNPRIVILEGED, *argv)


@contextmanager
def held_back(home: Path, path: Path) -> Iterator[Terminal]:
    """The dashboard of somebody whom permissions hold back."""
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
def test_what_denies_is_named_with_what_to_do_until_it_lets_in(
    path: Path, tmp_path: Path, folder: str, what: str
) -> None:
    with held_back(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        place = path / folder
        place.chmod(0 if what == "enter" else 0o111)
        troubled(shown, "DENIED", f"{place}: permission denied", f"may not {what} it")
        assert "chmod u+rwx it" in " ".join(shown.text.split())
        assert "write" not in shown.text.replace("read-write", "")
        if not folder:
            answers(shown)
        place.chmod(0o755)
        recovered(shown, path, "DENIED")


def test_a_directory_that_denies_from_the_start_has_a_card(path: Path, tmp_path: Path) -> None:
    path.chmod(0)
    with held_back(tmp_path, path) as shown:
        shown.shows("DENIED", f"{path}: permission denied", "chmod u+rwx", "q leaves")
        path.chmod(0o755)
        shown.shows("task-2", "● live")


def test_one_frame_of_what_denies_is_one_line_that_helps(path: Path) -> None:
    (path / ".dibs").chmod(0)
    command = unprivileged(*DIBS, "--once", path)
    done = subprocess.run(command, env=environment(path.parent), capture_output=True, text=True)
    (path / ".dibs").chmod(0o755)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"dibs: {path}/.dibs: permission denied")
    assert "may not enter it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_why_it_polls_is_said(path: Path, tmp_path: Path) -> None:
    (path / "failed").chmod(0o311)
    with held_back(tmp_path, path) as shown:
        shown.shows("DENIED")
        (path / "failed").chmod(0o755)
        (path / ".dibs/journal").chmod(0o311)
        shown.shows("task-2", "polling", ".dibs/journal may not be read")


@pytest.mark.parametrize("folder", ["", "failed", ".dibs/records"])
def test_a_board_that_cannot_be_changed_is_known_to_be_so(path: Path, folder: str) -> None:
    asked = "import sys; from dibs_tui.rights import unwritable; print(unwritable(sys.argv[1]))"

    def told() -> str:
        command = unprivileged(sys.executable, "-c", asked, path)
        return subprocess.check_output(command, env=environment(path.parent), text=True)

    assert told() == "\n"
    (path / folder).chmod(0o555)
    assert told().startswith(f"{path / folder}: permission denied")
    assert "may not write" in told()
