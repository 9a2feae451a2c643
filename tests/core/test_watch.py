"""A watched place: its state is reported whatever happens to it."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.files import reader_thread
from dibs.files.clock import PROBE
from dibs.files.engine import FilesBoard
from dibs.files.tracker import BoardTracker
from dibs.model.health import Health, Trouble
from tests.patience import PATIENCE
from tests.tui.recorder import passed_through
from tests.watched import Watched, watched


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate home, because a watch stores on which mount it saw a board."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A board with one claim and two available tasks."""
    board = dibs.open(tmp_path / "board", create=True)
    for n in (1, 2, 3):
        board.add(f"task-{n}")
    board.claim("task-1", owner="web-1", ttl=3600)
    return tmp_path / "board"


class ByHand:
    """A hint source that a test controls."""

    made: ByHand | None = None

    def __init__(self, place: str, on_batch: Callable[[set[str]], object]) -> None:
        self.place = place
        self.hint = on_batch
        self.why = ""
        self.alive = self.deaf = self.stopped = False
        self.expected: list[str] = []
        ByHand.made = self

    def start(self) -> None:
        self.alive = True
        self.hint({""})

    def stop(self) -> None:
        self.alive, self.stopped = False, True

    def expect(self, name: str, seconds: float) -> None:
        self.expected.append(name)


def by_hand() -> ByHand:
    assert ByHand.made is not None
    return ByHand.made


# Normal operation


def test_without_hints_a_place_is_polled(path: Path) -> None:
    with watched(path) as found:
        found.until_live()
        assert not found.health.live
        added = dibs.open(path).add("later").name
        found.until(lambda: added in found.names)
        assert found.health.every == 0.1


def test_a_hint_is_followed_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_thread, "_EVERY", 3600.0)
    with watched(path, ByHand, poll=3600) as found:
        found.until(lambda: found.health.live)
        hints = by_hand()
        assert hints.place == str(path)
        added = dibs.open(path).add("later").name
        hints.hint({added})
        found.until(lambda: added in found.names)
    assert hints.stopped


def test_hints_must_report_our_own_touch_of_the_clock(path: Path) -> None:
    with watched(path, ByHand) as found:
        found.until(lambda: found.health.live and PROBE in by_hand().expected)
        by_hand().deaf = True
        found.until(lambda: not found.health.live)
        assert found.health.why_polling == "no change notifications arrive"
        by_hand().deaf = False
        found.until(lambda: found.health.live)


def test_hints_that_fail_give_a_reason_and_the_place_is_polled(path: Path) -> None:
    with watched(path, ByHand) as found:
        found.until(lambda: found.health.live)
        by_hand().alive, by_hand().why = False, "no inotify watch is left"
        found.until(lambda: not found.health.live)
        assert found.health.why_polling == "no inotify watch is left"
        added = dibs.open(path).add("later").name
        found.until(lambda: added in found.names)


def test_a_board_that_the_user_cannot_change_is_reported_read_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_thread, "unwritable", lambda root: f"{root}: read-only")
    with watched(path) as found:
        found.until_live()
        assert found.health.why_read_only == f"{path}: read-only"
        assert not found.health.writable


def test_a_board_for_another_thread_shares_the_trusted_clock_of_the_watch(path: Path) -> None:
    with watched(path) as found:
        found.until_live()
        board = found.watch.open()
        assert isinstance(board, FilesBoard)
        assert board._store.clock._samples


# Trouble


def spoil_format(path: Path) -> None:
    (path / ".dibs/board.toml").write_text("format = 99\n")


def spoil_settings(path: Path) -> None:
    (path / ".dibs/board.toml").write_text("ttl = 'soon'\n")


def make_old(path: Path) -> None:
    (path / ".dibs/claims").unlink()
    (path / ".dibs/claims").mkdir()
    os.utime(path / ".dibs/board.toml")


def make_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


TROUBLES: dict[Trouble, tuple[Callable[[Path], object], str]] = {
    Trouble.MISSING: (shutil.rmtree, "the board that was here is gone"),
    Trouble.NEWER_FORMAT: (spoil_format, "update dibs"),
    Trouble.BAD_SETTINGS: (spoil_settings, "ttl must be"),
    Trouble.OLDER_FORMAT: (make_old, "dibs upgrade"),
    Trouble.NOT_A_BOARD: (make_a_file, "not a directory"),
}


def test_a_board_of_which_only_dibs_is_gone_is_called_that(path: Path) -> None:
    dibs.open(path).add("x")
    with watched(path) as found:
        found.until_live()
        shutil.rmtree(path / ".dibs")
        found.until(lambda: found.health.trouble is Trouble.MISSING)
        assert found.health.cause.startswith(f"{path}: its folder .dibs is gone, but not its tasks")
        with pytest.raises(dibs.BoardMissing, match=r"its folder \.dibs is gone"):
            found.watch.open()


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_has_a_kind_and_a_cause_and_ends_without_help(
    trouble: Trouble, path: Path, tmp_path: Path
) -> None:
    spoil, cause = TROUBLES[trouble]
    shutil.copytree(path, tmp_path / "copy", copy_function=shutil.copy2)
    with watched(path) as found:
        found.until_live()
        before = found.names
        spoil(path)
        found.until(lambda: found.health.trouble)
        assert found.health.trouble is trouble
        assert cause in found.health.cause
        assert str(path) in found.health.cause
        assert not found.health.live
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        (tmp_path / "copy").rename(path)
        found.until_live()
        assert found.health.cause == ""
        assert found.names == before
        added = dibs.open(path).add("later").name
        found.until(lambda: added in found.names)


def test_every_error_at_opening_a_board_has_its_own_trouble() -> None:
    kinds = {kind for kind, _ in reader_thread._TROUBLES}
    assert {dibs.BoardMissing, dibs.NotABoard, dibs.ReadOnly} < kinds
    assert {kind for kind in kinds if issubclass(kind, dibs.NotABoard)} == {
        dibs.NotABoard,
        *dibs.NotABoard.__subclasses__(),
    }
    assert {t for _, t in reader_thread._TROUBLES} | {Trouble.FAILED} == {*Trouble}


def test_a_bug_is_reported_as_trouble_and_does_not_end_the_watch(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(path) as found:
        found.until_live()
        with monkeypatch.context() as patch:
            patch.setattr(BoardTracker, "look", lambda *_, **__: 1 / 0)
            found.until(lambda: found.health.trouble is Trouble.FAILED)
            assert "ZeroDivisionError" in found.health.cause
        found.until_live()


def test_a_board_that_is_made_later_is_found(tmp_path: Path) -> None:
    with watched(tmp_path / "later") as found:
        found.until(lambda: found.health.trouble is Trouble.MISSING)
        assert found.health.fresh == 0
        added = dibs.open(tmp_path / "later", create=True).add("x").name
        found.until_live()
        found.until(lambda: found.names == {added})


def test_a_callback_that_keeps_raising_does_not_end_the_watch(path: Path) -> None:
    broken, reported = threading.Event(), list[dibs.Delta]()
    broken.set()

    def report(delta: dibs.Delta) -> None:
        reported.append(delta)
        if broken.is_set():
            raise ValueError("the callback is broken")

    def until(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, watch.health
            time.sleep(0.01)

    watch = dibs.watch(path, report, poll=0.1)
    try:
        until(lambda: len(reported) >= 4)
        assert "the callback is broken" in watch.health.cause
        broken.clear()
        until(lambda: not watch.health.trouble)
        added = dibs.open(path).add("later").name
        until(lambda: any(task.name == added for delta in reported for task in delta.added))
    finally:
        assert watch.stop(PATIENCE)


def test_another_board_at_the_same_path_is_shown_instead(path: Path, tmp_path: Path) -> None:
    other = dibs.open(tmp_path / "other", create=True)
    added = other.add("quite-another").name
    with watched(path) as found:
        found.until_live()
        path.rename(tmp_path / "away")
        (tmp_path / "other").rename(path)
        found.until(lambda: found.names == {added})
        found.until_live()


def test_the_empty_mount_point_of_a_lost_mount_is_no_empty_board(
    path: Path, tmp_path: Path
) -> None:
    with watched(path) as found:
        found.until_live()
        before = found.names
        path.rename(tmp_path / "away")
        path.mkdir()
        found.until(lambda: found.health.trouble is Trouble.MISSING)
        assert "mount it, or move it back" in found.health.cause
        assert found.names == before
        path.rmdir()
        (tmp_path / "away").rename(path)
        found.until_live()


def test_changed_settings_are_applied(path: Path) -> None:
    toml = path / ".dibs/board.toml"
    with watched(path) as found:
        found.until_live()
        assert not found.stale
        thread = found.watch
        assert isinstance(thread, reader_thread.ReaderThread)
        board = thread._board
        toml.write_text(re.sub("ttl = 120", "ttl = 240", toml.read_text()))
        found.until(lambda: thread._board is not board)
        found.until_live()


def test_a_mount_that_others_change_is_polled_and_named(tmp_path: Path) -> None:
    with passed_through(tmp_path) as (place, _, _):
        (place / "t.available").touch()
        with watched(place, ByHand) as found:
            found.until(lambda: found.health.fresh)
            assert not found.health.live
            assert found.health.traits == ("fuse",)
            assert "does not report changes by other hosts" in found.health.why_polling


class Stuck:
    """A disk that does not answer until the test releases it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._answer = threading.Event()
        before = reader_thread.ReaderThread._which

        def which(thread: reader_thread.ReaderThread) -> tuple[object, object]:
            assert self._answer.wait(PATIENCE)
            return before(thread)

        monkeypatch.setattr(reader_thread.ReaderThread, "_which", which)

    def go_on(self) -> None:
        self._answer.set()


def test_a_hanging_disk_is_shown_in_the_health_and_blocks_no_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(path) as found:
        found.until_live()
        disk = Stuck(monkeypatch)
        found.until(lambda: found.health.busy and time.monotonic() - found.health.busy > 0.3)
        found.watch.ask_since(["task-2.available"])
        found.watch.refresh()
        assert found.watch.stop() is False, "it still waits for an answer"
        disk.go_on()


def test_health_is_live_only_while_looks_succeed() -> None:
    now = 100.0
    assert Health(fresh=now).lag(now) == 0
    assert Health(fresh=now - 2).lag(now) == 0
    assert Health(fresh=now - 30).lag(now) == 30
    assert Health(fresh=now - 2, busy=now - 1.9).lag(now) == 2


def test_a_change_of_health_is_reported_without_a_change_on_the_board(path: Path) -> None:
    seen: list[Trouble | None] = []
    held: list[Watched] = []

    with watched(path, on_report=lambda _: seen.extend(w.health.trouble for w in held)) as found:
        held.append(found)
        found.until_live()
        spoil_settings(path)
        found.until(lambda: Trouble.BAD_SETTINGS in seen)
        assert found.complete, "the complete board was reported before"
