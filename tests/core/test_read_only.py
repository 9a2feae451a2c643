"""A board that was opened read-only: the core refuses every act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.files.clock import PROBE
from tests.contract.test_verbs_reader import populate
from tests.core.tools import Place, settle

ACTS: dict[str, Callable[[dibs.Board, dibs.Claim], object]] = {
    "add": lambda board, claim: board.add("new"),
    "claim": lambda board, claim: board.claim(),
    "acquire": lambda board, claim: board.acquire("gate"),
    "done": lambda board, claim: board.attach(claim.name).done(),
    "fail": lambda board, claim: board.attach(claim.name).fail("why"),
    "release": lambda board, claim: board.attach(claim.name).release(),
    "resume": lambda board, claim: board.resume("mine", name=claim.name),
    "force-release": lambda board, claim: board.force_release(claim.name, "why"),
    "reap": lambda board, claim: board.reap(),
    "reap one": lambda board, claim: board.reap_claim(claim.name),
    "requeue": lambda board, claim: board.requeue(board.find("sunk")[0].name),
    "park": lambda board, claim: board.park("wait.available", "why"),
    "prioritize": lambda board, claim: board.prioritize("wait.available", 9),
    "undo": lambda board, claim: board.undo(),
    "purge": lambda board, claim: board.purge(0),
    "forget": lambda board, claim: board.forget("over"),
    "repair": lambda board, claim: board.repair(),
}


@pytest.fixture
def claim(board_dir: Path) -> dibs.Claim:
    settle(board_dir)
    return populate(dibs.open(board_dir))


def written(path: Path) -> dict[str, tuple[int, int]]:
    """Every file with its times, except the probe and its folder."""
    found = {str(p.relative_to(path)): p.stat() for p in path.rglob("*")}
    return {name: (s.st_mtime_ns, s.st_ctime_ns) for name, s in found.items() if name != PROBE}


@pytest.mark.parametrize("act", ACTS)
def test_every_act_is_refused_and_nothing_is_written(
    board_dir: Path, claim: dibs.Claim, act: str
) -> None:
    before = written(board_dir)
    board = dibs.open(board_dir, read_only=True)
    with pytest.raises(dibs.ReadOnly, match="opened read-only"):
        ACTS[act](board, claim)
    assert written(board_dir) == before


def test_check_finds_problems_on_it(board_dir: Path, claim: dibs.Claim) -> None:
    (board_dir / ".dibs/records/other.f1.w-0123456789").touch()
    board = dibs.open(board_dir, read_only=True)
    assert [finding.kind for finding in board.check()] == ["record"]


def test_reads_have_exact_ages_and_evidence(board_dir: Path, claim: dibs.Claim) -> None:
    board = dibs.open(board_dir, read_only=True)
    assert board.snapshot().exact
    assert board.evidence(claim.task).verdict is dibs.Verdict.ALIVE
    assert board.check() == []
    assert board.payload(board.find("wait")[0]) == b"wait"


def test_a_missing_board_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(dibs.BoardMissing):
        dibs.open(tmp_path / "board", create=True, read_only=True)
    with pytest.raises(dibs.ReadOnly):
        dibs.open(tmp_path, create=True, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_board_object_can_use_the_trusted_clock_of_another(place: Place) -> None:
    claim = place.board.claim(place.board.add("stale").id, ttl=60)
    assert claim is not None
    watcher, _ = place.another()
    fresh, _ = place.another()
    for file in (place.path / ".dibs/witness").iterdir():
        file.unlink()
    watcher.evidence(claim.task)
    place.world.advance(61)
    assert watcher.evidence(claim.task).verdict is dibs.Verdict.EXPIRED
    assert fresh.evidence(claim.task).verdict is dibs.Verdict.UNKNOWN
    fresh.trust(watcher)
    assert fresh.evidence(claim.task).verdict is dibs.Verdict.EXPIRED
    place.world.step(500)
    assert fresh.evidence(claim.task).verdict is dibs.Verdict.UNKNOWN
