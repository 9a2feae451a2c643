"""What is heard of a board that fares well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

import dibs
from dibs_tui.watching.events import FOLDERS, Events
from tests.patience import PATIENCE
from tests.tui.hearing import Hearing, listening, soon

BURST = 5000


@pytest.fixture
def heard(board_dir: Path) -> Iterator[Hearing]:
    """A board with all its folders and one file, listened to."""
    for folder in FOLDERS[1:]:
        (board_dir / folder).mkdir()
    (board_dir / "old").write_bytes(b"old")
    with listening(board_dir) as hearing:
        yield hearing


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
def test_a_file_is_named_when(change: str, heard: Hearing) -> None:
    CHANGES[change](heard.root / "old")
    heard.wait("old")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_new_file_is_named_by_its_path_in_the_board(folder: str, heard: Hearing) -> None:
    (heard.root / folder / "new").touch()
    heard.wait(os.path.join(folder, "new"))
    assert heard.mark() == {os.path.join(folder, "new")}


def test_a_rename_names_both(heard: Hearing) -> None:
    (heard.root / "old").rename(heard.root / "done/old")
    heard.wait("old", "done/old")


def test_the_verbs_of_a_worker_and_its_beats_are_heard(board_dir: Path) -> None:
    board = dibs.open(board_dir, create=True)
    with listening(board_dir) as hearing:
        added = board.add("t").name
        claim = board.claim(owner="w")
        assert claim is not None
        name = claim.task.name
        record = f".dibs/records/{name.removesuffix('.claimed')}"
        hearing.wait(added, name, record)
        hearing.forget()
        claim.beat()
        hearing.wait(record)
        assert name not in hearing.paths
        hearing.wait(claim.done().name)
        assert any(path.startswith(".dibs/journal/") for path in hearing.paths)


def test_the_beat_of_a_plain_lock_is_heard(heard: Hearing) -> None:
    lock = heard.root / "task-7.lock"
    lock.write_text("1700000000 host\n")
    heard.wait(lock.name)
    heard.forget()
    subprocess.run(["touch", lock], check=True)
    heard.wait(lock.name)


def test_the_probe_of_the_clock_is_heard(board_dir: Path) -> None:
    board = dibs.open(board_dir, create=True)
    with listening(board_dir) as hearing:
        hearing.events.expect(".dibs/probe", 5)
        board.snapshot()
        hearing.wait(".dibs/probe")
        assert not hearing.events.deaf


def test_reading_is_not_heard(heard: Hearing) -> None:
    for folder in FOLDERS:
        os.listdir(heard.root / folder)
        os.stat(heard.root / folder)
    for _ in range(3):
        (heard.root / "old").read_bytes()
        os.lstat(heard.root / "old")
    assert heard.mark() == set()


def test_what_lies_in_other_folders_is_not_heard(heard: Hearing) -> None:
    (heard.root / ".dibs/known").mkdir()
    heard.wait(".dibs/known")
    heard.forget()
    (heard.root / ".dibs/known/t.0").touch()
    assert heard.mark() == set()


def test_changes_that_go_on_are_told_while_they_go_on(heard: Hearing) -> None:
    enough = Event()

    def change() -> None:
        for number in range(1_000_000):
            (heard.root / f"t{number % 1000}").touch()
            if enough.wait(0.002):
                return

    changing = Thread(target=change)
    changing.start()
    try:
        heard.wait_for_more(5)
    finally:
        enough.set()
        changing.join()


def test_every_name_of_a_burst_of_renames_is_heard(board_dir: Path) -> None:
    names = {f"t{number}.available": f"t{number}.claimed" for number in range(BURST)}
    for name in names:
        (board_dir / name).touch()
    with listening(board_dir) as hearing:
        for name, new in names.items():
            os.rename(board_dir / name, board_dir / new)
        hearing.wait(*names, *names.values())


def test_the_first_batch_names_the_folders_to_list(board_dir: Path) -> None:
    (board_dir / "failed").mkdir()
    hearing = Hearing(board_dir)
    assert not hearing.events.alive
    hearing.events.start()
    hearing.wait("")
    assert (hearing.events.alive, hearing.events.why) == (True, "")
    assert hearing.batches[0] == {"", "failed"}
    hearing.events.stop()
    assert not hearing.events.alive


@pytest.mark.parametrize("folder", [name for name in FOLDERS if "/" not in name][1:])
def test_a_folder_made_later_is_listened_to(folder: str, board_dir: Path) -> None:
    with listening(board_dir) as hearing:
        (board_dir / folder).mkdir()
        hearing.wait("", folder)
        hearing.forget()
        (board_dir / folder / "new").touch()
        hearing.wait(f"{folder}/new")


def test_a_folder_removed_and_made_again_is_listened_to(heard: Hearing) -> None:
    for _ in range(3):
        shutil.rmtree(heard.root / "done")
        (heard.root / "done").mkdir()
        assert heard.hears_again("done/new")


def test_nothing_put_into_new_folders_escapes_who_lists_what_is_named(tmp_path: Path) -> None:
    for number in range(20):
        board = tmp_path / f"board-{number}"
        board.mkdir()
        seen: set[str] = set()
        events = Events(str(board), lambda paths, board=board, seen=seen: _read(board, paths, seen))  # type: ignore[misc]
        events.start()
        made = set()
        for folder in FOLDERS[1:]:
            (board / folder).mkdir()
            for name in ("a", "b"):
                (board / folder / name).touch()
                made.add(f"{folder}/{name}")
        assert soon(lambda made=made, seen=seen: made <= seen), made - seen  # type: ignore[misc]
        events.stop()


def _read(board: Path, paths: set[str], seen: set[str]) -> None:
    """What the dashboard does with a batch."""
    seen.update(paths)
    for folder in paths.intersection(FOLDERS):
        if (board / folder).is_dir():
            seen.update(os.path.join(folder, name) for name in os.listdir(board / folder))


def test_a_link_in_place_of_a_folder_is_not_followed(board_dir: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (board_dir / "done").symlink_to(elsewhere)
    with listening(board_dir) as hearing:
        (elsewhere / "new").touch()
        assert hearing.mark() == set()


def test_a_board_may_be_given_through_a_link(board_dir: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(board_dir)
    with listening(link) as hearing:
        (board_dir / "new").touch()
        hearing.wait("new")


def test_a_change_that_is_due_and_not_heard_makes_it_deaf_until_it_is(heard: Hearing) -> None:
    events = heard.events
    events.expect("old", 0.2)
    assert not events.deaf
    assert soon(lambda: events.deaf)
    heard.mark()
    assert events.deaf
    os.utime(heard.root / "old")
    heard.wait("old")
    assert not events.deaf


def test_a_change_that_is_heard_in_time_leaves_it_hearing(heard: Hearing) -> None:
    heard.events.expect("old", 0.3)
    os.utime(heard.root / "old")
    heard.wait("old")
    heard.events.expect("never", 0.6)
    assert soon(lambda: heard.events.deaf)
    os.utime(heard.root / "old")
    (heard.root / "never").touch()
    heard.wait("never")
    assert not heard.events.deaf


def _threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def test_stopping_tells_nothing_more_and_leaves_no_thread(heard: Hearing) -> None:
    before = _threads()
    with listening(heard.root) as other:
        assert len(_threads() - before) == 2
        (heard.root / "new").touch()
        other.events.stop()
        told = len(other.batches)
        assert soon(lambda: _threads() <= before)
        heard.mark()
        assert len(other.batches) == told


def test_it_may_be_stopped_from_its_own_thread_twice_and_unstarted(board_dir: Path) -> None:
    stopped = Event()

    def stop(_: set[str]) -> None:
        events.stop()
        stopped.set()

    events = Events(str(board_dir), stop)
    before = _threads()
    events.start()
    assert stopped.wait(PATIENCE)
    events.stop()
    assert soon(lambda: _threads() <= before)
    Events(str(board_dir), stop).stop()


def test_a_callback_that_fails_is_told_and_tried_again(
    board_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.watching.events._RETRY", 0.5)
    told: list[set[str]] = []

    def fail_once(paths: set[str]) -> None:
        told.append(paths)
        if len(told) == 1:
            raise ValueError("not\nready")

    events = Events(str(board_dir), fail_once)
    events.start()
    why = "changes cannot be heard: ValueError: not ready"
    assert soon(lambda: (events.why, events.alive) == (why, False))
    assert soon(lambda: events.alive and len(told) == 2)
    events.stop()


def test_a_program_may_end_without_stopping_it(board_dir: Path) -> None:
    code = (
        "import sys, threading; from dibs_tui.watching.events import Events\n"
        "first = threading.Event()\n"
        "Events(sys.argv[1], lambda _: first.set()).start(); sys.exit(not first.wait(60))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, board_dir],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_watchfiles_is_loaded_by_listening_only(board_dir: Path) -> None:
    code = (
        "import sys; from dibs_tui.watching.events import Events; Events(sys.argv[1], print)\n"
        "sys.exit('watchfiles' in sys.modules or 'anyio' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(board_dir)]
    assert subprocess.run(command, env=environment, timeout=PATIENCE).returncode == 0
