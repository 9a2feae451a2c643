"""Locks: acquire, renew, release, resume, status."""

from __future__ import annotations

import os
from typing import Any

import pytest

import dibs
from tests.contract.place import Place
from tests.core.tools import in_child

pytestmark = pytest.mark.fast("tests.contract")


def test_the_first_acquire_makes_the_lock(place: Place) -> None:
    assert place.board.status("door") == dibs.LockStatus(None, held=False)
    lease = place.board.acquire("door", owner="me", ttl=50, metadata="deploy")
    assert (lease.task.kind, lease.task.state, lease.fence) == ("lock", "held", 1)
    status = place.board.status("door")
    assert status.task == lease.task
    assert (status.held, status.owner, status.metadata) == (True, "me", "deploy")
    assert (status.host, status.ttl) == (place.board.host.name, 50)
    assert status.remaining == pytest.approx(50, abs=1)
    assert status.age < 1
    assert {event.by for event in place.board.log.of("door")} == {"me"}


def test_the_status_of_an_expired_lock_is_expired(place: Place) -> None:
    place.board.acquire("door", owner="me", ttl=50)
    assert not place.board.status("door").expired
    place.advance(51)
    status = place.board.status("door")
    assert (status.held, status.expired, status.remaining) == (True, True, 0)


def test_a_released_lock_is_free_and_keeps_its_fence(place: Place) -> None:
    lease = place.board.acquire("door")
    assert lease.release().name == ".dibs/free/42d/door.f1"
    assert place.board.status("door").held is False
    assert place.board.acquire("door").fence == 2


def test_acquiring_a_held_lock_names_its_holder(place: Place) -> None:
    lease = place.board.acquire("door", owner="me", metadata="deploy")
    with pytest.raises(dibs.Held) as caught:
        place.board.acquire("door", owner="me")
    held = caught.value
    assert (held.task, held.owner, held.metadata) == (lease.task, "me", "deploy")
    assert held.remaining == pytest.approx(120, abs=1)


def test_acquire_with_lease_renews_the_lock(place: Place) -> None:
    lease = place.board.acquire("door", ttl=100)
    place.advance(60)
    again = place.other().acquire("door", lease=lease.name)
    assert again.task == lease.task
    place.advance(60)
    again.beat()
    with pytest.raises(dibs.Lost):
        place.board.acquire("gate", lease=lease.name)


def test_acquire_with_lease_takes_the_ttl_and_metadata_given_this_time(place: Place) -> None:
    lease = place.board.acquire("door", owner="me", ttl=100, metadata="old")
    other = place.other()
    assert other.acquire("door", lease=lease.name).ttl == 100
    assert place.board.status("door").metadata == "old"
    other.acquire("door", lease=lease.name, ttl=600, metadata="new", owner="me")
    status = place.other().status("door")
    assert (status.ttl, status.metadata, status.owner) == (600, "new", "me")
    assert status.remaining > 500
    with pytest.raises(dibs.BadName, match="leave the owner"):
        other.acquire("door", lease=lease.name, owner="you", ttl=5)
    with pytest.raises(dibs.BadName, match="leave the process"):
        other.acquire("door", lease=lease.name, process=place.board.host.process(os.getpid()))
    assert place.board.status("door")[:5] == status[:5]
    assert place.board.status("door").ttl == 600


def test_the_process_that_holds_a_lock_can_acquire_it_again_with_new_terms(place: Place) -> None:
    process = place.board.host.process(os.getpid())
    place.board.acquire("door", owner="me", ttl=100, process=process)
    place.board.acquire("door", ttl=600, metadata="new", process=process)
    status = place.board.status("door")
    assert (status.ttl, status.metadata) == (600, "new")
    with pytest.raises(dibs.Held):
        place.board.acquire("door", owner="you", process=process)


def test_a_lost_lock_cannot_be_renewed_by_acquire(place: Place) -> None:
    lease = place.board.acquire("door")
    place.board.force_release(lease.name, "stuck")
    with pytest.raises(dibs.Lost):
        place.board.acquire("door", lease=lease.name)
    assert place.board.status("door").held is False


def test_the_process_that_holds_a_lock_can_acquire_it_again(place: Place) -> None:
    process = place.board.host.process(os.getpid())
    assert process is not None
    lease = place.board.acquire("door", process=process)
    assert place.board.acquire("door", process=process).task == lease.task
    with pytest.raises(dibs.Held):
        place.board.acquire("door", process=process._replace(start=process.start + 1))
    with pytest.raises(dibs.Held):
        place.board.acquire("door")


@pytest.mark.parametrize("end", ["available", "claimed", "done", "failed"])
def test_a_lock_cannot_have_the_id_of_a_task(place: Place, end: str) -> None:
    task = place.board.add("x")
    if end == "failed":
        place.board.park(task.name, "no")
    elif end != "available":
        claim = place.board.claim("x")
        assert claim is not None
        if end == "done":
            claim.done()
    before = place.names()

    def acquire() -> str:
        try:
            place.board.acquire("x")
        except dibs.DibsError as error:
            return type(error).__name__
        return "acquired"

    assert in_child(acquire) in ("BadName", "Exists")
    assert place.names() == before


def test_a_lock_has_no_limit_of_attempts(place: Place) -> None:
    for turn in range(1, 9):
        lease = place.board.acquire("door", ttl=10)
        assert lease.fence == turn
        place.advance(20)
        (task,) = place.board.reap().tasks
        assert (task.state, task.attempts) == ("free", 0)


def test_an_expired_lock_can_be_acquired_by_any_owner(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10, owner="me")
    place.advance(20)
    assert place.board.acquire("door", owner="you").fence == 2
    with pytest.raises(dibs.Stop):
        lease.beat()


def test_the_status_of_an_expired_lock_has_nothing_remaining(place: Place) -> None:
    place.board.acquire("door", ttl=10)
    place.advance(20)
    status = place.board.status("door")
    assert (status.held, status.remaining) == (True, 0)
    assert status.age == pytest.approx(20, abs=1)


@pytest.mark.parametrize("by", ["name", "owner"])
@pytest.mark.parametrize("kind", ["task", "lock"])
def test_a_resumed_claim_keeps_its_ttl_and_metadata_unless_new_ones_are_given(
    place: Place, kind: str, by: str
) -> None:
    board = place.board
    board.add("x")
    take = board.claim if kind == "task" else board.acquire
    old = take("x" if kind == "task" else "door", owner="me", ttl=900, metadata="step 7 of 9")
    assert old is not None

    def again(claim: dibs.Claim, **given: Any) -> tuple[dibs.Claim, float, str]:
        other = place.other()
        if by == "owner":
            place.advance(1000)
        name = claim.name if by == "name" else ""
        new = other.resume(claim.id, owner="me", name=name, **given)
        record = place.other().attach(new.name).record
        assert record.ttl == new.ttl
        return new, new.ttl, record.metadata

    new, *kept = again(old)
    assert kept == [900, "step 7 of 9"]
    new, *kept = again(new, ttl=800)
    assert kept == [800, "step 7 of 9"]
    new, *kept = again(new, metadata="step 8")
    assert kept == [800, "step 8"]
    new, *kept = again(new, metadata="")
    assert kept == [800, ""]


def test_resuming_by_owner_alone_is_held_until_the_old_claim_expires(place: Place) -> None:
    place.board.add("x")
    old = place.board.claim("x", owner="me", ttl=50)
    assert old is not None
    with pytest.raises(dibs.Held, match="exact name"):
        place.board.resume("x", owner="me")
    place.advance(60)
    new = place.board.resume("x", owner="me")
    assert new.fence == 2
    with pytest.raises(dibs.Stop):
        old.beat()


def test_resuming_by_owner_alone_works_at_once_if_the_old_process_has_exited(place: Place) -> None:
    place.board.add("x")
    first = place.board.host.process(1)
    assert first is not None
    old = place.board.claim("x", owner="me", process=first._replace(start=first.start + 1))
    assert old is not None
    assert place.board.resume("x", owner="me").fence == 2
    with pytest.raises(dibs.Lost):
        old.done()


def test_another_owners_claim_cannot_be_resumed(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim("x", owner="me") is not None
    with pytest.raises(dibs.Changed, match="has no claim on"):
        place.board.resume("x", owner="you")
    with pytest.raises(dibs.Changed):
        place.board.resume("y", owner="me")


@pytest.mark.parametrize("owner", ["you", "m"])
def test_resuming_by_exact_name_with_another_owner_is_refused(place: Place, owner: str) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="me")
    assert claim is not None
    with pytest.raises(dibs.BadName, match="keeps its owner 'me': leave the owner out"):
        place.board.resume("x", owner=owner, name=claim.name)
    claim.verify()


def test_the_exact_name_is_enough_to_resume_a_claim(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="me & co")
    assert claim is not None
    again = place.other().resume("", name=claim.name)
    assert (again.fence, again.record.owner, again.task.owner) == (2, "me & co", claim.task.owner)


def test_an_owner_resumes_its_only_claim_without_an_id(place: Place) -> None:
    for ident in ("x", "y", "z"):
        place.board.add(ident)
    place.board.claim("x", owner="me", ttl=50)
    place.board.claim("y", owner="you", ttl=50)
    with pytest.raises(dibs.Held, match="exact name"):
        place.board.resume("", owner="me")
    place.advance(60)
    again = place.board.resume("", owner="me")
    assert (again.id, again.fence) == ("x", 2)
    place.board.claim("z", owner="me")
    with pytest.raises(dibs.BadName, match="'me' holds 2 claims here"):
        place.board.resume("", owner="me")
    with pytest.raises(dibs.BadName, match="'us' holds 0 claims here"):
        place.board.resume("", owner="us")


def test_resuming_needs_a_claim_of_the_same_id(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    with pytest.raises(dibs.BadName):
        place.board.resume("y", name=claim.name)
    with pytest.raises(dibs.NotExact):
        place.board.resume("x", name="x")
    claim.verify()
