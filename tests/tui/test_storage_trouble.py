"""The directory goes, denies, hangs or is another: that is said, and mends by itself."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

import dibs
from tests.tui.sequences import parse
from tests.tui.terminal import DIBS, Terminal, environment, terminal, verb

NOTICED = 4.0
"""Seconds within which trouble, and its end, is on the screen."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claim and two waiting tasks."""
    board = dibs.open(tmp_path / "board", create=True)
    for n in (1, 2, 3):
        board.add(f"task-{n}")
    board.claim("task-1", owner="web-1", ttl=3600)
    return tmp_path / "board"


def brightness(shown: Terminal, text: str) -> int:
    """How bright the characters of a text are that stands on the screen once."""
    for y, line in enumerate(shown.lines):
        if text in line:
            colour = shown.cells(y)[line.index(text)].fg
            return sum(bytes.fromhex(colour))
    raise AssertionError(f"{text} is not on\n{shown.text}")


def troubled(shown: Terminal, *words: str) -> None:
    """The banner says these words, and the rows are dim."""
    bright = brightness(shown, "task-2")
    shown.shows(*words, seconds=NOTICED)
    shown.wait_for(lambda: brightness(shown, "task-2") < 0.75 * bright)
    assert "task-2" in shown.text


def answers(shown: Terminal) -> None:
    """Keys are answered meanwhile."""
    took = []
    for key, text in [("2", "─ 2 ○ available"), ("3", "─ 3 ● claimed")] * 5:
        start = time.monotonic()
        shown.send(key)
        shown.shows(text, seconds=1)
        took.append(time.monotonic() - start)
    assert median(took) < 0.1, took
    shown.send("1")


def recovered(shown: Terminal, path: Path, *gone: str) -> None:
    """The banner has gone by itself, and what happens is seen again."""
    for word in gone:
        shown.lacks(word, NOTICED)
    verb(path, "add", "task-9")
    shown.shows("task-9", "● live", seconds=NOTICED)


def test_a_directory_that_is_renamed_away_is_missing_until_it_is_back(
    path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        path.rename(tmp_path / "elsewhere")
        troubled(shown, "MISSING", str(path), "trying again")
        answers(shown)
        (tmp_path / "elsewhere").rename(path)
        recovered(shown, path, "MISSING")


def test_a_directory_that_is_replaced_is_shown_as_it_is_now(path: Path, tmp_path: Path) -> None:
    other = dibs.open(tmp_path / "other", create=True)
    other.add("quite-another")
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        path.rename(tmp_path / "elsewhere")
        (tmp_path / "other").rename(path)
        shown.shows("quite-another", "1 available", "0 claimed", seconds=NOTICED)
        assert "task-2" not in shown.text
        recovered(shown, path)


def test_a_board_that_is_made_later_is_found(tmp_path: Path) -> None:
    path = tmp_path / "board"
    with terminal(tmp_path, path) as shown:
        shown.shows("MISSING", str(path), "dibs init")
        dibs.open(path, create=True)
        shown.shows("EMPTY", "Put one there:  dibs -d", "dibs demo", seconds=NOTICED)
        verb(path, "add", "task-2")
        shown.shows("task-2", "● live", seconds=NOTICED)


def test_a_board_of_a_newer_format_says_what_to_do(path: Path, tmp_path: Path) -> None:
    settings = path / ".dibs/board.toml"
    before = settings.read_text()
    settings.write_text(re.sub(r"format *= *1", "format = 99", before))
    with terminal(tmp_path, path) as shown:
        shown.shows("NEWER", str(path), "pip install --upgrade dibs")
        settings.write_text(before)
        shown.shows("task-2", "● live", seconds=NOTICED)


def test_a_format_that_becomes_newer_locks_the_board_until_it_can_be_read(
    path: Path, tmp_path: Path
) -> None:
    settings = path / ".dibs/board.toml"
    before = settings.read_text()
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        settings.write_text("format = 99\n")
        shown.shows("NEWER", str(path), "pip install --upgrade dibs", seconds=NOTICED)
        shown.lacks("task-2", seconds=1)
        shown.send("X")
        shown.shows("locked while the board cannot be seen")
        settings.write_text(before)
        recovered(shown, path, "NEWER")
        shown.shows("task-2")


def test_settings_that_are_no_settings_say_what_to_mend(path: Path, tmp_path: Path) -> None:
    settings = path / ".dibs/board.toml"
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        settings.write_text("ttl = 'soon'\n")
        shown.shows("FOUL", str(path), "ttl must be", "Mend its settings", seconds=NOTICED)
        settings.unlink()
        recovered(shown, path, "FOUL")


def test_the_head_says_how_things_are_from_the_first_row_on(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2")
        shown.lacks("looking", seconds=0.25)
        shown.shows("as of", "● live", seconds=0.5)


def test_a_place_that_is_no_board_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with terminal(tmp_path, path) as shown:
        shown.shows("NOT A BOARD", str(path), "q leaves")
        shown.send("q")
        assert shown.leaves(2) == 0


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
        for folder in ("", ".dibs", ".dibs/claims", ".dibs/journal", "done"):
            (path / folder).chmod(0o755)
        shown.end()


@pytest.mark.parametrize(
    ("folder", "what"),
    [("", "enter"), (".dibs", "enter"), (".dibs/claims", "enter"), ("done", "list")],
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
        shown.shows("task-2", "● live", seconds=NOTICED)


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
        shown.shows("task-2", "polling", ".dibs/journal may not be read", seconds=NOTICED)


@pytest.mark.parametrize("folder", ["", "failed", ".dibs/claims"])
def test_a_board_that_cannot_be_changed_is_known_to_be_so(path: Path, folder: str) -> None:
    asked = "import sys; from dibs_tui.rights import unwritable; print(unwritable(sys.argv[1]))"

    def told() -> str:
        command = unprivileged(sys.executable, "-c", asked, path)
        return subprocess.check_output(command, env=environment(path.parent), text=True)

    assert told() == "\n"
    (path / folder).chmod(0o555)
    assert told().startswith(f"{path / folder}: permission denied")
    assert "may not write" in told()


class Hanging:
    """A mount whose file system can be made to hang, and to go on."""

    def __init__(self, below: Path, place: Path) -> None:
        self.place = place
        place.mkdir()
        self._daemon = subprocess.Popen(
            ["bindfs", "-f", below, place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 5
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
            subprocess.run(["umount", "--lazy", self.place], capture_output=True, timeout=10)
            self._daemon.terminate()
        self._daemon.wait(10)


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
        hanging.hang()
        troubled_while_hanging(shown, hanging.place)
        hanging.go_on()
        shown.lacks("NO ANSWER", NOTICED)
        shown.shows("the storage stalled: no answer for", "Acts on many are locked.")
        verb(path, "add", "task-9")
        shown.shows("task-9", seconds=NOTICED)


def troubled_while_hanging(shown: Terminal, place: Path) -> None:
    """It is named after a while; keys are answered before and after."""
    answers(shown)
    shown.shows("NO ANSWER", str(place), seconds=10)
    answers(shown)
    shown.send("j?")
    shown.shows("What waits to be taken.", seconds=1)
    shown.send("\x1b")
    shown.lacks("What waits to be taken.", seconds=1)
    shown.send("i")
    shown.shows("inspect", seconds=1)
    answers(shown)
    shown.send("i")


@pytest.mark.parametrize("how", ["q", "SIGTERM"])
def test_a_mount_that_hangs_does_not_keep_it(hanging: Hanging, tmp_path: Path, how: str) -> None:
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows("task-2", "polling")
        hanging.hang()
        time.sleep(1)  # so that it has asked, and waits for the answer
        if how == "q":
            shown.send("q")
        else:
            os.kill(shown.pid, signal.SIGTERM)
        assert shown.leaves(2) == (0 if how == "q" else 128 + signal.SIGTERM)
        assert termios.tcgetattr(shown.slave) == shown.modes
        assert b"\x1b[?1049l" in shown.raw


def test_a_mount_that_hangs_from_the_start_shows_where(hanging: Hanging, tmp_path: Path) -> None:
    hanging.hang()
    with terminal(tmp_path, hanging.place) as shown:
        shown.shows(str(hanging.place), seconds=3)
        shown.shows("NO ANSWER", seconds=10)
        hanging.go_on()
        shown.shows("task-2", seconds=NOTICED)


def test_what_the_kernel_forgot_to_tell_is_found(path: Path, tmp_path: Path) -> None:
    for n in range(5000):
        (path / f"old-{n:05}.available").touch()
    with terminal(tmp_path, path) as shown:
        shown.shows("● live", "5,002 available")
        os.kill(shown.pid, signal.SIGSTOP)
        for n in range(12000):  # more than its queue holds
            (path / f"new-{n:05}.available").touch()
        for n in range(5000):
            (path / f"new-{n:05}.available").rename(path / f"new-{n:05}.claimed")
        for n in range(3000):
            (path / f"old-{n:05}.available").unlink()
        os.kill(shown.pid, signal.SIGCONT)
        shown.shows("9,002 available", "5,001 claimed", seconds=6)
        shown.send("2/id=old-03000\r")
        shown.shows("1 of 9,002 match", "old-03000")
        shown.send("\x1b")
        shown.lacks("match")
        verb(path, "add", "task-9")
        shown.shows("9,003 available", "● live", seconds=NOTICED)


def test_without_colour_the_cursor_is_seen(path: Path, tmp_path: Path) -> None:
    with terminal(tmp_path, path, env={"NO_COLOR": "1"}) as shown:
        shown.shows("task-2", "● live")
        shown.press("2", "j")
        row = next(y for y, line in enumerate(shown.lines) if "task-3" in line)
        reverse = [cell.reverse for cell in shown.cells(row)]
        assert all(reverse[2:100])
        assert not any(cell.reverse for cell in shown.cells(row - 1))
        shown.press("8", "9", "0", "?", "\x1b", "1", "/", "i", "\x1b", "i", "\r", "\x1b", ":")
        shown.press("\x1b")
        shown.send("q")
        assert shown.leaves(2) == 0
        assert coloured(parse(bytes(shown.raw)).kinds) == set()


def coloured(kinds: frozenset[str]) -> set[str]:
    """The kinds that set a colour."""
    plain = {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29, 39, 49}
    found = {kind for kind in kinds if kind.endswith(" m")}
    return {kind for kind in found if not (kind[4:-2].isdigit() and int(kind[4:-2]) in plain)}
