"""What the inspector says of a holder, and of steps that no line of the journal tells."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from dibs_tui.dossier import Dossier, look_up
from dibs_tui.model.details import Details
from dibs_tui.model.rows import Row, plain
from tests.tui.listed import model_of


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    return dibs.open(tmp_path / "board", create=True)


def claimed(board: dibs.Board, ident: str) -> dibs.Claim:
    board.add(ident)
    process = board.host.process(1)
    claim = board.claim(ident, owner="agent-7", ttl=60, process=process)
    assert claim is not None
    return claim


def details(board: dibs.Board, task: dibs.Task, cadence: float = 0.0) -> Details:
    """All that is found out about a task."""
    model = model_of(board)
    known = Dossier(task, beside=tuple(model.facts.values()), cadence=cadence)
    for found in look_up(board, known):
        known = found
    return Details(model, known)


def told(rows: list[Row]) -> str:
    return "\n".join(map(plain, rows))


def test_the_evidence_stands_with_its_proofs(board: dibs.Board) -> None:
    tasks = [claimed(board, ident).task for ident in "abc"]
    found = details(board, tasks[0], cadence=5.0)
    words = told(found.proofs(120))
    assert words.startswith("── evidence · ALIVE") or "evidence · ALIVE" in words
    for kind in ("process", "beat", "cadence", "clock", "record", "host"):
        assert f" {kind} " in words
    assert "process 1 (begun" in words
    assert "it beats every 5 s, as seen here, and is not late" in words
    assert f"of 2 other claims on {board.host.name}, 2 beat" in words
    assert words in told(found.overview(120, 60))


def test_a_beat_each_fraction_of_a_second_is_told_as_one(board: dibs.Board) -> None:
    board.add("a")
    claim = board.claim("a", ttl=1)
    assert claim is not None
    words = told(details(board, claim.task, cadence=0.34).proofs(120))
    assert "it beats every 0.34 s, as seen here" in words
    words = told(details(board, claim.task).proofs(120))
    assert "a worker of dibs does every 0.33 s" in words


def test_what_nobody_holds_has_no_evidence(board: dibs.Board) -> None:
    claim = claimed(board, "a")
    claim.done()
    assert details(board, claim.task).proofs(100) == []


def test_a_step_that_crashed_before_its_line_is_told_as_such(board: dibs.Board) -> None:
    claim = claimed(board, "a")
    words = "how it came to be done/"
    assert words not in told(details(board, claim.task).life(120))
    root = Path(board.path)
    (root / claim.task.name).rename(root / "done" / claim.name)
    (task,) = board.find("a")
    assert f"{words}{claim.name} no line tells" in told(details(board, task).life(120))


def test_an_act_that_crashed_is_told_in_the_timeline(board: dibs.Board) -> None:
    claim = claimed(board, "a")
    board.journal.write("intent", "a", claim.task.name, "", "ada@desk", "force-release: hung")
    found = told(details(board, claim.task).life(120))
    assert "an act was begun, and no outcome is told by ada@desk" in found
    board.force_release(claim.task.name, "hung", by="bob@desk")
    (task,) = board.find("a")
    assert told(details(board, task).life(120)).count("no outcome") == 1
