"""The evidence that the inspector shows, and steps that the journal does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs.files.engine import FilesBoard, open_directory
from dibs_tui.model.detail_sections import DetailSections
from dibs_tui.model.rows import Row, plain
from dibs_tui.model.task_details import TaskDetails
from dibs_tui.source.details_loader import look_up
from tests.tui.board_models import model_of

pytestmark = pytest.mark.fast("dibs_tui.model")


@pytest.fixture
def board(tmp_path: Path) -> FilesBoard:
    return open_directory(tmp_path / "board", create=True)


def claimed(board: FilesBoard, ident: str) -> dibs.Claim:
    board.add(ident)
    process = board.host.process(1)
    claim = board.claim(ident, owner="agent-7", ttl=60, process=process)
    assert claim is not None
    return claim


def details(board: FilesBoard, task: dibs.Task, cadence: float = 0.0) -> DetailSections:
    """All sections about a task."""
    model = model_of(board)
    known = TaskDetails(task, beside=tuple(model.holders.values()), cadence=cadence)
    for found in look_up(board, known):
        known = found
    return DetailSections(model, known)


def text_of(rows: list[Row]) -> str:
    return "\n".join(map(plain, rows))


def test_the_evidence_is_shown_with_its_proofs(board: FilesBoard) -> None:
    tasks = [claimed(board, ident).task for ident in "abc"]
    found = details(board, tasks[0], cadence=5.0)
    words = text_of(found.proofs(120))
    assert words.startswith("evidence  ALIVE ──")
    for kind in ("process", "beat", "cadence", "clock", "record", "host"):
        assert f" {kind} " in words
    assert "+ process  1 (started" in words
    assert "every 5 s as seen here, not late" in words
    assert f"2 other claims on {board.host.name}, all beat" in words
    assert text_of(found.proofs(90)) in text_of(found.overview(90, 60))


def test_beats_faster_than_a_second_are_shown_as_such(board: FilesBoard) -> None:
    board.add("a")
    claim = board.claim("a", ttl=1)
    assert claim is not None
    words = text_of(details(board, claim.task, cadence=0.34).proofs(120))
    assert "every 0.34 s as seen here" in words
    words = text_of(details(board, claim.task).proofs(120))
    assert "a dibs worker beats every 0.33 s" in words


def test_a_task_without_a_holder_has_no_evidence(board: FilesBoard) -> None:
    claim = claimed(board, "a")
    claim.done()
    assert details(board, claim.task).proofs(100) == []


def test_a_step_without_its_journal_line_is_reported(board: FilesBoard) -> None:
    claim = claimed(board, "a")
    words = "not in the log: the change to done/"
    assert words not in text_of(details(board, claim.task).timeline(120))
    root = Path(board.location.where)
    (root / claim.task.name).rename(root / "done" / claim.name)
    (task,) = board.find("a")
    assert f"{words}{claim.name}, without dibs" in text_of(details(board, task).timeline(120))


def test_an_act_that_crashed_is_shown_in_the_timeline(board: FilesBoard) -> None:
    claim = claimed(board, "a")
    board.log.write("intent", "a", claim.task.name, "", "ada@desk", "force-release: hung")
    found = text_of(details(board, claim.task).timeline(120))
    assert "unfinished act by ada@desk" in found
    board.force_release(claim.task.name, "hung", by="bob@desk")
    (task,) = board.find("a")
    assert text_of(details(board, task).timeline(120)).count("unfinished act") == 1
