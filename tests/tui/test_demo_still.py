"""The still life: always the same board, whatever the day and the place."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import dibs
from dibs_tui.demo import still
from dibs_tui.demo.still import AT

COUNTS = {
    "available": 60,
    "claimed": 24,
    "stale": 5,
    "failed": 3,
    "done": 40,
    "free": 1,
    "held": 2,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A still life that nobody acts on."""
    path = tmp_path_factory.mktemp("still") / "tasks"
    still.make(str(path))
    return path


@pytest.fixture(scope="module")
def board(place: Path) -> dibs.Board:
    return still.board(str(place))


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and its content, and every folder with its time."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in (root, *root.rglob("*"))
    }


def test_it_holds_what_it_promises(board: dibs.Board) -> None:
    snapshot = board.snapshot()
    assert snapshot.counts() == COUNTS
    assert (snapshot.strangers, snapshot.exact, snapshot.now.fs) == (0, True, AT)


def test_one_frame_of_it_has_the_figures_that_a_terminal_shows(tmp_path: Path) -> None:
    env = {**os.environ, "COLUMNS": "140", "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "dibs_tui.main", "demo", "--seed"]

    def shown(*argv: str) -> str:
        done = subprocess.run([*words, *argv], env=env, capture_output=True, text=True, check=True)
        return done.stdout

    for text in (shown("--once"), shown()):  # into a pipe is one frame as well
        assert "5 stale · 24 claimed" in text
        assert "oldest waiting 46m" in text
    assert json.loads(shown("--json"))["counts"] == COUNTS


def test_two_of_them_are_the_same_to_the_byte_and_to_the_nanosecond(
    place: Path, tmp_path: Path
) -> None:
    still.make(str(tmp_path / "tasks"))
    still.make(str(tmp_path / "again"))
    assert everything(tmp_path / "tasks") == everything(tmp_path / "again")


def test_it_looks_the_same_to_whoever_looks_and_whenever(place: Path, tmp_path: Path) -> None:
    still.make(str(tmp_path / "tasks"))
    one, other = still.board(str(place)), still.board(str(tmp_path / "tasks"))
    rows = sorted(one.entries())
    assert rows == sorted(one.entries())
    assert rows == sorted(other.entries())
    assert one.journal.read() == other.journal.read()


def test_looking_changes_nothing_that_a_scan_would_find(board: dibs.Board) -> None:
    view = board.view()
    view.scan()
    view.snapshot()
    assert view.unchanged()
    assert not view.scan()


def test_each_kind_of_evidence_is_there(board: dibs.Board) -> None:
    facts = board.snapshot().facts.values()
    verdicts = {f.task.id: board.judge(f).value for f in facts}
    assert Counter(verdicts.values()) == {"alive": 26, "expired": 3, "dead": 1, "unknown": 1}
    stale = [row for row in board.entries() if row.state == "stale"]
    assert Counter(row.host for row in stale) == {"web-3": 3, "lab-9": 1, "": 1}
    assert {verdicts[row.id] for row in stale if row.host == "web-3"} == {"expired"}


def test_many_owners_on_many_hosts_are_at_varied_points_of_their_lease(board: dibs.Board) -> None:
    claimed = [row for row in board.entries() if row.state == "claimed"]
    assert len({row.owner for row in claimed}) == 7
    assert len({row.host for row in claimed} - {""}) == 4
    parts = sorted((row.age or 0) / (row.ttl or 1) for row in claimed)
    assert parts[0] < 0.1
    assert 0.8 < parts[-1] < 1


def test_the_last_half_hour_has_something_of_everything(board: dibs.Board) -> None:
    verbs = Counter(event.verb for event in board.journal.recent(AT / 1e9 - 1800))
    assert verbs["claim"] > 60
    assert verbs["done"] >= 40
    wanted = ("fail", "reap", "force-release", "requeue", "park", "prioritise", "release")
    assert all(verbs[verb] for verb in wanted)
    people = {event.by for event in board.journal.read() if event.verb == "force-release"}
    assert people == {"ana@lab-9"}


def test_what_failed_says_why(board: dibs.Board) -> None:
    failed = [row for row in board.entries() if row.state == "failed"]
    assert sorted(row.attempts for row in failed) == [0, 3, 3]
    assert all(board.history(row.id)[-1].reason for row in failed)


def test_payloads_are_of_many_kinds(board: dibs.Board) -> None:
    tasks = board.snapshot().tasks.values()
    payloads = [(task.id, board.payload(task)) for task in tasks if task.kind == "task"]
    assert any(isinstance(json.loads(p), dict) for i, p in payloads if i.startswith("invoice"))
    assert any(p.startswith(b"# ") for _, p in payloads)
    assert any(b"\0" in p for _, p in payloads)
    assert any("https://" in row.metadata for row in board.entries())


def test_one_can_act_on_it_like_on_any_board(tmp_path: Path) -> None:
    still.make(str(tmp_path / "tasks"))
    board = still.board(str(tmp_path / "tasks"))
    row = next(row for row in board.entries() if row.state == "stale" and row.host == "web-3")
    freed = board.force_release(row.claim, "web-3 is down")
    (now,) = (entry for entry in board.entries() if entry.id == row.id)
    assert (now.state, now.age) == ("available", 0)
    assert board.history(row.id)[-1].at == round(AT / 1e9, 3)
    assert freed.name in os.listdir(board.path)


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(dibs.NotABoard, match="not empty"):
        still.make(str(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.txt"]
