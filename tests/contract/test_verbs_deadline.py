"""A worker's deadline: until when it may trust its claim."""

from __future__ import annotations

import pytest

import dibs
from tests.contract.place import Place


@pytest.fixture
def claim(place: Place) -> dibs.Claim:
    """A claim with a ttl of 100 seconds, so that its owner stops at 80."""
    place.board.add("x", b"p")
    taken = place.board.claim(ttl=100, owner="me")
    assert taken is not None
    return taken


def test_a_beat_in_time_moves_the_deadline(place: Place, claim: dibs.Claim) -> None:
    for _ in range(4):
        place.advance(70)
        claim.beat()
        claim.verify()


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_past_its_deadline_a_claim_is_uncertain_whatever_the_board_says(
    place: Place, claim: dibs.Claim, verb: str
) -> None:
    place.advance(81)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    assert place.names() == [claim.task.name]


def test_another_process_can_beat_until_the_ttl_and_not_after(
    place: Place, claim: dibs.Claim
) -> None:
    other = place.other()
    place.advance(70)
    other.attach(claim.name).beat()
    place.advance(101)
    for verb in ("beat", "verify"):
        with pytest.raises(dibs.Lost, match="expired") as caught:
            getattr(other.attach(claim.name), verb)()
        assert caught.value.now == (claim.task,)


def test_a_late_commit_counts_while_the_claim_is_still_its_own(
    place: Place, claim: dibs.Claim
) -> None:
    place.advance(500)
    assert claim.done().state == "done"


def test_the_claim_of_a_dead_process_is_reaped_before_its_ttl(place: Place) -> None:
    place.board.add("x")
    alive = place.board.host.process(1)
    assert alive is not None
    gone = alive._replace(start=alive.start + 1)  # the pid was reused
    assert place.board.claim("x", process=gone) is not None
    reaped = place.other().reap()
    assert [(task.id, task.attempts) for task in reaped.tasks] == [("x", 1)]


@pytest.mark.parametrize("field", ["name", "boot", "pidns"])
def test_a_process_of_another_host_boot_or_namespace_is_never_judged_dead(
    place: Place, field: str
) -> None:
    elsewhere = dibs.this_host()._replace(**{field: "elsewhere"})
    board = place.other(elsewhere)
    board.add("x")
    process = dibs.this_host().process(1)
    assert process is not None
    process = process._replace(host=elsewhere.name, boot=elsewhere.boot, pidns=elsewhere.pidns)
    assert board.claim("x", process=process._replace(start=process.start + 1)) is not None
    assert place.board.reap().tasks == ()


def test_a_living_process_keeps_its_claim(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim("x", process=place.board.host.process(1)) is not None
    assert place.other().reap().tasks == ()
