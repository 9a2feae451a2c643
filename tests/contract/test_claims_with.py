"""Claims by a key of their metadata."""

from __future__ import annotations

import pytest

import dibs
from dibs.cli import mine
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")


def names(place: Place, value: str = "s-1", key: str = "session") -> list[str]:
    return sorted(row.claim for row in place.other().claims_with(key, value))


def claimed(place: Place, ident: str, metadata: str) -> str:
    place.board.add(ident)
    claim = place.board.claim(ident, owner="me", ttl=60, metadata=metadata)
    assert claim is not None
    return claim.name


def test_claims_and_locks_with_that_value_are_found_and_no_others(place: Place) -> None:
    task = claimed(place, "a", "gpu=1 session=s-1")
    as_json = claimed(place, "b", '{"session": "s-1"}')
    lock = place.board.acquire("door", metadata="session=s-1").name
    claimed(place, "c", "session=s-10")
    claimed(place, "d", "no session, only s-1")
    claimed(place, "e", 'why="session=s-1"')
    place.board.add("f")
    assert names(place) == sorted([task, as_json, lock])
    assert names(place, "s-10") != []
    assert names(place, "s") == names(place, "") == []


def test_a_row_has_the_state_the_age_and_the_ttl(place: Place) -> None:
    name = claimed(place, "a", "session=s-1")
    place.advance(20)
    (row,) = place.other().claims_with("session", "s-1")
    assert (row.claim, row.owner, row.state, row.ttl) == (name, "me", "claimed", 60)
    assert row.age == pytest.approx(20, abs=1)
    place.advance(50)
    (row,) = place.other().claims_with("session", "s-1")
    assert row.state == "stale"


def test_a_claim_that_has_ended_or_was_taken_is_not_found(place: Place) -> None:
    board = place.board
    for ident in ("a", "b", "c"):
        name = claimed(place, ident, "session=s-1")
        {
            "a": lambda name=name: board.attach(name).done(),
            "b": lambda name=name: board.attach(name).release(),
            "c": lambda name=name: board.force_release(name, "stuck"),
        }[ident]()
    assert names(place) == []


def test_a_value_that_json_spells_differently_is_found(place: Place) -> None:
    name = claimed(place, "a", '{"why": "a\\\\b \\"c\\" é"}')
    assert names(place, 'a\\b "c" é', "why") == [name]


def test_an_empty_board_has_none(place: Place) -> None:
    assert names(place) == []


@pytest.mark.parametrize("end", ["force-release", "park", "reap", "resume", "lock"])
def test_the_line_of_a_claim_that_was_taken_names_its_session(
    place: Place, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """So a loss is found in the newest events, however old the claim is."""
    board, about = place.board, "model x session=s-1"
    claim: dibs.Claim | None
    board.add("a")
    if end == "lock":
        claim = board.acquire("door", metadata=about)
    else:
        claim = board.claim("a", ttl=1 if end == "reap" else 600, metadata=about)
    assert claim is not None
    board.reap()  # so that the clock is trusted
    for ident in "bcd":
        place.other().add(ident)
    if end == "reap":
        other = place.other()  # it has seen the clock run since then
        place.advance(2)
        assert other.reap().tasks
    elif end == "resume":
        place.other().resume("a", name=claim.name, metadata="session=s-2")
    elif end == "park":
        place.other().park(claim.name, "why")
    else:
        place.other().force_release(claim.name, "why")
    taken = board.log.of(claim.id)[-1]
    assert taken.session == "s-1"
    assert {event.session for event in board.log.oldest_first() if event != taken} <= {""}
    monkeypatch.setattr(mine, "RECENT", 2)
    assert [loss.claim for loss in mine.lost(board, "s-1", [])] == [claim.name]
    assert mine.lost(board, "s-2", []) == []
