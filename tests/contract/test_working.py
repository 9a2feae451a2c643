"""Blocks that keep a claim: `working`, `work` and `lock`, in threads and in asyncio."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import dibs
from tests.contract.place import Places
from tests.contract.ways import WAYS, Way
from tests.patience import PATIENCE

# A block that is expected to raise has the body of the block inside.
# ruff: noqa: PT012
ENDS = {"done": "done", "fail": "available", "release": "available", "ask": "asked"}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, places: Places) -> Iterator[Way]:
    """A board in real time, with the tasks a and b."""
    found = WAYS[request.param](places().board.location.where)
    for ident in ("a", "b"):
        found.plain.add(ident, b"what to do")
    yield found
    found.close()


def now(way: Way, ident: str = "a") -> dibs.Task:
    return way.plain.find(ident)[0]


def last(way: Way, ident: str = "a") -> dibs.Event:
    return way.plain.log.of(ident)[-1]


def beating() -> list[str]:
    """The threads that keep a claim now."""
    return [t.name for t in threading.enumerate() if t.name.startswith("dibs-beats-")]


def lose(way: Way, claim: dibs.KeptClaim) -> None:
    """Take the claim away, as an operator does."""
    way.plain.force_release(claim.name, "stuck")


def test_leaving_the_body_is_done_and_no_thread_is_left(way: Way) -> None:
    with way.working(owner="web-3") as claim:
        assert (claim.id, claim.task.state, claim.record.owner) == ("a", "claimed", "web-3")
        assert claim.payload() == b"what to do"
        assert (claim.path is not None) == bool(way.plain.location.folder)
        assert beating() == ["dibs-beats-a"]
    assert (now(way).state, beating()) == ("done", [])


def test_a_body_never_gets_none(way: Way) -> None:
    for _ in range(2):
        with way.working():
            pass
    with pytest.raises(dibs.NothingToClaim, match="no task is available"), way.working():
        raise AssertionError("the body ran")
    with pytest.raises(dibs.Changed), way.working("a"):
        raise AssertionError("the body ran")


def test_a_task_that_is_claimed_already_is_held(way: Way) -> None:
    with (
        way.working("a", owner="one"),
        pytest.raises(dibs.Held, match="one"),
        way.working("a", wait=0.3),
    ):
        raise AssertionError("the body ran")
    assert now(way).state == "done"


def test_an_exception_is_a_failed_attempt_with_its_last_line_and_goes_on(way: Way) -> None:
    with pytest.raises(ValueError, match="line one"), way.working():
        raise ValueError("line one\nno such branch\x1b[2J\n")
    assert (now(way).attempts, now(way).state) == (1, "available")
    assert last(way).reason == "ValueError: no such branch\\x1b[2J"
    assert beating() == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_releases(way: Way, kind: type[BaseException]) -> None:
    with pytest.raises(kind), way.working():
        raise kind
    assert (now(way).state, now(way).attempts) == ("available", 0)
    assert last(way).verb == "release"


@pytest.mark.parametrize("verb", ENDS)
def test_what_ended_inside_is_left_alone(way: Way, verb: str) -> None:
    with way.working() as claim:
        given = ("which branch?",) if verb == "ask" else ()
        ended = {"done": claim.done, "fail": claim.fail, "release": claim.release}
        ended.get(verb, claim.ask)(*given)
        with pytest.raises(dibs.Lost, match="has ended"):
            claim.check()
        assert not claim.lost.is_set()
    assert now(way).state == ENDS[verb]
    assert now(way).attempts == (verb == "fail")
    assert "refused" not in [event.verb for event in way.plain.log.of("a")]


def test_an_exception_after_the_end_changes_nothing_more(way: Way) -> None:
    with pytest.raises(ValueError, match="x"), way.working() as claim:
        claim.done(b"42")
        raise ValueError("x")
    assert now(way).state == "done"
    assert way.plain.result(now(way)) == b"42"


def test_a_result_that_is_too_long_leaves_the_claim_as_it_was(way: Way) -> None:
    with way.working() as claim:
        with pytest.raises(dibs.BadName):
            claim.done(b"x" * 70_000)
        claim.check()
        assert beating()
    assert now(way).state == "done"


def test_a_lost_claim_is_noticed_at_once_and_never_committed(way: Way) -> None:
    with pytest.raises(dibs.Lost), way.working() as claim:
        lose(way, claim)
        with pytest.raises(dibs.Lost):
            claim.check()
        assert claim.lost.is_set()
        with pytest.raises(dibs.Lost):
            claim.done()
    assert (now(way).state, beating()) == ("available", [])


def test_a_heartbeat_sets_the_event_of_a_lost_claim(way: Way) -> None:
    with pytest.raises(dibs.Lost), way.working(ttl=1) as claim:
        lose(way, claim)
        claim.lost.wait()
    assert now(way).state == "available"


def test_leaving_after_a_loss_that_no_one_noticed_raises_lost(way: Way) -> None:
    with pytest.raises(dibs.Lost), way.working() as claim:
        lose(way, claim)
        with way.plain.working("a", owner="you"):
            pass
    assert now(way).fence == 2  # that of the other worker


def test_the_lease_is_kept_for_longer_than_its_ttl(way: Way) -> None:
    with way.working(ttl=1) as claim:
        first = way.plain.holder(claim.task)
        end = threading.Event()
        for _ in range(6):
            end.wait(0.5)
            claim.check()
            assert way.plain.reap().tasks == ()
        assert first is not None
    assert now(way).state == "done"


def test_notes_are_written_while_the_body_works_and_before_it_ends(way: Way) -> None:
    with way.working() as claim:
        claim.note("step 1")
        claim.note("step 2")
        with pytest.raises(dibs.BadName):
            claim.note("x" * 1000)
    assert "step 2" in last(way).note


def test_a_lock_is_exclusive_kept_and_released(way: Way) -> None:
    with way.lock("nightly", owner="one", wait=5) as lock:
        assert lock.fence == 1
        with pytest.raises(dibs.Held), way.lock("nightly", wait=0.3):
            raise AssertionError("the body ran")
        lock.check()
    assert way.plain.status("nightly").held is False
    with pytest.raises(ValueError, match="x"), way.lock("nightly"):
        raise ValueError("x")
    assert way.plain.status("nightly").held is False


def test_a_lost_lock_is_an_error_at_the_end(way: Way) -> None:
    with pytest.raises(dibs.Lost), way.lock("nightly") as lock:
        lose(way, lock)


def test_waiting_for_a_lock_gets_it_when_it_is_free(way: Way) -> None:
    held = way.plain.acquire("nightly", owner="one")
    threading.Timer(0.3, held.release).start()
    with way.lock("nightly", wait=PATIENCE) as lock:
        assert lock.fence == 2
    threading.Timer(0.3, way.plain.acquire("nightly").release).start()
    way.plain.acquire("nightly", wait=PATIENCE).release()


def test_waiting_for_a_task_gets_one_that_is_added(way: Way) -> None:
    for _ in range(2):
        with way.working():
            pass
    threading.Timer(0.3, way.plain.add, ("c",)).start()
    with way.working(wait=PATIENCE) as claim:
        assert claim.id == "c"


def test_a_loop_does_one_task_after_another(way: Way) -> None:
    assert [claim.id for claim in way.loop(owner="web-3")] == ["a", "b"]
    assert [now(way, ident).state for ident in "ab"] == ["done", "done"]
    assert beating() == []


def test_a_loop_honours_what_its_body_ended(way: Way) -> None:
    for claim in way.loop():
        claim.ask("which?") if claim.id == "a" else claim.release(start_in=60)
    assert [now(way, ident).state for ident in "ab"] == ["asked", "later"]


def test_leaving_a_loop_early_never_commits(way: Way) -> None:
    loop = way.loop()
    for _ in loop:
        break
    close = getattr(loop, "close", None)
    assert close is not None
    close()
    assert (now(way).state, now(way).attempts) == ("available", 1)
    assert "left" in last(way).reason
    assert "`with claim:`" in last(way).reason, "what records the error of the next one"
    assert beating() == []


def test_a_claim_of_a_loop_is_a_body_of_its_own(way: Way) -> None:
    with pytest.raises(ValueError, match="boom"):
        for claim in way.loop():
            with claim:
                raise ValueError("boom")
    assert last(way).reason == "ValueError: boom"


def test_a_pool_works_on_several_tasks_at_a_time(way: Way) -> None:
    together = threading.Barrier(2)
    assert way.pool(lambda claim: together.wait(PATIENCE), concurrency=2) == 2
    assert [now(way, ident).state for ident in "ab"] == ["done", "done"]


def test_a_failing_handler_fails_its_task_and_the_pool_goes_on(way: Way) -> None:
    def handler(claim: dibs.KeptClaim) -> None:
        if claim.id == "a":
            raise ValueError("boom")

    assert way.pool(handler, breaker=0) == 1
    assert (now(way).state, now(way).attempts) == ("failed", way.plain.settings.max_attempts)
    assert now(way, "b").state == "done"
    assert last(way).reason == "ValueError: boom"


def test_a_lost_claim_ends_a_pool_after_the_work_in_hand(way: Way) -> None:
    both, taken = threading.Event(), threading.Event()

    def handler(claim: dibs.KeptClaim) -> None:
        if claim.id == "b":
            both.set()
        if (claim.id, claim.fence) == ("a", 1):
            both.wait(PATIENCE)
            lose(way, claim)
            taken.set()
        taken.wait(PATIENCE)

    with pytest.raises(dibs.Lost):
        way.pool(handler, concurrency=2)
    assert now(way, "b").state == "done"


def test_the_breaker_stops_a_pool_whose_tasks_all_fail(way: Way) -> None:
    def handler(claim: dibs.KeptClaim) -> None:
        seen.append(claim.id)
        raise ValueError("the mail server is down")

    seen: list[str] = []
    stop, done = way.stop(), list[int]()
    pool = threading.Thread(
        target=lambda: done.append(way.pool(handler, breaker=3, wait=PATIENCE, stop=stop.event))
    )
    pool.start()
    while "broken" not in [waiter.state for waiter in way.plain.waiters()]:
        pool.join(0.1)
    assert len(seen) == 3
    stop.set()
    pool.join(PATIENCE)
    assert done == [0]


def test_a_loop_waits_for_the_end_of_a_pause(way: Way) -> None:
    pause, _ = way.plain.pause_claims("deploy")
    threading.Timer(0.5, way.plain.resume_claims, ([pause.name],)).start()
    assert [claim.id for claim in way.loop()] == ["a", "b"]


def test_a_body_that_does_not_wait_is_told_of_a_pause(way: Way) -> None:
    way.plain.pause_claims("deploy")
    with pytest.raises(dibs.Paused, match="deploy"), way.working():
        raise AssertionError("the body ran")


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True])
def test_a_pool_has_at_least_one_place(way: Way, concurrency: int) -> None:
    with pytest.raises(dibs.BadName, match="concurrency"):
        way.pool(lambda claim: None, concurrency=concurrency)
    with pytest.raises(dibs.BadName, match="one task at a time"):
        next(way.loop(concurrency=2))


def test_everything_says_what_it_is(way: Way) -> None:
    assert way.plain.location.where in repr(way.plain)
    with way.working("a") as claim:
        assert repr(getattr(claim, "_claim", claim)).endswith(f" {claim.name}>")
    assert claim.outcome == "done"


@pytest.mark.parametrize("wait", ["x", float("nan"), -1, True])
def test_a_wait_is_a_number_of_seconds(way: Way, wait: float) -> None:
    with pytest.raises(dibs.BadName, match="wait must be 0 or more"), way.working(wait=wait):
        raise AssertionError("the body ran")
    with pytest.raises(dibs.BadName, match="wait must be"), way.lock("nightly", wait=wait):
        raise AssertionError("the body ran")
    with pytest.raises(dibs.BadName, match="wait must be"):
        next(way.loop(wait=wait))
    with pytest.raises(dibs.BadName, match="wait must be"):
        way.pool(lambda claim: None, wait=wait)
    with pytest.raises(dibs.BadName, match="wait must be"):
        way.plain.acquire("nightly", wait=wait)
    with pytest.raises(dibs.BadName, match="wait must be"):
        way.plain.wait_for(lambda: 1, wait)
    assert now(way).state == "available"


@pytest.mark.parametrize("breaker", [-1, 1.5, "x", True])
def test_a_breaker_is_a_number_of_failures(way: Way, breaker: int) -> None:
    with pytest.raises(dibs.BadName, match="breaker must be a number of failures"):
        next(way.loop(breaker=breaker))
    with pytest.raises(dibs.BadName, match="breaker must be a number of failures"):
        way.pool(lambda claim: None, breaker=breaker)
    assert now(way).state == "available"


@pytest.mark.parametrize("verb", ["done", "fail", "release"])
def test_a_second_end_says_that_the_claim_has_ended_already(way: Way, verb: str) -> None:
    other = "fail" if verb == "done" else "done"
    plain = way.plain.claim("b")
    with way.working("a") as claim:
        for ended in (claim, plain):
            getattr(ended, verb)()
            with pytest.raises(dibs.Lost, match="has ended already; stop: now it is"):
                getattr(ended, other)()
    if verb == "done":  # also for a process that has only the claim's name
        with pytest.raises(dibs.Lost, match="has ended already"):
            way.plain.attach(claim.name).fail("x")


def test_a_claim_that_was_taken_has_not_ended_by_itself(way: Way) -> None:
    claim = way.plain.claim("a")
    assert claim is not None
    way.plain.force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost, match="is no longer yours"):
        claim.fail("x")
