"""Tasks that start later: retries after a delay, and tasks that were put off."""

from __future__ import annotations

import pytest

import dibs
from dibs.model.sample import SECOND
from tests.contract.place import Place, Places

pytestmark = pytest.mark.fast("tests.contract")

RETRY = (10.0, 100.0)


@pytest.fixture
def slow(places: Places) -> Place:
    """A board on which failed tasks wait."""
    return places(retry=RETRY, max_attempts=5)


def claimed(place: Place, ident: str = "x") -> dibs.Claim:
    claim = place.board.claim(ident, owner="me")
    assert claim is not None
    return claim


def left(place: Place, task: dibs.Task) -> float:
    """Seconds until a task starts, by the board's clock."""
    return task.not_before - place.board.snapshot().now.fs / SECOND


@pytest.mark.parametrize(("failures", "delay"), [(1, 10), (2, 100), (3, 100)])
def test_each_failure_waits_for_its_delay_and_the_last_one_repeats(
    slow: Place, failures: int, delay: float
) -> None:
    slow.board.add("x", b"what to do", priority=7)
    for count in range(1, failures + 1):
        slow.advance(200)
        claim = claimed(slow)
        task = claim.fail("connection refused")
        assert (task.state, task.attempts, task.fence, task.priority) == ("later", count, count, 7)
    assert 0.9 * delay - 1 <= left(slow, task) <= 1.1 * delay + 1
    assert slow.board.find("x") == (task,)
    assert slow.board.payload(task) == b"what to do"


def test_no_worker_gets_a_later_task_before_its_time_and_any_worker_after(slow: Place) -> None:
    slow.board.add("x", b"what to do")
    claimed(slow).fail()
    assert slow.board.claim() is None
    assert slow.other().claim() is None
    slow.advance(13)
    claim = slow.other().claim(owner="you")
    assert claim is not None
    assert (claim.id, claim.fence, claim.task.attempts) == ("x", 2, 1)
    assert claim.task.not_before == 0
    assert claim.payload() == b"what to do"
    assert claim.done().state == "done"


def test_a_worker_that_claims_again_and_again_finds_a_task_once_it_is_due(slow: Place) -> None:
    slow.board.add("x")
    claimed(slow).fail()
    found = slow.board.wait_for(slow.board.claim, 60)
    assert found is not None
    assert found.id == "x"


def test_claiming_a_later_task_by_its_id_says_when_it_starts(slow: Place) -> None:
    slow.board.add("x")
    task = claimed(slow).fail()
    with pytest.raises(dibs.NotDue, match="starts in") as caught:
        slow.board.claim("x")
    assert isinstance(caught.value, dibs.Held)
    assert caught.value.exit_code == 4
    assert caught.value.task == task
    assert caught.value.remaining == pytest.approx(left(slow, task), abs=1)
    slow.advance(13)
    assert slow.board.claim("x") is not None


def test_a_wait_for_a_later_task_by_its_id_ends_when_it_starts(slow: Place) -> None:
    slow.board.add("x")
    claimed(slow).fail()
    found = slow.board.wait_for(lambda: slow.board.claim("x"), 60)
    assert found is not None
    assert found.fence == 2


def test_a_failure_at_the_limit_still_fails_the_task(places: Places) -> None:
    place = places(retry=RETRY, max_attempts=1)
    place.board.add("x")
    assert claimed(place).fail(retry_in=5).state == "failed"


def test_without_delays_a_failed_task_is_available_at_once(places: Places) -> None:
    place = places(retry=())
    place.board.add("x")
    assert claimed(place).fail().state == "available"
    assert claimed(place).fail(retry_in=7).state == "later"


def test_the_delays_of_a_herd_spread(slow: Place) -> None:
    for number in range(40):
        slow.board.add(f"t{number}")
        slow.board.claim(f"t{number}")
    slow.advance(90)
    for number in range(40):
        task = slow.board.find(f"t{number}")[0]
        slow.board.attach(task.name).fail()
        slow.board.requeue(slow.board.find(f"t{number}")[0].name, keep_attempts=True)
        claimed(slow, f"t{number}").fail()
    starts = {slow.board.find(f"t{number}")[0].not_before for number in range(40)}
    assert max(starts) - min(starts) >= 8, "100 s, a tenth less to a tenth more"


@pytest.mark.parametrize("expiry", ["short", "long"])
def test_the_delay_of_an_expired_claim_counts_from_its_last_beat(
    places: Places, expiry: str
) -> None:
    place = places(retry=(1000.0,) if expiry == "long" else (50.0,), ttl=100)
    place.board.add("x")
    claimed(place)
    place.board.snapshot()
    place.advance(130)
    reaped = place.board.reap().tasks
    assert [task.attempts for task in reaped] == [1]
    if expiry == "short":
        assert reaped[0].state == "available", "the delay was over before the lease"
        return
    assert reaped[0].state == "later"
    assert 769 <= left(place, reaped[0]) <= 971


def test_an_operator_reaps_as_a_janitor_does_and_releases_by_force_at_once(places: Places) -> None:
    place = places(retry=(1000.0,), ttl=100)
    for ident in ("x", "y"):
        place.board.add(ident)
        claimed(place, ident)
    place.board.snapshot()
    place.advance(130)
    place.board.snapshot()
    forced = place.board.force_release(place.board.find("y")[0].name, "stuck")
    assert (forced.state, forced.attempts) == ("available", 0)
    assert place.board.reap_claim(place.board.find("x")[0].name).state == "later"


def test_a_released_task_starts_later_without_an_attempt(place: Place) -> None:
    place.board.add("x")
    task = claimed(place).release("busy", start_in=300)
    assert (task.state, task.attempts) == ("later", 0)
    assert 299 <= left(place, task) <= 302, "a given delay does not vary"
    assert place.board.claim() is None
    place.advance(302)
    assert place.board.claim() is not None


def test_a_lock_cannot_be_released_for_later(place: Place) -> None:
    lock = place.board.acquire("door", owner="me")
    with pytest.raises(dibs.BadName, match="lock"):
        lock.release(start_in=5)
    assert lock.release().state == "free"


@pytest.mark.parametrize("delay", [-1, 86_401, float("nan"), float("inf"), "5", True, 10**30])
def test_a_delay_is_a_number_of_seconds_up_to_a_day(place: Place, delay: float) -> None:
    place.board.add("x")
    claim = claimed(place)
    with pytest.raises(dibs.BadName, match="delay"):
        claim.fail(retry_in=delay)
    with pytest.raises(dibs.BadName, match="delay"):
        claim.release(start_in=delay)
    claim.verify()


def test_a_task_can_be_added_for_later(place: Place) -> None:
    task = place.board.add("x", b"night work", priority=9, start_in=3600)
    assert (task.state, task.fence, task.priority) == ("later", 0, 9)
    assert 3599 <= left(place, task) <= 3602
    with pytest.raises(dibs.Exists):
        place.board.add("x")
    assert place.board.claim() is None
    place.advance(3602)
    claim = place.board.claim()
    assert claim is not None
    assert (claim.fence, claim.payload()) == (1, b"night work")


def test_a_task_can_be_added_for_a_time(place: Place) -> None:
    now = place.board.snapshot().now.fs / SECOND
    task = place.board.add("x", start_at=now + 100_000)
    assert task.not_before == pytest.approx(now + 100_000, abs=1)
    assert place.board.add("y", start_at=now - 5).state == "available"
    with pytest.raises(dibs.BadName, match="one of them"):
        place.board.add("z", start_in=5, start_at=now + 5)
    for at in (-1, 10**12, float("nan"), True, "12:00"):
        with pytest.raises(dibs.BadName, match="start"):
            place.board.add("z", start_at=at)  # type: ignore[arg-type]
    assert place.board.claim() is not None, "y"
    assert place.board.claim() is None, "a new task waits as long as it says"


def test_a_due_task_keeps_its_place_in_the_queue(slow: Place) -> None:
    for ident, priority in (("b", 5), ("c", 9), ("a", 5), ("d", 0)):
        slow.board.add(ident, priority=priority, start_in=10)
    slow.board.add("b2", priority=5)
    slow.board.add("z", priority=6)
    slow.advance(12)
    board = slow.other()
    order = [claim.id for _ in range(6) if (claim := board.claim()) is not None]
    assert order == ["c", "z", "a", "b", "b2", "d"]


def test_a_janitor_makes_due_tasks_available_for_workers_that_only_look_for_that(
    slow: Place,
) -> None:
    slow.board.add("x", b"what to do", priority=8)
    slow.board.add("y", start_in=500)
    claimed(slow).fail()
    reaped = slow.board.reap()
    assert (reaped.tasks, reaped.due, reaped.refused) == ((), (), ())
    assert reaped.next == pytest.approx(10, abs=2)
    slow.advance(13)
    reaped = slow.board.reap()
    assert [(t.id, t.state, t.attempts, t.priority) for t in reaped.due] == [
        ("x", "available", 1, 8)
    ]
    assert reaped.next == pytest.approx(487, abs=3)
    events = [(e.verb, e.dst) for e in slow.board.log.of("x")]
    assert events[-1] == ("due", reaped.due[0].name)
    assert slow.board.reap().due == ()


def test_a_clock_that_was_set_back_holds_no_failed_task(slow: Place) -> None:
    slow.board.add("x")
    slow.board.add("y", start_in=200_000)
    task = claimed(slow).fail()
    later = slow.board.find("y")[0]
    assert task.not_before < later.not_before
    slow.advance(-150_000)
    board = slow.other()
    claim = board.claim()
    assert claim is not None
    assert claim.id == "x", "its delay is never that long"
    assert board.claim() is None, "a new task waits as long as it says"


def test_requeueing_a_later_task_makes_it_available_now(slow: Place) -> None:
    for ident in ("x", "y"):
        slow.board.add(ident)
        claimed(slow, ident).fail()
    x, y = (slow.board.find(ident)[0].name for ident in ("x", "y"))
    assert slow.board.requeueable(x).state == "later"
    task = slow.board.requeue(x, "it is up again", by="root")
    assert (task.state, task.attempts, task.fence) == ("available", 0, 1)
    kept = slow.board.requeue(y, keep_attempts=True)
    assert (kept.state, kept.attempts) == ("available", 1)
    with pytest.raises(dibs.Changed, match="available"):
        slow.board.requeue(x)
    assert slow.board.claim() is not None


def test_a_list_of_ids_may_name_later_tasks(slow: Place) -> None:
    slow.board.add("x")
    task = claimed(slow).fail()
    (line,) = slow.board.resolve("x")
    assert line.name == task.name


def test_a_later_task_can_be_parked_and_the_undo_brings_its_time_back(slow: Place) -> None:
    slow.board.add("x", b"what to do")
    task = claimed(slow).fail()
    parked = slow.board.park(task.name, "not today", by="root")
    assert (parked.state, parked.not_before, parked.attempts) == ("failed", 0, 1)
    assert slow.board.undo(by="root") == task
    assert slow.board.payload(task) == b"what to do"


def test_a_later_task_keeps_its_time_when_its_priority_changes(slow: Place) -> None:
    slow.board.add("x")
    task = claimed(slow).fail()
    urgent = slow.board.prioritize(task.name, 9)
    assert (urgent.state, urgent.priority, urgent.not_before) == ("later", 9, task.not_before)
    assert slow.board.undo() == task


def test_the_undo_of_a_requeue_puts_a_later_task_off_again(slow: Place) -> None:
    slow.board.add("x")
    task = claimed(slow).fail()
    slow.board.requeue(task.name, "now")
    assert slow.board.undo() == task
    slow.board.requeue(task.name, "now")
    claimed(slow)
    with pytest.raises(dibs.Changed, match="claimed"):
        slow.board.undo()


def test_a_later_task_is_a_name_that_stands_in_the_way_of_others(slow: Place) -> None:
    slow.board.add("x")
    claimed(slow).fail()
    with pytest.raises(dibs.Exists):
        slow.board.add("x")
    with pytest.raises(dibs.Changed, match="still on the board"):
        slow.board.forget("x")
    with pytest.raises(dibs.DibsError):
        slow.board.acquire("x")
    assert [task.state for task in slow.board.find("x")] == ["later"]


def test_the_last_failure_of_a_parked_task_can_be_requeued_and_forgotten(slow: Place) -> None:
    slow.board.add("x", start_in=50)
    slow.board.park(slow.board.find("x")[0].name, "no")
    slow.board.requeue(slow.board.find("x")[0].name)
    claimed(slow).done()
    assert slow.board.purge(0) == 1
    slow.board.forget("x")
    assert slow.board.add("x", start_in=5).fence == 2


def test_a_snapshot_counts_later_tasks_and_says_when_the_next_one_starts(slow: Place) -> None:
    slow.board.add("a")
    assert slow.board.snapshot().next_start() is None
    slow.board.add("x", start_in=40)
    slow.board.add("y", start_in=400)
    snapshot = slow.board.snapshot()
    assert (snapshot.counts()["later"], snapshot.counts()["available"]) == (2, 1)
    assert snapshot.next_start() == pytest.approx(40, abs=2)
    rows = {row.id: row for row in slow.board.entries(snapshot)}
    assert rows["x"].state == "later"
    assert rows["x"].starts == pytest.approx(40, abs=2)
    assert (rows["a"].starts, rows["x"].owner) == (None, "")
    slow.advance(50)
    snapshot = slow.board.snapshot()
    assert snapshot.next_start() == 0
    assert {row.id: row.starts for row in slow.board.entries(snapshot)}["x"] == 0
