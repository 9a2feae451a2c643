"""The changes that are reported about a healthy board."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

import dibs
from dibs.files.board_files import WATCHED
from dibs_tui.source.file_events import FileEvents
from tests.patience import PATIENCE
from tests.tui.recorder import EventRecorder, listening, soon

BURST = 5000


@pytest.fixture
def recorder(board_dir: Path) -> Iterator[EventRecorder]:
    """A board with all its folders and one file, listened to."""
    for folder in WATCHED[1:]:
        (board_dir / folder).mkdir()
    (board_dir / "old").write_bytes(b"old")
    with listening(board_dir) as recorder:
        yield recorder


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


CHANGES: dict[str, Callable[[Path], object]] = {
    "only its times change": os.utime,
    "only its mode changes": lambda path: path.chmod(0o640),
    "it is written": lambda path: path.write_bytes(b"new"),
    "it is appended to": _append,
    "it is removed": Path.unlink,
    "another replaces it": lambda path: os.replace(shutil.copy(path, f"{path}.new"), path),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_is_reported_when(change: str, recorder: EventRecorder) -> None:
    CHANGES[change](recorder.root / "old")
    recorder.wait("old")


@pytest.mark.parametrize("folder", WATCHED)
def test_a_new_file_is_reported_by_its_path_in_the_board(
    folder: str, recorder: EventRecorder
) -> None:
    (recorder.root / folder / "new").touch()
    recorder.wait(os.path.join(folder, "new"))
    assert recorder.mark() == {os.path.join(folder, "new")}


def test_a_rename_reports_both_names(recorder: EventRecorder) -> None:
    (recorder.root / "old").rename(recorder.root / "done/old")
    recorder.wait("old", "done/old")


def test_the_verbs_of_a_worker_and_its_beats_are_reported(board_dir: Path) -> None:
    board = dibs.open(board_dir, create=True)
    with listening(board_dir) as recorder:
        added = board.add("t").name
        claim = board.claim(owner="w")
        assert claim is not None
        name = claim.task.name
        record = f".dibs/records/{name.removesuffix('.claimed')}"
        recorder.wait(added, name, record)
        recorder.forget()
        claim.beat()
        recorder.wait(record)
        assert name not in recorder.paths
        recorder.wait(claim.done().name)
        assert any(path.startswith(".dibs/journal/") for path in recorder.paths)


def test_the_beat_of_a_shells_lock_is_reported(recorder: EventRecorder) -> None:
    lock = recorder.root / "task-7.lock"
    lock.write_text("1700000000 host\n")
    recorder.wait(lock.name)
    recorder.forget()
    subprocess.run(["touch", lock], check=True)
    recorder.wait(lock.name)


def test_the_probe_of_the_clock_is_reported(board_dir: Path) -> None:
    board = dibs.open(board_dir, create=True)
    with listening(board_dir) as recorder:
        recorder.events.expect(".dibs/probe", 5)
        board.snapshot()
        recorder.wait(".dibs/probe")
        assert not recorder.events.deaf


def test_reading_is_not_reported(recorder: EventRecorder) -> None:
    for folder in WATCHED:
        os.listdir(recorder.root / folder)
        os.stat(recorder.root / folder)
    for _ in range(3):
        (recorder.root / "old").read_bytes()
        os.lstat(recorder.root / "old")
    assert recorder.mark() == set()


def test_changes_in_other_folders_are_not_reported(recorder: EventRecorder) -> None:
    (recorder.root / ".dibs/known").mkdir()
    recorder.wait(".dibs/known")
    recorder.forget()
    (recorder.root / ".dibs/known/t.0").touch()
    assert recorder.mark() == set()


def test_continuous_changes_are_reported_while_they_go_on(recorder: EventRecorder) -> None:
    enough = Event()

    def change() -> None:
        for number in range(1_000_000):
            (recorder.root / f"t{number % 1000}").touch()
            if enough.wait(0.002):
                return

    changing = Thread(target=change)
    changing.start()
    try:
        recorder.wait_for_more(5)
    finally:
        enough.set()
        changing.join()


def test_every_name_of_a_burst_of_renames_is_reported(board_dir: Path) -> None:
    names = {f"t{number}.available": f"t{number}.claimed" for number in range(BURST)}
    for name in names:
        (board_dir / name).touch()
    with listening(board_dir) as recorder:
        for name, new in names.items():
            os.rename(board_dir / name, board_dir / new)
        recorder.wait(*names, *names.values())


def test_the_first_batch_names_the_folders_to_list(board_dir: Path) -> None:
    (board_dir / "failed").mkdir()
    recorder = EventRecorder(board_dir)
    assert not recorder.events.alive
    recorder.events.start()
    recorder.wait("")
    assert (recorder.events.alive, recorder.events.why) == (True, "")
    assert recorder.batches[0] == {"", "failed"}
    recorder.events.stop()
    assert not recorder.events.alive


@pytest.mark.parametrize("folder", [name for name in WATCHED if "/" not in name][1:])
def test_a_folder_made_later_is_watched(folder: str, board_dir: Path) -> None:
    with listening(board_dir) as recorder:
        (board_dir / folder).mkdir()
        recorder.wait("", folder)
        recorder.forget()
        (board_dir / folder / "new").touch()
        recorder.wait(f"{folder}/new")


def test_a_folder_removed_and_made_again_is_watched(recorder: EventRecorder) -> None:
    for _ in range(3):
        shutil.rmtree(recorder.root / "done")
        (recorder.root / "done").mkdir()
        assert recorder.reports_again("done/new")


def test_listing_the_reported_folders_finds_every_file_in_new_folders(tmp_path: Path) -> None:
    for number in range(20):
        board = tmp_path / f"board-{number}"
        board.mkdir()
        seen: set[str] = set()
        events = FileEvents(str(board), partial(_read, board, seen))
        events.start()
        made = set()
        for folder in WATCHED[1:]:
            (board / folder).mkdir()
            for name in ("a", "b"):
                (board / folder / name).touch()
                made.add(f"{folder}/{name}")
        assert soon(lambda made=made, seen=seen: made <= seen), made - seen  # type: ignore[misc]
        events.stop()


def _read(board: Path, seen: set[str], paths: set[str]) -> None:
    """Read a batch as the dashboard does."""
    seen.update(paths)
    for folder in paths.intersection(WATCHED):
        if (board / folder).is_dir():
            seen.update(os.path.join(folder, name) for name in os.listdir(board / folder))


def test_a_link_in_place_of_a_folder_is_not_followed(board_dir: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (board_dir / "done").symlink_to(elsewhere)
    with listening(board_dir) as recorder:
        (elsewhere / "new").touch()
        assert recorder.mark() == set()


def test_a_board_can_be_given_through_a_link(board_dir: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(board_dir)
    with listening(link) as recorder:
        (board_dir / "new").touch()
        recorder.wait("new")


def test_a_due_change_that_is_not_reported_makes_it_deaf_until_it_is(
    recorder: EventRecorder,
) -> None:
    events = recorder.events
    events.expect("old", 0.2)
    assert not events.deaf
    assert soon(lambda: events.deaf)
    recorder.mark()
    assert events.deaf
    os.utime(recorder.root / "old")
    recorder.wait("old")
    assert not events.deaf


def test_a_due_change_that_is_reported_in_time_does_not_make_it_deaf(
    recorder: EventRecorder,
) -> None:
    recorder.events.expect("old", 0.3)
    os.utime(recorder.root / "old")
    recorder.wait("old")
    recorder.events.expect("never", 0.6)
    assert soon(lambda: recorder.events.deaf)
    os.utime(recorder.root / "old")
    (recorder.root / "never").touch()
    recorder.wait("never")
    assert not recorder.events.deaf


def _threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def test_after_stopping_nothing_is_reported_and_no_thread_is_left(recorder: EventRecorder) -> None:
    before = _threads()
    with listening(recorder.root) as other:
        assert len(_threads() - before) == 2
        (recorder.root / "new").touch()
        other.events.stop()
        count = len(other.batches)
        assert soon(lambda: _threads() <= before)
        recorder.mark()
        assert len(other.batches) == count


def test_it_can_be_stopped_from_its_own_thread_twice_and_before_it_starts(board_dir: Path) -> None:
    stopped = Event()

    def stop(_: set[str]) -> None:
        events.stop()
        stopped.set()

    events = FileEvents(str(board_dir), stop)
    before = _threads()
    events.start()
    assert stopped.wait(PATIENCE)
    events.stop()
    assert soon(lambda: _threads() <= before)
    FileEvents(str(board_dir), stop).stop()


def test_a_callback_that_fails_is_reported_and_called_again(
    board_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.source.file_events._RETRY", 0.5)
    calls: list[set[str]] = []

    def fail_once(paths: set[str]) -> None:
        calls.append(paths)
        if len(calls) == 1:
            raise ValueError("not\nready")

    events = FileEvents(str(board_dir), fail_once)
    events.start()
    why = "no file events: ValueError: not ready"
    assert soon(lambda: (events.why, events.alive) == (why, False))
    assert soon(lambda: events.alive and len(calls) == 2)
    events.stop()


def test_a_program_can_exit_without_stopping_it(board_dir: Path) -> None:
    code = (
        "import sys, threading; from dibs_tui.source.file_events import FileEvents\n"
        "first = threading.Event()\n"
        "FileEvents(sys.argv[1], lambda _: first.set()).start(); sys.exit(not first.wait(60))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, board_dir],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_watchfiles_is_imported_only_when_it_listens(board_dir: Path) -> None:
    code = (
        "import sys; from dibs_tui.source.file_events import FileEvents\n"
        "FileEvents(sys.argv[1], print)\n"
        "sys.exit('watchfiles' in sys.modules or 'anyio' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(board_dir)]
    assert subprocess.run(command, env=environment, timeout=PATIENCE).returncode == 0
