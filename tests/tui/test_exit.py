"""However the dashboard ends, it ends at once and restores the terminal."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE
from tests.tui.terminal import DIBS, Terminal, environment, terminal

BLOCKED = (
    "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP}); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
ALONE = (
    "import fcntl, os, signal, sys, termios; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    "fcntl.ioctl(0, termios.TIOCNOTTY); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-1")
    return tmp_path / "board"


def restored(left: Terminal) -> None:
    """Check that the terminal is restored for the shell."""
    assert termios.tcgetattr(left.slave) == left.modes
    for mode in ("?1049", "?1000", "?1003", "?1006", "?1004", "?2004"):
        on, off = (bytes(left.raw).rfind(f"\x1b[{mode}{way}".encode()) for way in "hl")
        assert 0 <= on < off, mode
    assert left.raw.rfind(b"\x1b[?25l") < left.raw.rfind(b"\x1b[?25h")
    assert b"Traceback" not in left.raw


@pytest.mark.parametrize(
    "number",
    [
        *(signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT),
        *(signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMAX),
    ],
    ids=lambda number: number.name,
)
def test_a_signal_ends_it_and_restores_the_terminal(
    path: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-1")
        os.kill(shown.pid, number)
        assert shown.leaves() == 128 + number
        restored(shown)


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "ctrl+c"])
def test_a_key_ends_it_and_restores_the_terminal(path: Path, tmp_path: Path, key: str) -> None:
    with terminal(tmp_path, path) as shown:
        shown.shows("task-1")
        shown.send(key)
        assert shown.leaves() == 0
        restored(shown)


def test_a_signal_ends_it_at_any_moment_of_startup(path: Path, tmp_path: Path) -> None:
    for wait in (0.05, 0.12, 0.19, 0.26, 0.33, 0.4, 0.5):
        with terminal(tmp_path, path) as shown:
            time.sleep(wait)
            os.kill(shown.pid, signal.SIGTERM)
            assert shown.leaves() in (-signal.SIGTERM, 128 + signal.SIGTERM), wait
            assert termios.tcgetattr(shown.slave) == shown.modes, wait
            assert shown.raw.rfind(b"\x1b[?1049h") <= shown.raw.rfind(b"\x1b[?1049l"), wait
            assert b"Traceback" not in shown.raw, shown.text


@pytest.mark.parametrize("ignore_hangup", [False, True], ids=["heard", "ignored"])
def test_a_terminal_that_is_closed_ends_it(path: Path, tmp_path: Path, ignore_hangup: bool) -> None:
    with terminal(tmp_path, path, ignore_hangup=ignore_hangup) as shown:
        shown.shows("task-1")
        spent, ended = shown.cpu(), _spent()
        shown.cut()
        shown.process.wait(PATIENCE)
        assert _spent() - ended < 4 * spent, "it spins instead of leaving"


@pytest.mark.parametrize("how", ["closed", "closed, hang-ups ignored", "signalled, then closed"])
def test_a_hangup_is_no_fault_and_keeps_an_earlier_crash_report(
    path: Path, tmp_path: Path, how: str
) -> None:
    report = tmp_path / "state/dibs/crash.txt"
    report.parent.mkdir(parents=True)
    report.write_text("a real fault")
    with terminal(tmp_path, path, ignore_hangup="ignored" in how) as shown:
        shown.shows("task-1", "● live")
        if how.startswith("signalled"):
            os.kill(shown.pid, signal.SIGHUP)
        shown.cut()
        assert shown.process.wait(PATIENCE) == 128 + signal.SIGHUP
    assert report.read_text() == "a real fault"


def test_a_terminal_that_vanishes_without_a_signal_ends_it(path: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-c", BLOCKED, *DIBS[1:], path)
    shown = Terminal(command, environment(tmp_path))
    try:
        shown.shows("task-1")
        spent, ended = shown.cpu(), _spent()
        shown.cut()
        shown.process.wait(PATIENCE)
        assert _spent() - ended < 4 * spent, "it spins instead of leaving"
    finally:
        shown.end()


def test_it_runs_on_a_terminal_without_a_session(path: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-c", ALONE, *DIBS[1:], path)
    shown = Terminal(command, environment(tmp_path))
    try:
        shown.shows("task-1")
        time.sleep(1.2)
        shown.send("q")
        assert shown.leaves() == 0
        restored(shown)
    finally:
        shown.end()


def _spent() -> float:
    """The processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_terminal_that_accepts_no_output_does_not_keep_it_from_exiting(
    path: Path, tmp_path: Path
) -> None:
    with terminal(tmp_path, path, columns=200, rows=60) as shown:
        shown.shows("task-1")
        termios.tcflow(shown.slave, termios.TCOOFF)
        shown.settle(1.0)
        before = len(shown.raw)
        for _ in range(60):  # more than Textual's queue holds, so that its main thread waits
            shown.send("1")
            time.sleep(0.02)
        assert len(shown.raw) == before
        os.kill(shown.pid, signal.SIGTERM)
        assert shown.process.wait(PATIENCE) == 128 + signal.SIGTERM
        assert termios.tcgetattr(shown.slave) == shown.modes


def test_error_output_does_not_spoil_the_screen(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file, terminal(tmp_path, path, stderr=file.fileno()) as shown:
        shown.shows("task-1")
        shown.send("q")
        assert shown.leaves() == 0
        restored(shown)
    assert log.read_bytes() == b""


def test_with_stderr_closed_one_frame_is_printed(path: Path, tmp_path: Path) -> None:
    line = f"exec {' '.join(DIBS)} '{path}' 2>&-"
    shown = Terminal(("sh", "-c", line), environment(tmp_path))
    try:
        assert shown.leaves() == 0
        assert "task-1" in shown.text
        assert b"\x1b" not in shown.raw
    finally:
        shown.end()


# A fault in the dashboard

FAULT = """\
import importlib, sys
from dibs_tui.cli import main

def fault(*_, **__):
    raise RuntimeError("[/b] a \\x1b[31m fault")

importlib.import_module("dibs_tui.{module}").{name} = fault
sys.exit(main())
"""


def faulty(module: str, name: str) -> tuple[str | Path, ...]:
    """The command of a dashboard with a fault at that place."""
    return (sys.executable, "-c", FAULT.format(module=module, name=name))


@pytest.mark.parametrize(
    ("module", "name"),
    [("screens.board", "BoardScreen.tick"), ("screens.board", "BoardScreen.compose"),
     ("widgets.table", "TaskTable.render_line"), ("app", "DibsApp.__init__")],
    ids=["while it runs", "at its start", "while it draws", "before its start"],
)  # fmt: skip
def test_a_fault_is_one_line_with_the_path_of_the_details(
    path: Path, tmp_path: Path, module: str, name: str
) -> None:
    printed, kept = tmp_path / "printed", tmp_path / "state/dibs/crash.txt"
    with printed.open("w") as file:
        command = (*faulty(module, name), path)
        shown = Terminal(command, environment(tmp_path), stderr=file.fileno())
        try:
            assert shown.leaves() == 70
            assert termios.tcgetattr(shown.slave) == shown.modes
            assert shown.raw.rfind(b"\x1b[?1049h") <= shown.raw.rfind(b"\x1b[?1049l")
            assert b"Traceback" not in shown.raw
        finally:
            shown.end()
    line = printed.read_text()
    assert line.startswith("dibs: this is a fault in dibs: RuntimeError: [/b] a ")
    assert (line.count("\n"), line[-1]) == (1, "\n")
    assert "\x1b" not in line
    assert str(kept) in line
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_fault_without_a_terminal_is_one_line_too(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*faulty("print_once", "frame"), path], env=environment(tmp_path), capture_output=True,
        stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 70
    assert done.stderr.startswith("dibs: this is a fault in dibs: RuntimeError")
    assert done.stderr.count("\n") == 1


def test_a_thread_that_fails_is_reported_and_the_rest_goes_on(path: Path, tmp_path: Path) -> None:
    command = (*faulty("source.details_loader", "_tried"), path)
    shown = Terminal(command, environment(tmp_path))
    try:
        shown.shows("task-1")
        shown.send("2\r")
        shown.shows("this is a fault in dibs")
        shown.send("q")
        shown.shows("avail 1")
        shown.send("q")
        assert shown.leaves() == 0
        restored(shown)
    finally:
        shown.end()


# Without a terminal


def frame(path: Path, home: Path, words: str, *, code: int = 0) -> bytes:
    """The output of a shell line; `dibs` in it is the real one, and reports its imports."""
    line = words.replace("dibs", f"{sys.executable} -X importtime -m dibs_tui.cli", 1)
    done = subprocess.run(
        ["sh", "-c", line],
        env=environment(home, B=str(path)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    notes = done.stderr.decode().splitlines()
    imported = {note.rpartition("|")[2].strip().split(".")[0] for note in notes}
    assert done.returncode == code, notes[-5:]
    assert not imported & {"textual", "rich", "watchfiles", "humanize"}
    assert "dibs" in imported
    assert not [note for note in notes if not note.startswith("import time:")]
    return done.stdout


@pytest.mark.parametrize(
    "words",
    ['dibs "$B" | cat', 'dibs board "$B" </dev/null | cat', 'dibs --once "$B"', 'dibs "$B" <&-'],
)
def test_without_a_terminal_one_frame_is_printed(path: Path, tmp_path: Path, words: str) -> None:
    printed = frame(path, tmp_path, words)
    assert b"task-1" in printed
    assert b"\x1b" not in printed


@pytest.mark.parametrize("words", ['dibs "$B" >/dev/null', 'dibs "$B" | true'])
def test_a_frame_whose_reader_has_gone_ends_quietly(path: Path, tmp_path: Path, words: str) -> None:
    assert frame(path, tmp_path, words) == b""


@pytest.mark.parametrize(
    "words", ['"$B"', '--once "$B"', '--json "$B"', "board --help", '-d "$B" paths']
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_cannot_be_written_is_one_line_and_exit_1(
    path: Path, tmp_path: Path, words: str, unbuffered: str
) -> None:
    env = environment(tmp_path, B=str(path), PYTHONUNBUFFERED=unbuffered)
    for where, why in ((">&-", "closed"), (">/dev/full", "No space left on device")):
        done = subprocess.run(
            ["sh", "-c", f"{' '.join(DIBS)} {words} {where}"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
        assert f"standard output: {why}" in done.stderr
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{' '.join(DIBS)} {words} | true"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("argv", ["[]", "['--json']"])
def test_the_dashboards_own_paths_to_a_reader_that_has_left_are_no_error(
    tmp_path: Path, argv: str
) -> None:
    """`dibs paths | head -1`: the reader leaves between the board's lines and the dashboard's."""
    readable, writable = os.pipe()
    os.close(readable)
    code = f"import sys; from dibs_tui.command_line import paths; sys.exit(paths({argv}))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(tmp_path),
            stdout=writable,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
    finally:
        os.close(writable)
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_is_printed_for_programs(path: Path, tmp_path: Path) -> None:
    assert frame(path, tmp_path, 'dibs --json "$B"').startswith(b'{"v": 1')


@pytest.mark.parametrize("argv", [("--once",), ("--json",)], ids=["once", "json"])
def test_a_frame_on_a_terminal_leaves_it_alone(
    path: Path, tmp_path: Path, argv: Sequence[str]
) -> None:
    with terminal(tmp_path, *argv, path) as shown:
        assert shown.leaves() == 0
        shown.shows("task-1")
        assert b"\x1b" not in shown.raw
