"""Claims that take unusually long, learnt from the log of any engine."""

from __future__ import annotations

import pytest

import dibs
from dibs.cli.stats import gather
from dibs.model.usual import ENOUGH
from tests.contract.place import Place


def claimed(board: dibs.Board, ident: str) -> dibs.Claim:
    board.add(ident)
    claim = board.claim(ident, owner="w", ttl=3600)
    assert claim is not None
    return claim


@pytest.fixture
def usual(place: Place) -> Place:
    """A board on which reports take half a minute."""
    for number in range(ENOUGH):
        claim = claimed(place.board, f"report-{number}")
        place.advance(30)
        claim.done()
    return place


def test_a_claim_is_listed_once_it_is_past_three_times_the_usual(usual: Place) -> None:
    claim = claimed(usual.board, "report-999")
    claimed(usual.board, "other-999")
    usual.advance(80)
    figures = gather(usual.other())
    assert (figures.values["long"], figures.long) == (0, ())
    usual.advance(40)
    figures = gather(usual.other())
    assert figures.values["long"] == 1
    (found,) = figures.long
    assert (found.id, found.claim, found.owner) == ("report-999", claim.task.name, "w")
    assert found.usual == pytest.approx(30, abs=5)
    assert found.text == "running 2m, usually 30s"
    claim.done()
    assert gather(usual.other()).long == ()


def test_a_lock_of_that_name_is_never_unusually_long(usual: Place) -> None:
    usual.board.acquire("report-lock-1", ttl=3600)
    usual.advance(3000)
    assert gather(usual.other()).long == ()
