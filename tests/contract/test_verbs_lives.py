"""The lives of an id: add, purge and forget; no fence is granted twice."""

from __future__ import annotations

import pytest

import dibs
from tests.contract.place import Place, require

pytestmark = pytest.mark.fast("tests.contract")


def run(place: Place, ident: str = "x", times: int = 1) -> int:
    """Claim a task so many times, then finish it; returns its last fence."""
    for _ in range(times - 1):
        claim = place.board.claim(ident)
        assert claim is not None
        claim.release()
    last = place.board.claim(ident)
    assert last is not None
    last.done()
    return last.fence


@pytest.mark.parametrize("payload", [b"", b"\0" * 10, b"x" * 3_000_000])
def test_a_payload_is_opaque(place: Place, payload: bytes) -> None:
    if len(payload) > 700_000:
        require(place, dibs.Capability.LONG_PAYLOADS)
    task = place.board.add("x", payload)
    assert place.board.payload(task, limit=1 << 30) == payload
    assert place.board.payload(task, limit=4) == payload[:4]


@pytest.mark.parametrize("ident", ["", "x" * 300, "\ud800", "." * 41])
def test_an_id_that_cannot_be_spelled_is_refused(place: Place, ident: str) -> None:
    with pytest.raises(dibs.BadName):
        place.board.add(ident)
    with pytest.raises(dibs.BadName):
        place.board.claim(ident)
    with pytest.raises(dibs.BadName):
        place.board.acquire(ident)
    with pytest.raises(dibs.BadName):
        place.board.find(ident)
    with pytest.raises(dibs.BadName):
        place.board.status(ident)
    with pytest.raises(dibs.BadName):
        place.board.forget(ident)


def test_adding_the_name_of_a_lock_is_refused(place: Place) -> None:
    place.board.acquire("door")
    with pytest.raises(dibs.Exists):
        place.board.add("door")


def test_a_purge_removes_only_done_tasks(place: Place) -> None:
    for ident in ("a", "b", "c"):
        place.board.add(ident)
    run(place, "a")
    place.board.park("b.available", "no")
    assert place.board.purge(0) == 1
    assert place.board.find("a") == ()
    assert {task.id for task in place.board.snapshot().tasks.values()} == {"b", "c"}


def test_a_purge_can_spare_recently_done_tasks(place: Place) -> None:
    place.board.add("old")
    run(place, "old")
    place.advance(100)
    place.board.add("new")
    run(place, "new")
    assert place.board.purge(older_than=50) == 1
    assert place.board.find("old") == ()
    assert len(place.board.find("new")) == 1


def test_a_purged_id_is_still_taken(place: Place) -> None:
    place.board.add("x")
    run(place)
    place.board.purge(0)
    with pytest.raises(dibs.Exists):
        place.board.add("x")


def test_an_id_that_is_forgotten_and_added_again_gets_higher_fences(place: Place) -> None:
    place.board.add("x")
    last = run(place, times=3)
    assert last == 3
    place.board.purge(0)
    place.board.forget("x")
    task = place.board.add("x", b"again")
    assert task.fence > last
    claim = place.board.claim("x")
    assert claim is not None
    assert claim.fence > task.fence


def test_fences_only_grow_over_many_lives(place: Place) -> None:
    last = 0
    for _ in range(4):
        task = place.board.add("x")
        assert task.fence >= last
        fence = run(place, times=2)
        assert fence > last
        last = fence
        place.board.purge(0)
        place.board.forget("x")


def test_what_is_still_on_the_board_cannot_be_forgotten(place: Place) -> None:
    place.board.add("x")
    with pytest.raises(dibs.Changed) as caught:
        place.board.forget("x")
    assert [task.name for task in caught.value.now] == ["x.available"]
    run(place)
    with pytest.raises(dibs.Changed):
        place.board.forget("x")


def test_what_was_never_added_cannot_be_forgotten(place: Place) -> None:
    with pytest.raises(dibs.UnknownId):
        place.board.forget("x")
