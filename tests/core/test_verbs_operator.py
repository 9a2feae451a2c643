"""The operator's verbs: each acts on exactly the name on the screen, or on nothing."""

from __future__ import annotations

import pytest

import dibs
from tests.contract.test_verbs_operator import claimed
from tests.core.tools import Place


def test_force_release_takes_exactly_that_claim_and_counts_no_attempt(place: Place) -> None:
    claim = claimed(place)
    task = place.board.force_release(claim.name, "stuck", by="root@desk")
    assert task.name == "x.f1.available"
    assert place.records() == []
    event = place.board.log.of("x")[-1]
    assert (event.verb, event.by, event.reason) == ("force-release", "root@desk", "stuck")
    with pytest.raises(dibs.Lost):
        claim.done()


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
def test_parking_gives_a_task_a_new_nonce(place: Place, state: str) -> None:
    claim = claimed(place)
    name = claim.task.name if state == "claimed" else claim.release().name
    task = place.board.park(name, "flaky", by="root")
    assert task.state == "failed"
    assert task.claim != claim.task.claim
    assert (task.fence, task.attempts, task.owner) == (1, 0, "root")
    assert place.names() == [task.name]
    assert (place.path / task.name).read_bytes() == b"what to do"
    assert place.board.claim() is None


@pytest.mark.parametrize("held", [False, True])
def test_requeue_refuses_to_double_an_id(place: Place, held: bool) -> None:
    done = claimed(place).done()
    (place.path / "x.available").write_bytes(b"added by a shell")
    if held:
        assert place.board.claim("x") is not None
    before = place.names()
    with pytest.raises(dibs.Changed) as caught:
        place.board.requeue(done.name)
    assert len(caught.value.now) == 1
    assert place.names() == before


def test_requeue_never_replaces_a_task_added_meanwhile(place: Place) -> None:
    done = claimed(place).done()

    def add_task(path: str) -> None:
        (place.path / "x.f1.available").write_bytes(b"added meanwhile")

    place.port.before["rename"] = add_task
    with pytest.raises(dibs.Refused):
        place.board.requeue(done.name)
    assert (place.path / "x.f1.available").read_bytes() == b"added meanwhile"
    assert (place.path / done.name).read_bytes() == b"what to do"


def plain(place: Place, lock: str | None = "1700000000 web-3\n") -> dibs.Holder:
    """A claim of a worker that uses only `mv`, as a reader sees it."""
    (place.path / "task-7.claimed").write_bytes(b"p")
    if lock is not None:
        (place.path / "task-7.lock").write_text(lock)
    task = place.board.find("task-7")[0]
    holder = place.board.holder(task)
    assert holder is not None
    return holder


@pytest.mark.parametrize("lock", [None, "", "1700000000 web-3\n", "\x01" * 4096, "x" * 100_000])
def test_a_plain_claim_is_released_to_the_name_that_shell_workers_claim(
    place: Place, lock: str | None
) -> None:
    seen = plain(place, lock)
    task = place.board.force_release(seen.act_name, "stuck")
    assert task.name == "task-7.available"
    assert place.names() == ["task-7.available"]
    assert place.records() == []


def test_a_plain_claim_is_parked_by_its_act_name(place: Place) -> None:
    task = place.board.park(plain(place).act_name, "stuck")
    assert task.state == "failed"
    assert place.names() == [task.name]
    assert (place.path / task.name).read_bytes() == b"p"


def test_a_plain_claim_that_was_claimed_again_is_left_alone(place: Place) -> None:
    sight = plain(place).act_name
    (place.path / "task-7.claimed").rename(place.path / "task-7.available")
    place.world.step(0)
    (place.path / "task-7.available").rename(place.path / "task-7.claimed")
    before = place.names()
    for act in (place.board.force_release, place.board.park):
        with pytest.raises(dibs.Changed):
            act(sight, "stuck")
    assert place.names() == before


def test_a_plain_claim_that_beats_meanwhile_stays_with_its_worker(place: Place) -> None:
    sight = plain(place).act_name

    def beat(path: str) -> None:
        if path == "task-7.claimed":
            place.world.step(0)
            (place.path / "task-7.lock").write_text("1700000001 web-3\n")

    place.port.before["rename"] = beat
    with pytest.raises(dibs.Changed):
        place.board.force_release(sight, "stuck")
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_plain_claim_whose_lock_vanished_meanwhile_needs_a_person(
    place: Place,
) -> None:
    sight = plain(place).act_name

    def finish(path: str) -> None:
        if path == "task-7.claimed":
            (place.path / "task-7.lock").unlink()

    place.port.before["rename"] = finish
    place.board.force_release(sight, "stuck")
    (task,) = place.board.find("task-7")
    assert task.state == "failed"
    assert "lock" in place.board.log.of("task-7")[0].reason


@pytest.mark.parametrize(
    "sight", ["../x.claimed/1", "done/../../x.claimed/1", "x.claimed/", "a\0b.claimed/1"]
)
def test_an_act_name_outside_of_the_board_is_no_exact_name(place: Place, sight: str) -> None:
    outside = place.path.parent / "x.claimed"
    outside.touch()
    sight = sight.replace("/1", f"/{outside.stat().st_ctime_ns:x}")
    with pytest.raises(dibs.NotExact):
        place.board.force_release(sight, "why")
    assert outside.exists()


@pytest.mark.parametrize("reason", ["", " ", "\t"])
def test_a_force_release_needs_a_reason_that_is_not_blank(place: Place, reason: str) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    with pytest.raises(dibs.BadName, match="needs a reason"):
        place.board.force_release(claim.name, reason)
    claim.verify()
    assert [event.verb for event in place.board.log.of("x")] == ["add", "claim"]


def test_a_takeover_can_neither_be_resumed_nor_committed_by_its_name(place: Place) -> None:
    name = "x.f0.dibs-0123456789"
    (place.path / f"{name}.claimed").write_bytes(b"p")
    with pytest.raises(dibs.DibsError):
        place.board.resume("x", name=name)
    with pytest.raises(dibs.DibsError):
        place.board.attach(name).done()
    with pytest.raises(dibs.Changed):
        place.board.force_release(name, "why")
    assert place.names() == [f"{name}.claimed"]
