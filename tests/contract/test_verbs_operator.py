"""The operator's verbs: each acts on one exact name, or on nothing."""

from __future__ import annotations

import pytest

import dibs
from dibs.cli.stats import gather
from tests.contract.place import Place, Places

pytestmark = pytest.mark.fast("tests.contract")

STRANGE = ["x", "", "x.f1", "notes.txt", "../x.claimed", "a\0b.claimed", "\ud800.available"]


def claimed(place: Place, ident: str = "x", owner: str = "me") -> dibs.Claim:
    """A claim on a new task."""
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner=owner)
    assert claim is not None
    return claim


@pytest.mark.parametrize("name", STRANGE)
def test_only_an_exact_name_is_accepted(place: Place, name: str) -> None:
    claimed(place)
    before = place.names()
    with pytest.raises(dibs.NotExact):
        place.board.force_release(name, "why")
    with pytest.raises(dibs.NotExact):
        place.board.park(name, "why")
    with pytest.raises(dibs.NotExact):
        place.board.requeue(name)
    with pytest.raises(dibs.NotExact):
        place.board.prioritize(name, 9)
    assert place.names() == before


def test_force_release_of_an_old_claim_changes_nothing_and_reports_what_is_there(
    place: Place,
) -> None:
    old = claimed(place)
    old.release()
    new = place.board.claim("x", owner="you")
    assert new is not None
    before = place.names()
    with pytest.raises(dibs.Changed) as caught:
        place.board.force_release(old.name, "stuck")
    assert caught.value.name == old.name
    assert [task.name for task in caught.value.now] == [new.task.name]
    assert caught.value.exit_code == 3
    assert new.task.name in str(caught.value)
    assert place.names() == before


def test_force_release_frees_a_lock(place: Place) -> None:
    lease = place.board.acquire("door")
    assert place.board.force_release(lease.name, "stuck").state == "free"
    with pytest.raises(dibs.Lost):
        lease.beat()


def test_force_release_refuses_a_task_that_no_one_holds(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.Changed, match="available"):
        place.board.force_release(task.name, "why")


def test_a_lock_cannot_be_parked(place: Place) -> None:
    lease = place.board.acquire("door")
    with pytest.raises(dibs.DibsError):
        place.board.park(lease.task.name, "why")
    with pytest.raises(dibs.DibsError):
        place.board.park(lease.release().name, "why")
    assert place.board.status("door").held is False


def test_requeue_makes_a_failed_task_available_with_its_fence(places: Places) -> None:
    place = places(max_attempts=1)
    failed = claimed(place).fail()
    assert failed.state == "failed"
    task = place.board.requeue(failed.name, "fixed the host")
    assert (task.name, task.attempts) == ("x.f1.available", 0)
    again = place.board.claim("x")
    assert again is not None
    assert again.fence == 2


def test_requeue_can_keep_the_attempts(places: Places) -> None:
    place = places(max_attempts=1)
    failed = claimed(place).fail()
    assert place.board.requeue(failed.stem, keep_attempts=True).name == "x.f1a1.available"


def test_requeue_makes_a_done_task_available_again(place: Place) -> None:
    done = claimed(place).done()
    assert place.board.requeue(done.name).name == "x.f1.available"
    with pytest.raises(dibs.Changed):
        place.board.requeue(done.name)


def test_prioritize_moves_an_available_task_within_the_queue(place: Place) -> None:
    place.board.add("a")
    low = place.board.add("b")
    task = place.board.prioritize(low.name, 9)
    assert (task.name, task.priority) == ("b.f0p9.available", 9)
    assert place.board.prioritize(task.name, 9) == task
    claim = place.board.claim()
    assert claim is not None
    assert claim.id == "b"
    with pytest.raises(dibs.Changed):
        place.board.prioritize(task.name, 1)


@pytest.mark.parametrize("priority", [-1, 10, 100, True, 3.0])
def test_a_priority_is_a_whole_number_from_0_to_9(place: Place, priority: int) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.BadName):
        place.board.prioritize(task.name, priority)
    with pytest.raises(dibs.BadName):
        place.board.add("y", priority=priority)
    assert place.names() == ["x.available"]


def ages(place: Place) -> list[int]:
    """The age of `x` in hundreds of seconds, as rows, a single row and the figures show it."""
    board = place.other()
    (row,) = [row for row in board.entries() if row.id == "x"]
    (single,) = board.entries_of(board.find("x"))
    shown = [row.age or 0, single.age or 0, gather(board).values["oldest"]]
    return [round(age / 100) for age in shown]


def test_a_new_priority_does_not_reset_how_long_a_task_has_waited(place: Place) -> None:
    board = place.board
    name = board.add("x").name
    place.advance(100)
    name = board.prioritize(name, 7).name
    place.advance(100)
    assert ages(place) == [2, 2, 2]
    board.undo("x")
    place.advance(100)
    assert ages(place) == [3, 3, 3]
    board.prioritize(board.prioritize("x.available", 6).name, 5)
    place.advance(100)
    assert ages(place) == [4, 4, 4]


def test_a_requeue_starts_the_wait_again_even_under_a_name_that_was_there_before(
    place: Place,
) -> None:
    board = place.board
    name = board.add("x").name
    place.advance(100)
    name = board.prioritize(name, 7).name
    parked = board.park(name, "why")
    place.advance(100)
    assert board.requeue(parked.name).name == name
    place.advance(10)
    assert ages(place) == [0, 0, 0]
