"""The operator's verbs: each on exactly the name that was on the screen, or on nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from tests.core.tools import Place

STRANGE = ["x", "", "x.f1", "notes.txt", "../x.claimed", "a\0b.claimed", "\ud800.available"]


def claimed(place: Place, ident: str = "x", owner: str = "me") -> dibs.Claim:
    """A task on the board and a claim on it."""
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner=owner)
    assert claim is not None
    return claim


@pytest.mark.parametrize("name", STRANGE)
def test_only_an_exact_name_will_do(place: Place, name: str) -> None:
    claimed(place)
    before = place.names()
    with pytest.raises(dibs.NotExact):
        place.board.force_release(name, "why")
    with pytest.raises(dibs.NotExact):
        place.board.park(name, "why")
    with pytest.raises(dibs.NotExact):
        place.board.requeue(name)
    with pytest.raises(dibs.NotExact):
        place.board.reprioritise(name, 9)
    assert place.names() == before


def test_force_release_takes_exactly_that_claim_and_counts_no_attempt(place: Place) -> None:
    claim = claimed(place)
    task = place.board.force_release(claim.name, "stuck", by="root@desk")
    assert task.name == "x.f1.available"
    assert place.records() == []
    event = place.board.history("x")[-1]
    assert (event.verb, event.by, event.reason) == ("force-release", "root@desk", "stuck")
    with pytest.raises(dibs.Lost):
        claim.done()


def test_force_release_of_a_claim_that_changed_touches_nothing_and_tells_what_is_there(
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


def test_force_release_leaves_what_nobody_holds(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.Changed, match="available"):
        place.board.force_release(task.name, "why")


def test_an_act_between_the_look_and_the_rename_loses_to_the_worker(place: Place) -> None:
    claim = claimed(place)

    def finish(path: str) -> None:
        del place.port.before["rename"]
        claim.done()

    place.port.before["rename"] = finish
    with pytest.raises(dibs.Changed) as caught:
        place.board.force_release(claim.name, "stuck")
    assert [task.state for task in caught.value.now] == ["done"]


@pytest.mark.parametrize("state", ["available", "claimed"])
def test_parking_sets_a_task_apart_with_a_nonce_of_its_own(place: Place, state: str) -> None:
    claim = claimed(place)
    name = claim.task.name if state == "claimed" else claim.release().name
    task = place.board.park(name, "flaky", by="root")
    assert task.state == "failed"
    assert task.claim != claim.task.claim
    assert (task.fence, task.attempts, task.owner) == (1, 0, "root")
    assert place.names() == [task.name]
    assert (place.path / task.name).read_bytes() == b"what to do"
    assert place.board.claim() is None


def test_a_lock_cannot_be_parked(place: Place) -> None:
    lease = place.board.acquire("door")
    with pytest.raises(dibs.DibsError):
        place.board.park(lease.task.name, "why")
    with pytest.raises(dibs.DibsError):
        place.board.park(lease.release().name, "why")
    assert place.board.status("door").held is False


def test_requeue_lets_a_parked_task_wait_again_with_its_fence(scratch: Path) -> None:
    place = Place(scratch, max_attempts=1)
    failed = claimed(place).fail()
    assert failed.state == "failed"
    task = place.board.requeue(failed.name, "fixed the host")
    assert (task.name, task.attempts) == ("x.f1.available", 0)
    again = place.board.claim("x")
    assert again is not None
    assert again.fence == 2


def test_requeue_can_keep_the_attempts(scratch: Path) -> None:
    place = Place(scratch, max_attempts=1)
    failed = claimed(place).fail()
    assert place.board.requeue(failed.stem, keep_attempts=True).name == "x.f1a1.available"


def test_requeue_of_a_finished_task_runs_it_again(place: Place) -> None:
    done = claimed(place).done()
    assert place.board.requeue(done.name).name == "x.f1.available"
    with pytest.raises(dibs.Changed):
        place.board.requeue(done.name)


@pytest.mark.parametrize("held", [False, True])
def test_requeue_refuses_to_double_an_id(place: Place, held: bool) -> None:
    done = claimed(place).done()
    (place.path / "x.available").write_bytes(b"offered by a shell")
    if held:
        assert place.board.claim("x") is not None
    before = place.names()
    with pytest.raises(dibs.Changed) as caught:
        place.board.requeue(done.name)
    assert len(caught.value.now) == 1
    assert place.names() == before


def test_requeue_never_replaces_a_task_offered_meanwhile(place: Place) -> None:
    done = claimed(place).done()

    def offer(path: str) -> None:
        (place.path / "x.f1.available").write_bytes(b"offered meanwhile")

    place.port.before["rename"] = offer
    with pytest.raises(dibs.Refused):
        place.board.requeue(done.name)
    assert (place.path / "x.f1.available").read_bytes() == b"offered meanwhile"
    assert (place.path / done.name).read_bytes() == b"what to do"


def test_reprioritise_moves_a_waiting_task_within_the_queue(place: Place) -> None:
    place.board.add("a")
    low = place.board.add("b")
    task = place.board.reprioritise(low.name, 9)
    assert (task.name, task.priority) == ("b.f0p9.available", 9)
    assert place.board.reprioritise(task.name, 9) == task
    claim = place.board.claim()
    assert claim is not None
    assert claim.id == "b"
    with pytest.raises(dibs.Changed):
        place.board.reprioritise(task.name, 1)


@pytest.mark.parametrize("priority", [-1, 10, 100, True, 3.0])
def test_a_priority_is_a_whole_number_from_0_to_9(place: Place, priority: int) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.BadName):
        place.board.reprioritise(task.name, priority)
    with pytest.raises(dibs.BadName):
        place.board.add("y", priority=priority)
    assert place.names() == ["x.available"]


def plain(place: Place, lock: str | None = "1700000000 web-3\n") -> dibs.Facts:
    """A claim by a worker that knows nothing but `mv`, as a reader sees it."""
    (place.path / "task-7.claimed").write_bytes(b"p")
    if lock is not None:
        (place.path / "task-7.lock").write_text(lock)
    task = place.board.find("task-7")[0]
    facts = place.board.facts(task)
    assert facts is not None
    return facts


@pytest.mark.parametrize("lock", [None, "", "1700000000 web-3\n", "\x01" * 4096, "x" * 100_000])
def test_a_plain_claim_is_released_to_the_name_that_plain_workers_take(
    place: Place, lock: str | None
) -> None:
    seen = plain(place, lock)
    task = place.board.force_release(seen.sight, "stuck")
    assert task.name == "task-7.available"
    assert place.names() == ["task-7.available"]
    assert place.records() == []


def test_a_plain_claim_is_parked_by_its_sight(place: Place) -> None:
    task = place.board.park(plain(place).sight, "stuck")
    assert task.state == "failed"
    assert place.names() == [task.name]
    assert (place.path / task.name).read_bytes() == b"p"


def test_a_plain_claim_that_was_taken_anew_is_left_alone(place: Place) -> None:
    sight = plain(place).sight
    (place.path / "task-7.claimed").rename(place.path / "task-7.available")
    place.world.step(0)
    (place.path / "task-7.available").rename(place.path / "task-7.claimed")
    before = place.names()
    for act in (place.board.force_release, place.board.park):
        with pytest.raises(dibs.Changed):
            act(sight, "stuck")
    assert place.names() == before


def test_a_plain_claim_that_beats_meanwhile_is_left_to_its_worker(place: Place) -> None:
    sight = plain(place).sight

    def beat(path: str) -> None:
        if path == "task-7.claimed":
            place.world.step(0)
            (place.path / "task-7.lock").write_text("1700000001 web-3\n")

    place.port.before["rename"] = beat
    with pytest.raises(dibs.Changed):
        place.board.force_release(sight, "stuck")
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_plain_claim_whose_lock_vanished_meanwhile_is_for_a_person_to_decide(
    place: Place,
) -> None:
    sight = plain(place).sight

    def finish(path: str) -> None:
        if path == "task-7.claimed":
            (place.path / "task-7.lock").unlink()

    place.port.before["rename"] = finish
    place.board.force_release(sight, "stuck")
    (task,) = place.board.find("task-7")
    assert task.state == "failed"
    assert "lock" in place.board.history("task-7")[0].reason


@pytest.mark.parametrize(
    "sight", ["../x.claimed/1", "done/../../x.claimed/1", "x.claimed/", "a\0b.claimed/1"]
)
def test_a_sight_that_leaves_the_board_is_no_exact_name(place: Place, sight: str) -> None:
    outside = place.path.parent / "x.claimed"
    outside.touch()
    sight = sight.replace("/1", f"/{outside.stat().st_ctime_ns:x}")
    with pytest.raises(dibs.NotExact):
        place.board.force_release(sight, "why")
    assert outside.exists()


@pytest.mark.parametrize("reason", ["", " ", "\t"])
def test_a_force_release_needs_a_reason_that_says_something(place: Place, reason: str) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    with pytest.raises(dibs.BadName, match="needs a reason"):
        place.board.force_release(claim.name, reason)
    claim.verify()
    assert [event.verb for event in place.board.history("x")] == ["add", "claim"]


def test_a_take_can_neither_be_resumed_nor_committed_by_its_name(place: Place) -> None:
    name = "x.f0.dibs-0123456789"
    (place.path / f"{name}.claimed").write_bytes(b"p")
    with pytest.raises(dibs.DibsError):
        place.board.resume("x", name=name)
    with pytest.raises(dibs.DibsError):
        place.board.attach(name).done()
    with pytest.raises(dibs.Changed):
        place.board.force_release(name, "why")
    assert place.names() == [f"{name}.claimed"]
