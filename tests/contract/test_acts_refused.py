"""A holder that comes back to a lost claim is logged, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dibs
from dibs.cli.look import _event
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")

VERBS = ["beat", "done", "fail", "release"]


def lost(place: Place) -> dibs.Claim:
    """A claim that an operator has revoked."""
    place.board.add("x", b"p")
    claim = place.board.claim("x", owner="agent 7")
    assert claim is not None
    place.other().force_release(claim.name, "stuck")
    return claim


def traces(board: dibs.Board) -> list[dibs.Event]:
    return [event for event in board.log.of("x") if event.verb == "refused"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_verb_is_logged_once_with_the_claim_its_owner_and_the_verb(
    place: Place, verb: str
) -> None:
    claim = lost(place)
    act: Callable[[], object] = getattr(claim, verb)
    for _ in range(2):
        with pytest.raises(dibs.Lost):
            act()
    (event,) = traces(place.board)
    assert (event.id, event.src, event.dst) == ("x", claim.name, "")
    # A server that no longer has the record knows the owner only by the claim's name.
    has_record = dibs.Capability.LOCAL_EVIDENCE in place.board.capabilities
    assert (event.by, event.reason) == ("agent 7" if has_record else "agent-7", verb)


def test_each_refused_verb_has_its_own_trace(place: Place) -> None:
    claim = lost(place)
    for act in (claim.beat, claim.done, claim.done, claim.beat):
        with pytest.raises(dibs.Lost):
            act()
    assert [event.reason for event in traces(place.board)] == ["beat", "done"]


def test_each_process_that_comes_back_leaves_its_own_trace(place: Place) -> None:
    claim = lost(place)
    for verb in ("beat", "verify", "done"):
        with pytest.raises(dibs.Lost):
            getattr(place.other().attach(claim.name), verb)()
    assert [event.reason for event in traces(place.board)] == ["beat", "verify", "done"]


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_a_holder_that_comes_back_after_its_lease_leaves_a_trace(place: Place, verb: str) -> None:
    place.board.add("x")
    claim = place.board.claim("x", ttl=100)
    assert claim is not None
    place.advance(130)
    with pytest.raises(dibs.Lost):
        getattr(place.board.attach(claim.name), verb)()
    assert [(e.src, e.reason) for e in traces(place.board)] == [(claim.name, verb)]


@pytest.mark.parametrize("kind", ["task", "lock"])
def test_an_expired_claim_that_no_one_took_is_reported_as_expired(place: Place, kind: str) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=100) if kind == "task" else place.board.acquire("y", ttl=100)
    assert claim is not None
    place.advance(130)
    with pytest.raises(dibs.Lost, match=r"the lease expired 30 s ago: stop") as caught:
        place.board.attach(claim.name).verify()
    assert ("commit finished work with done" in str(caught.value)) == (kind == "task")
    (event,) = (e for e in place.board.log.of(claim.id) if e.verb == "refused")
    assert f"{claim.name} lease expired before its verify" in _event(event)
    assert event.dst == claim.task.name
    if kind == "task":
        place.board.attach(claim.name).done()


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_a_holder_that_slept_past_its_deadline_gets_lost_and_leaves_a_trace(
    place: Place, verb: str
) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="agent 7", ttl=100)
    assert claim is not None
    place.advance(130)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    place.other().force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost):
        getattr(claim, verb)()
    assert [event.reason for event in traces(place.board)] == [verb]


def test_a_repeated_commit_leaves_no_trace(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    claim.done()
    claim.done()
    assert traces(place.board) == []
