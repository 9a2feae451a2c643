"""The still demo: always the same board, on any day and in any place."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from queue import SimpleQueue

import pytest

import dibs
from dibs.files.engine import FilesBoard
from dibs.files.reader_thread import watch_directory
from dibs.model.usual import VERBS, learn
from dibs_tui.demo import fixed_board
from dibs_tui.demo.fixed_board import AT
from dibs_tui.demo.frozen_disk import FrozenDisk
from dibs_tui.model.board import BoardModel
from dibs_tui.model.problems import problems
from dibs_tui.settings.config import Config
from tests.patience import PATIENCE

COUNTS = {
    "available": 60,
    "claimed": 25,
    "stale": 11,
    "failed": 11,
    "done": 246,
    "free": 1,
    "held": 2,
    "later": 4,
    "asked": 2,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A still demo that no test acts on."""
    path = tmp_path_factory.mktemp("still") / "tasks"
    fixed_board.make(str(path))
    return path


@pytest.fixture
def board(place: Path) -> FilesBoard:
    """The demo, opened for one test: an open board remembers when it read the clock."""
    return fixed_board.board(str(place))


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and its content, and every folder with its time."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in (root, *root.rglob("*"))
    }


def test_it_has_what_it_promises(board: FilesBoard) -> None:
    snapshot = board.snapshot()
    assert snapshot.counts() == COUNTS
    assert (snapshot.strangers, snapshot.exact, snapshot.now.fs) == (0, True, AT)


def test_a_single_frame_has_the_figures_that_a_terminal_shows(tmp_path: Path) -> None:
    env = {**os.environ, "COLUMNS": "140", "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "dibs_tui.cli", "demo", "--seed"]

    def shown(*argv: str) -> str:
        done = subprocess.run([*words, *argv], env=env, capture_output=True, text=True, check=True)
        return done.stdout

    for text in (shown("--once"), shown()):  # into a pipe is one frame as well
        assert "11 stale · 25 claimed" in text
        assert "longest wait 46m" in text
    assert json.loads(shown("--json"))["counts"] == COUNTS


def test_two_of_them_are_equal_to_the_byte_and_to_the_nanosecond(
    place: Path, tmp_path: Path
) -> None:
    fixed_board.make(str(tmp_path / "tasks"))
    fixed_board.make(str(tmp_path / "again"))
    assert everything(tmp_path / "tasks") == everything(tmp_path / "again")


def test_it_looks_the_same_to_every_user_at_any_time(place: Path, tmp_path: Path) -> None:
    fixed_board.make(str(tmp_path / "tasks"))
    one, other = fixed_board.board(str(place)), fixed_board.board(str(tmp_path / "tasks"))
    rows = sorted(one.entries())
    assert rows == sorted(one.entries())
    assert rows == sorted(other.entries())
    assert one.log.read() == other.log.read()


def test_reading_it_changes_nothing_that_a_scan_would_find(board: FilesBoard) -> None:
    board.snapshot()  # reads the clock; without its time, a scan trusts no folder's time
    view = board.view()
    view.scan()
    view.snapshot()
    assert view.unchanged()
    assert not view.scan()


def test_each_kind_of_evidence_is_there(board: FilesBoard) -> None:
    tasks = [holder.task for holder in board.snapshot().holders.values()]
    verdicts = {task.id: board.evidence(task).verdict.value for task in tasks}
    assert Counter(verdicts.values()) == {"alive": 27, "expired": 9, "dead": 1, "unknown": 1}
    stale = [row for row in board.entries() if row.state == "stale"]
    assert Counter(row.host for row in stale) == {"web-3": 9, "lab-9": 1, "": 1}
    assert {verdicts[row.id] for row in stale if row.host == "web-3"} == {"expired"}


def test_many_owners_on_many_hosts_are_at_varied_points_of_their_lease(board: FilesBoard) -> None:
    claimed = [row for row in board.entries() if row.state == "claimed"]
    assert len({row.owner for row in claimed}) == 8
    assert len({row.host for row in claimed} - {""}) == 4
    parts = sorted((row.age or 0) / (row.ttl or 1) for row in claimed)
    assert parts[0] < 0.1
    assert 0.8 < parts[-1] < 1


def test_the_last_half_hour_has_an_event_of_every_kind(board: FilesBoard) -> None:
    verbs = Counter(event.verb for event in board.log.recent(AT / 1e9 - 1800))
    assert verbs["claim"] > 60
    assert verbs["done"] >= 40
    wanted = ("fail", "reap", "force-release", "requeue", "park", "prioritize", "release", "ask")
    assert all(verbs[verb] for verb in wanted)
    people = {event.by for event in board.log.read() if event.verb == "force-release"}
    assert people == {"ana@lab-9"}


def test_failed_tasks_say_why(board: FilesBoard) -> None:
    failed = [row for row in board.entries() if row.state == "failed"]
    assert sorted(row.attempts for row in failed) == [0] + [3] * 10
    assert all(board.log.of(row.id)[-1].reason for row in failed)


def test_an_outage_a_hung_worker_questions_and_waiting_workers_are_there(place: Path) -> None:
    model = BoardModel(boottime=FrozenDisk(str(place), AT).boottime)
    deltas: SimpleQueue[dibs.Delta] = SimpleQueue()
    watch = watch_directory(str(place), deltas.put, open_board=fixed_board.board)
    try:
        while not (model.complete and model.feed and model.questions and model.waiters):
            model.apply(deltas.get(timeout=PATIENCE))
    finally:
        assert watch.stop(PATIENCE)
    model.durations = learn(fixed_board.board(str(place)).log.newest_first(verbs=VERBS))
    found = {group.title.partition(":")[0]: group.problems for group in problems(model, Config())}
    assert len(found["questions"]) == 2
    (long,) = found["unusually long"]
    assert long.reason == "mailer-3 on lab-9: running 14m, usually 3s"
    (outage,) = found["failed together"]
    assert outage.word == "8 failed"
    assert outage.id.endswith("smtp.example.com:25: connection refused")
    assert outage.reason.startswith("8 failed · 4 later · since 13:56")
    assert outage.reason.endswith("3 owners")
    assert Counter(waiter.state for waiter in model.waiters) == {"broken": 2, "idle": 1}
    assert sum(holder.note != "" for holder in model.holders.values()) > 5


def test_payloads_are_of_many_kinds(board: FilesBoard) -> None:
    tasks = board.snapshot().tasks.values()
    payloads = [(task.id, board.payload(task)) for task in tasks if task.kind == "task"]
    assert any(isinstance(json.loads(p), dict) for i, p in payloads if i.startswith("invoice"))
    assert any(p.startswith(b"# ") for _, p in payloads)
    assert any(b"\0" in p for _, p in payloads)
    assert any("https://" in row.metadata for row in board.entries())


@pytest.mark.fast("dibs_tui.demo")
def test_acts_work_on_it_as_on_any_board(tmp_path: Path) -> None:
    fixed_board.make(str(tmp_path / "tasks"))
    board = fixed_board.board(str(tmp_path / "tasks"))
    row = next(row for row in board.entries() if row.state == "stale" and row.host == "web-3")
    freed = board.force_release(row.claim, "web-3 is down")
    (now,) = (entry for entry in board.entries() if entry.id == row.id)
    assert (now.state, now.age) == ("available", 0)
    assert board.log.of(row.id)[-1].at == round(AT / 1e9, 3)
    assert freed.name in os.listdir(board.path)


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(dibs.NotABoard, match="not empty"):
        fixed_board.make(str(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize("more", [[], ["--once"], ["--json"]])
def test_the_demo_without_a_terminal_is_one_frame_of_the_still_picture(more: list[str]) -> None:
    def printed(*flags: str) -> str:
        words = [sys.executable, "-m", "dibs_tui.cli", "demo", *flags, *more]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return re.sub(r"dibs-still-\w+|\d\d:\d\d:\d\d|\"at\": [\d.]+", "", done.stdout)

    assert "invoice-2407" in printed()
    assert printed() == printed("--seed")
