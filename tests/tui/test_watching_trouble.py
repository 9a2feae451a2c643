"""What becomes of the listening when queues overflow, directories go and limits are reached."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from watchfiles._rust_notify import RustNotify

from dibs.mounts import kind
from dibs_tui.watching.events import Events, identity
from tests.tui.hearing import Hearing, away, listening, passed_through, soon

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
GONE = "the directory is not there"


# The kernel's queue overflows, silently


def test_it_outlives_an_overflow_and_hears_on(board_dir: Path) -> None:
    limit = int(QUEUE.read_text())
    if limit > 100_000:
        pytest.skip(f"NO OVERFLOW WAS TRIED: {QUEUE} is {limit:,}")
    with away(board_dir) as listener:
        listener.wait("")
        listener.process.send_signal(signal.SIGSTOP)
        names = {f"t{number}" for number in range(limit // 3 + 1000)}
        for name in names:
            (board_dir / name).touch()  # told as made, opened and written
        listener.process.send_signal(signal.SIGCONT)
        (board_dir / "last").touch()
        assert soon(lambda: listener.ask() and listener.heard & names)
        assert soon(lambda: listener.ask() and _change(board_dir / "marker") in listener.heard)
        assert names - listener.heard, "nothing was lost, so there was no overflow"
        (board_dir / "next").touch()
        listener.wait("next")
        assert listener.ask() == {"alive": True, "deaf": False, "why": ""}


def _change(path: Path) -> str:
    path.touch()
    return path.name


def test_a_process_that_was_stopped_is_not_deaf_for_that(board_dir: Path) -> None:
    with away(board_dir) as listener:
        listener.wait("")
        listener.ask("due 0.5")
        listener.process.send_signal(signal.SIGSTOP)
        (board_dir / "due").touch()
        time.sleep(1)  # the time that passes is what is tried
        listener.process.send_signal(signal.SIGCONT)
        while "due" not in listener.heard:
            assert not listener.ask()["deaf"]


# The directory goes


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries again sooner than it would."""
    monkeypatch.setattr("dibs_tui.watching.events._RETRY", 0.2)


@pytest.mark.usefixtures("quick")
def test_a_directory_that_went_is_told_and_heard_again_once_it_is_back(board_dir: Path) -> None:
    with listening(board_dir) as hearing:
        before = identity(str(board_dir))
        assert before == (board_dir.stat().st_dev, board_dir.stat().st_ino)
        shutil.rmtree(board_dir)
        assert soon(lambda: not hearing.events.alive)
        assert (identity(str(board_dir)), hearing.events.why) == (None, GONE)
        hearing.forget()
        board_dir.mkdir()
        hearing.wait_anew()
        assert (hearing.events.alive, hearing.events.why) == (True, "")
        (board_dir / "new").touch()
        hearing.wait("new")


def test_a_directory_deleted_and_made_again_at_once_is_heard(board_dir: Path) -> None:
    with listening(board_dir) as hearing:
        shutil.rmtree(board_dir)
        board_dir.mkdir()
        assert hearing.hears_again("new")


def test_a_directory_replaced_by_renames_is_heard(board_dir: Path) -> None:
    new, old = board_dir.with_name("new"), board_dir.with_name("old")
    (new / "done").mkdir(parents=True)
    with listening(board_dir) as hearing:
        before = identity(str(board_dir))
        board_dir.rename(old)
        new.rename(board_dir)
        assert identity(str(board_dir)) != before
        assert hearing.hears_again("done/new")
        hearing.mark()
        hearing.forget()
        (old / "unseen").touch()
        (board_dir / "done/seen").touch()
        hearing.wait("done/seen")
        assert hearing.mark() == {"done/seen"}


def test_a_directory_replaced_together_with_its_parent_is_told_by_its_identity(
    tmp_path: Path,
) -> None:
    board = tmp_path / "outer/board"
    board.mkdir(parents=True)
    with listening(board) as hearing:
        before = identity(str(board))
        board.parent.rename(tmp_path / "aside")
        board.mkdir(parents=True)
        (board / "unheard").touch()
        (tmp_path / "aside/board/marker").touch()
        hearing.wait("marker")
        assert "unheard" not in hearing.paths
        assert identity(str(board)) != before


@pytest.mark.usefixtures("quick")
def test_a_directory_that_comes_later_is_heard(tmp_path: Path) -> None:
    hearing = Hearing(tmp_path / "board")
    hearing.events.start()
    assert soon(lambda: hearing.events.why == GONE)
    (tmp_path / "board").mkdir()
    hearing.wait_anew()
    hearing.mark()
    hearing.events.stop()


# Just when it begins to listen


class Interrupted(Events):
    """Something happens after the folders were looked for and before they are listened to."""

    def __init__(self, hearing: Hearing, happens: Callable[[], None]) -> None:
        super().__init__(str(hearing.root), hearing.batches.append)
        self.happens = happens

    def _listener(self, folders: Iterable[str]) -> RustNotify:
        self.happens()
        return super()._listener(folders)


def test_a_folder_made_just_then_is_listened_to(board_dir: Path) -> None:
    hearing = Hearing(board_dir)
    hearing.events = Interrupted(hearing, lambda: (board_dir / "done").mkdir(exist_ok=True))
    hearing.events.start()
    assert soon(lambda: hearing.batches)
    assert hearing.batches[0] == {"", "done"}
    assert hearing.hears_again("done/new")
    hearing.events.stop()


def test_nothing_is_told_to_who_stopped_it_just_then(board_dir: Path) -> None:
    hearing = Hearing(board_dir)
    hearing.events = Interrupted(hearing, lambda: hearing.events.stop())
    before = set(os.listdir("/proc/self/task"))
    hearing.events.start()
    assert soon(lambda: set(os.listdir("/proc/self/task")) <= before)
    assert not hearing.batches
    assert not hearing.events.alive


# Names and paths


def test_a_name_that_is_no_utf8_spoils_nothing(board_dir: Path) -> None:
    with listening(board_dir) as hearing:
        Path(os.fsdecode(os.fsencode(board_dir) + b"/t\xff.available")).touch()
        assert soon(lambda: hearing.paths or not hearing.events.alive)
        assert hearing.events.alive
        assert hearing.paths == {""}, "the board is to be listed"
        (board_dir / "new").touch()
        hearing.wait("new")


def test_a_path_that_is_no_utf8_is_told(tmp_path: Path) -> None:
    board = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    board.mkdir()
    events = Events(str(board), print)
    events.start()
    assert soon(lambda: events.why == "the directory's path is no UTF-8")
    assert not events.alive
    events.stop()


# Limits and permissions


def _limited(name: str, limit: int) -> list[str]:
    """A command's beginning that runs it under its own, smaller limit."""
    how = ["unshare", "--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*how, "true"], check=False).returncode:
        pytest.skip("NO LIMIT OF INOTIFY WAS TRIED: unshare --user is refused here")
    return [*how, "sh", "-c", f'echo {limit} > /proc/sys/user/{name}; exec "$@"', "sh"]


@pytest.mark.parametrize(
    ("name", "word"),
    [("max_inotify_watches", "max_user_watches"), ("max_inotify_instances", "max_user_instances")],
)
def test_a_reached_limit_is_told_and_no_error(name: str, word: str, board_dir: Path) -> None:
    with away(board_dir, _limited(name, 0)) as listener:
        assert soon(lambda: listener.ask()["why"])
        told = listener.ask()
        assert (told["alive"], word in told["why"]) == (False, True)
        assert not listener.heard


def test_a_folder_that_may_not_be_read_is_told(board_dir: Path) -> None:
    without_rights = ["unshare", "--user"] if os.geteuid() == 0 else []
    if without_rights and subprocess.run([*without_rights, "true"], check=False).returncode:
        pytest.skip("NO PERMISSION WAS TRIED: unshare --user is refused here")
    board_dir.chmod(0o311)
    with away(board_dir, without_rights) as listener:
        assert soon(lambda: listener.ask()["why"])
        told = listener.ask()
        board_dir.chmod(0o755)
        assert told == {
            "alive": False,
            "deaf": False,
            "why": "the directory may not be read",
        }


# Mounts that others change, or that hang


def test_on_a_mount_only_what_is_done_through_it_is_heard(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, below, _):
        (below / "ours").touch()
        (below / "theirs").touch()
        assert kind(str(place)).network
        with listening(place) as hearing:
            hearing.events.expect("ours", 5)
            os.utime(place / "ours")
            hearing.wait("ours")
            assert not hearing.events.deaf
            hearing.events.expect("theirs", 0.2)
            os.utime(below / "theirs")
            assert soon(lambda: hearing.events.deaf)
            assert hearing.mark() == {"ours"}


def test_a_mount_that_hangs_holds_up_neither_start_nor_stop(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, _, pid):
        (place / "board").mkdir()
        os.kill(pid, signal.SIGSTOP)
        try:
            with away(place / "board") as listener, away(place / "board") as patient:
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
