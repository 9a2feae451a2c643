"""Watching files when queues overflow, directories vanish and limits are reached."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from errno import ENOENT
from pathlib import Path

import pytest
from watchfiles._rust_notify import RustNotify

from dibs.files.mounts import kind
from dibs.files.paths import identity
from dibs_tui.source import inotify
from dibs_tui.source.file_events import FileEvents
from tests.patience import PATIENCE
from tests.tui.recorder import EventRecorder, listening, passed_through, recorder_process, soon

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
GONE = "the directory is missing"


# The kernel's queue overflows without an error


def test_it_survives_an_overflow_and_goes_on_reporting(board_dir: Path) -> None:
    limit = int(QUEUE.read_text())
    if limit > 100_000:
        pytest.skip(f"NO OVERFLOW WAS TRIED: {QUEUE} is {limit:,}")
    with recorder_process(board_dir) as listener:
        listener.wait("")
        listener.process.send_signal(signal.SIGSTOP)
        names = {f"t{number}" for number in range(limit // 3 + 1000)}
        for name in names:
            (board_dir / name).touch()  # three events: made, opened and written
        listener.process.send_signal(signal.SIGCONT)
        (board_dir / "last").touch()
        assert soon(lambda: listener.ask() and listener.reported & names)
        assert soon(lambda: listener.ask() and _change(board_dir / "marker") in listener.reported)
        assert names - listener.reported, "nothing was lost, so there was no overflow"
        (board_dir / "next").touch()
        listener.wait("next")
        assert listener.ask() == {"alive": True, "deaf": False, "why": ""}


def _change(path: Path) -> str:
    path.touch()
    return path.name


def test_a_stopped_process_does_not_count_as_deaf(board_dir: Path) -> None:
    with recorder_process(board_dir) as listener:
        listener.wait("")
        listener.ask("due 0.5")
        listener.process.send_signal(signal.SIGSTOP)
        (board_dir / "due").touch()
        time.sleep(1)  # the test is about this time
        listener.process.send_signal(signal.SIGCONT)
        while "due" not in listener.reported:
            assert not listener.ask()["deaf"]


# The directory vanishes


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry sooner than usual."""
    monkeypatch.setattr("dibs_tui.source.file_events._RETRY", 0.2)


@pytest.mark.usefixtures("quick")
def test_a_missing_directory_is_reported_and_watched_again_once_it_is_back(board_dir: Path) -> None:
    with listening(board_dir) as recorder:
        before = identity(str(board_dir))
        assert before == (board_dir.stat().st_dev, board_dir.stat().st_ino)
        shutil.rmtree(board_dir)
        assert soon(lambda: not recorder.events.alive)
        assert (identity(str(board_dir)), recorder.events.why) == (None, GONE)
        recorder.forget()
        board_dir.mkdir()
        recorder.wait_for_restart()
        assert (recorder.events.alive, recorder.events.why) == (True, "")
        (board_dir / "new").touch()
        recorder.wait("new")


def test_a_directory_deleted_and_made_again_at_once_is_watched(board_dir: Path) -> None:
    with listening(board_dir) as recorder:
        shutil.rmtree(board_dir)
        board_dir.mkdir()
        assert recorder.reports_again("new")


def test_a_directory_replaced_by_renames_is_watched(board_dir: Path) -> None:
    new, old = board_dir.with_name("new"), board_dir.with_name("old")
    (new / "done").mkdir(parents=True)
    with listening(board_dir) as recorder:
        before = identity(str(board_dir))
        board_dir.rename(old)
        new.rename(board_dir)
        assert identity(str(board_dir)) != before
        assert recorder.reports_again("done/new")
        recorder.mark()
        recorder.forget()
        (old / "unseen").touch()
        (board_dir / "done/seen").touch()
        recorder.wait("done/seen")
        assert recorder.mark() == {"done/seen"}


def test_a_directory_replaced_together_with_its_parent_has_another_identity(
    tmp_path: Path,
) -> None:
    board = tmp_path / "outer/board"
    board.mkdir(parents=True)
    with listening(board) as recorder:
        before = identity(str(board))
        board.parent.rename(tmp_path / "aside")
        board.mkdir(parents=True)
        (board / "unheard").touch()
        (tmp_path / "aside/board/marker").touch()
        recorder.wait("marker")
        assert "unheard" not in recorder.paths
        assert identity(str(board)) != before


@pytest.mark.usefixtures("quick")
def test_a_directory_that_is_made_later_is_watched(tmp_path: Path) -> None:
    recorder = EventRecorder(tmp_path / "board")
    recorder.events.start()
    assert soon(lambda: recorder.events.why == GONE)
    (tmp_path / "board").mkdir()
    recorder.wait_for_restart()
    recorder.mark()
    recorder.events.stop()


# Changes just as it begins to listen


class Interrupted(FileEvents):
    """Runs a callback after the folders were listed and before they are watched."""

    def __init__(self, recorder: EventRecorder, happens: Callable[[], None]) -> None:
        super().__init__(str(recorder.root), recorder.batches.append)
        self.happens = happens

    def _listener(self, folders: Iterable[str]) -> RustNotify:
        self.happens()
        return super()._listener(folders)


def test_a_folder_made_at_that_moment_is_watched(board_dir: Path) -> None:
    recorder = EventRecorder(board_dir)
    recorder.events = Interrupted(recorder, lambda: (board_dir / "done").mkdir(exist_ok=True))
    recorder.events.start()
    assert soon(lambda: recorder.batches)
    assert recorder.batches[0] == {"", "done"}
    assert recorder.reports_again("done/new")
    recorder.events.stop()


def test_nothing_is_reported_if_it_is_stopped_at_that_moment(board_dir: Path) -> None:
    recorder = EventRecorder(board_dir)
    recorder.events = Interrupted(recorder, lambda: recorder.events.stop())
    before = set(os.listdir("/proc/self/task"))
    recorder.events.start()
    assert soon(lambda: set(os.listdir("/proc/self/task")) <= before)
    assert not recorder.batches
    assert not recorder.events.alive


# Names and paths


def test_a_name_that_is_not_utf8_does_no_harm(board_dir: Path) -> None:
    with listening(board_dir) as recorder:
        Path(os.fsdecode(os.fsencode(board_dir) + b"/t\xff.available")).touch()
        assert soon(lambda: recorder.paths or not recorder.events.alive)
        assert recorder.events.alive
        assert recorder.paths == {""}, "the board is to be listed"
        (board_dir / "new").touch()
        recorder.wait("new")


def test_a_path_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    board = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    board.mkdir()
    events = FileEvents(str(board), print)
    events.start()
    assert soon(lambda: events.why == "the directory's path is not valid UTF-8")
    assert not events.alive
    events.stop()


# Limits and permissions


def _limited(name: str, limit: int) -> list[str]:
    """The beginning of a command that runs the rest under its own, smaller limit."""
    how = ["unshare", "--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*how, "true"], check=False).returncode:
        pytest.skip("NO LIMIT OF INOTIFY WAS TRIED: unshare --user is refused here")
    return [*how, "sh", "-c", f'echo {limit} > /proc/sys/user/{name}; exec "$@"', "sh"]


@pytest.mark.parametrize(
    ("name", "word"),
    [("max_inotify_watches", "max_user_watches"), ("max_inotify_instances", "max_user_instances")],
)
def test_a_reached_limit_is_reported_and_is_no_error(name: str, word: str, board_dir: Path) -> None:
    with recorder_process(board_dir, _limited(name, 0)) as listener:
        assert soon(lambda: listener.ask()["why"])
        state = listener.ask()
        assert (state["alive"], word in state["why"]) == (False, True)
        assert not listener.reported


def test_inotify_says_which_limit_is_reached(board_dir: Path) -> None:
    assert inotify.refusal([str(board_dir)]) == 0
    assert inotify.refusal([str(board_dir / "missing")]) == ENOENT
    code = (
        "import resource, sys; from dibs_tui.source import inotify\n"
        "import ctypes, os; ctypes.CDLL(None)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (os.open('/', os.O_RDONLY) + 1,) * 2)\n"
        "print(inotify.LIMITS[inotify.refusal(sys.argv[1:])])"
    )
    command = [sys.executable, "-c", code, str(board_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "max_user_instances" in done.stdout


def test_the_text_of_an_error_says_nothing_about_limits(
    board_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> RustNotify:
        raise OSError("OS file watch limit reached. (os error 24)")

    monkeypatch.setattr(FileEvents, "_listener", refuse)
    events = FileEvents(str(board_dir), print)
    events.start()
    assert soon(lambda: events.why.startswith("no file events: OSError: OS file watch"))
    events.stop()


def test_an_unreadable_folder_is_reported(board_dir: Path) -> None:
    without_rights = ["unshare", "--user"] if os.geteuid() == 0 else []
    if without_rights and subprocess.run([*without_rights, "true"], check=False).returncode:
        pytest.skip("NO PERMISSION WAS TRIED: unshare --user is refused here")
    board_dir.chmod(0o311)
    with recorder_process(board_dir, without_rights) as listener:
        assert soon(lambda: listener.ask()["why"])
        state = listener.ask()
        board_dir.chmod(0o755)
        assert state == {
            "alive": False,
            "deaf": False,
            "why": "the directory cannot be read",
        }


# Mounts that others change, or that hang


def test_on_a_mount_only_changes_made_through_it_are_reported(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, below, _):
        (below / "ours").touch()
        (below / "theirs").touch()
        assert kind(str(place)).network
        with listening(place) as recorder:
            recorder.events.expect("ours", 5)
            os.utime(place / "ours")
            recorder.wait("ours")
            assert not recorder.events.deaf
            recorder.events.expect("theirs", 0.2)
            os.utime(below / "theirs")
            assert soon(lambda: recorder.events.deaf)
            assert recorder.mark() == {"ours"}


def test_a_hanging_mount_delays_neither_start_nor_stop(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, _, pid):
        (place / "board").mkdir()
        os.kill(pid, signal.SIGSTOP)
        try:
            with (
                recorder_process(place / "board") as listener,
                recorder_process(place / "board") as patient,
            ):
                for each in (listener, patient):
                    assert soon(lambda each=each: _hangs(each.process.pid))  # type: ignore[misc]
                    assert each.ask() == {"alive": False, "deaf": False, "why": ""}
                assert listener.stop() == 0
                os.kill(pid, signal.SIGCONT)
                patient.wait("")
        finally:
            os.kill(pid, signal.SIGCONT)


def _hangs(pid: int) -> bool:
    """Whether a thread of that process waits for the mount's process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return any((task / "wchan").read_text() == "request_wait_answer" for task in tasks)
