"""A claim whose answer was lost is released, unless the board shows that someone has it."""

from __future__ import annotations

import os

import pytest

import dibs
from tests.contract.place import Place

KINDS = ("task", "lock")


def made(place: Place, kind: str) -> dibs.Claim:
    """A new claim of that kind on `x`."""
    if kind == "lock":
        return place.board.acquire("x", owner="me", ttl=60)
    place.board.add("x")
    claim = place.board.claim("x", owner="me", ttl=60)
    assert claim is not None
    return claim


def state(place: Place) -> str:
    (task,) = place.board.find("x")
    return task.state


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_that_no_one_has_confirmed_is_released(place: Place, kind: str) -> None:
    claim = made(place, kind)
    assert claim.release_unconfirmed("the client has gone")
    assert state(place) == ("free" if kind == "lock" else "available")
    last = place.board.log.of("x")[-1]
    assert (last.verb, last.reason) == ("release", "the client has gone")
    assert place.board.check() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["its maker", "another process"])
def test_a_claim_that_was_confirmed_stays(place: Place, kind: str, by: str) -> None:
    claim = made(place, kind)
    (claim if by == "its maker" else place.other().attach(claim.name)).confirm()
    assert not claim.release_unconfirmed()
    assert not place.other().attach(claim.name).release_unconfirmed()
    claim.verify()
    claim.release()
    assert place.board.check() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 20])
def test_a_claim_that_was_beaten_stays(place: Place, kind: str, after: float) -> None:
    claim = made(place, kind)
    place.advance(after)
    place.other().attach(claim.name).beat()
    assert not claim.release_unconfirmed()
    claim.verify()


def test_a_claim_that_is_gone_is_not_released_again(place: Place) -> None:
    claim = made(place, "task")
    claim.release()
    again = place.board.claim("x", owner="me")
    assert again is not None
    before = len(place.board.log.of("x"))
    assert not claim.release_unconfirmed()
    assert state(place) == "claimed"
    assert len(place.board.log.of("x")) == before, "the log does not speak of a late holder"
    with pytest.raises(dibs.Lost):
        claim.confirm()
    again.verify()


def test_a_confirmation_is_a_heartbeat_with_another_ttl_and_metadata(place: Place) -> None:
    claim = made(place, "lock")
    place.advance(30)
    claim.confirm(ttl=90, metadata="again")
    found = place.board.status("x")
    assert (found.ttl, found.metadata) == (90, "again")
    assert found.remaining > 80
    claim.confirm()
    assert place.board.status("x").ttl == 90


def test_a_lock_that_its_process_acquires_again_is_confirmed(place: Place) -> None:
    claim = made(place, "lock")
    assert place.board.acquire("x", lease=claim.name).name == claim.name
    assert not claim.release_unconfirmed()
    process = place.board.host.process(os.getpid())
    mine = place.board.acquire("y", process=process)
    assert place.board.acquire("y", process=process).name == mine.name
    assert not mine.release_unconfirmed()


def test_an_add_with_the_same_nonce_is_the_same_add(place: Place) -> None:
    first = place.board.add("x", b"one", priority=7, nonce="00000000AF")
    assert place.other().add("x", b"one", priority=7, nonce="00000000AF") == first
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"one", nonce="1111111111")
    with pytest.raises(dibs.Exists):
        place.board.add("x", b"one")
    claim = place.board.claim("x")
    assert claim is not None
    assert place.other().add("x", b"one", priority=7, nonce="00000000AF") == first
    claim.done()
    assert [task.state for task in place.board.find("x")] == ["done"]
    assert [event.verb for event in place.board.log.of("x")] == ["add", "claim", "done"]
    with pytest.raises(dibs.BadName, match="nonce"):
        place.board.add("y", nonce="abc")
    assert place.board.check() == []


def test_a_pause_with_the_same_nonce_is_the_same_pause(place: Place) -> None:
    made, _ = place.board.pause_claims("deploy", host="nowhere", nonce="00000000AF")
    again, _ = place.other().pause_claims("deploy", host="nowhere", nonce="00000000AF")
    assert (again, made.name) == (made, "00000000AF")
    assert [pause.name for pause in place.board.pauses()] == [made.name]
    assert [event.verb for event in place.board.log.since()[0]] == ["pause"]
    with pytest.raises(dibs.BadName, match="nonce"):
        place.board.pause_claims("deploy", nonce="abc")
