"""Blocks, loops and pools that are shared, handed away or ended by their handler."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import dibs
from tests.contract.place import Places
from tests.contract.test_working import beating, now, way
from tests.contract.ways import Sync, Turned, Way
from tests.patience import PATIENCE

__all__ = ["way"]
# A block that is expected to raise has the body of the block inside.
# ruff: noqa: PT012


def states(way: Way) -> dict[str, int]:
    return {state: n for state, n in way.plain.snapshot().counts().items() if n}


def test_a_block_that_another_one_is_in_or_waits_in_is_refused(way: Way) -> None:
    """Not the other body's claim ended when the first one is left."""
    for block in (way.block("working", "a", wait=PATIENCE), way.block("lock", "x", slots=2)):
        with block:
            assert len(beating()) == 1
            with pytest.raises(dibs.BadName, match=r"entered already: call `board\.\w+"), block:
                raise AssertionError("the body ran")
            assert len(beating()) == 1
        assert beating() == []
    assert now(way).state == "done"
    held = way.plain.claim("b")
    assert held is not None
    block = way.block("working", "b", wait=PATIENCE)
    errors: list[BaseException] = []
    left = threading.Barrier(2)

    def enter() -> None:
        try:
            with block:
                left.wait(PATIENCE)
        except dibs.BadName as error:
            errors.append(error)
            held.release()  # so the other one gets it

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not errors:
        threads[0].join(0.01)
    left.wait(PATIENCE)
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(errors), now(way, "b").state, beating()) == (1, "done", [])


def test_a_block_can_be_used_again_after_it_was_left_or_got_nothing(way: Way) -> None:
    block = way.block("lock", "x")
    with way.plain.acquire("x"):
        for _ in range(2):
            with pytest.raises(dibs.Held), block:
                raise AssertionError("the body ran")
    for _ in range(2):
        with block:
            pass
    with pytest.raises(dibs.BadName, match="not entered"):
        block.__exit__(None, None, None)


def test_a_loop_does_not_commit_a_claim_that_it_has_handed_away(way: Way) -> None:
    handed: list[Any] = []
    with pytest.raises(dibs.BadName, match="not used by the body of the loop"):
        for claim in way.loop():
            handed.append(claim)
    assert len(handed) == 1
    assert (now(way).state, now(way).attempts) == ("available", 1)
    assert "left" in way.plain.log.of("a")[-1].reason
    with pytest.raises(dibs.Lost, match="has ended"), handed[0]:
        raise AssertionError("the body ran")
    assert (now(way, "b").state, beating()) == ("available", [])


def test_a_loop_does_not_commit_a_claim_that_is_still_in_another_body(way: Way) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def handle(claim: Any) -> None:
        with claim:
            inside.set()
            go_on.wait(PATIENCE)

    with ThreadPoolExecutor() as executor:
        with pytest.raises(dibs.BadName, match="still being worked on"):
            for claim in way.loop():
                assert claim.id == "a"
                executor.submit(handle, claim)
                inside.wait(PATIENCE)
        go_on.set()
    assert now(way).state == "available"
    assert "done" not in [event.verb for event in way.plain.log.of("a")]


@pytest.mark.parametrize(
    "use",
    [repr, str, lambda claim: claim.outcome, lambda claim: claim.ttl],
    ids=["repr", "str", "outcome", "ttl"],
)
def test_whatever_a_body_asks_of_its_claim_is_a_use_of_it(
    way: Way, use: Callable[[Any], object]
) -> None:
    for claim in way.loop():
        use(claim._claim if isinstance(claim, Turned) else claim)
    assert states(way) == {"done": 2}


def test_work_in_a_thread_that_has_ended_is_that_of_the_body(places: Places) -> None:
    way = Sync(places().board.location.where)
    for ident in "abc":
        way.plain.add(ident)
    for turn, claim in enumerate(way.plain.work()):
        if turn == 0:
            claim.on_lost(lambda: None)
        else:
            thread = threading.Thread(target=claim.payload)
            thread.start()
            thread.join(PATIENCE)
    assert states(way) == {"done": 3}


def test_work_in_a_thread_of_an_executor_needs_a_block(places: Places) -> None:
    way = Sync(places().board.location.where)
    way.plain.add("a")
    with ThreadPoolExecutor() as executor:
        with pytest.raises(dibs.BadName, match=r"still runs.* what waits for it, into `with cl"):
            for claim in way.plain.work():
                executor.submit(claim.payload).result(PATIENCE)
        assert way.plain.find("a")[0].attempts == 1
        way.plain.add("b")
        for claim in way.plain.work():
            with claim:
                executor.submit(claim.payload).result(PATIENCE)
    assert way.plain.find("b")[0].state == "done"


def test_a_loop_whose_thread_has_ended_does_not_commit_its_task(places: Places) -> None:
    """Also if the next thread has the number of the one that has ended."""
    way = Sync(places().board.location.where)
    way.plain.add("a")
    loop = way.plain.work()
    said: list[str] = []

    def run() -> None:
        with suppress(ValueError):
            for claim in loop:
                claim.payload()
                raise ValueError("boom")

    def other() -> None:
        try:
            next(loop)
        except dibs.BadName as error:
            said.append(str(error))

    for target in (run, other):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join(PATIENCE)
    assert "another thread has ended and left a." in said[0]
    assert (now(way).attempts, beating()) == (1, [])


def test_a_loop_in_two_threads_ends_no_claim_of_the_other(places: Places) -> None:
    way = Sync(places().board.location.where)
    way.plain.add("a")
    way.plain.add("b")
    loop = way.plain.work()
    claim = next(loop)
    refused: list[BaseException] = []

    def other() -> None:
        try:
            next(loop)
        except dibs.BadName as error:
            refused.append(error)

    for _ in range(2):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
    assert [f"another thread works on {claim.name}" in str(error) for error in refused] == [
        True
    ] * 2
    claim.check()
    claim.done()
    thread = threading.Thread(target=other)  # now no one works on a claim of the loop
    thread.start()
    thread.join(PATIENCE)
    assert len(refused) == 2
    assert [now(way, ident).state for ident in "ab"] == ["done", "claimed"]
    loop.close()
    assert beating() == []


def test_a_loop_that_is_closed_while_it_waits_ends_and_claims_nothing(places: Places) -> None:
    board = places().board
    board.add("a")
    done: list[str] = []

    def work() -> None:
        done.extend(claim.id for claim in loop)

    loop = dibs.open(board.location.where).work(wait=PATIENCE, owner="w")
    waiter = threading.Thread(target=work)
    waiter.start()
    while not board.snapshot().waiters:
        waiter.join(0.01)
    loop.close()
    board.add("c")
    waiter.join(PATIENCE)
    assert not waiter.is_alive()
    assert (done, board.find("c")[0].state, beating()) == (["a"], "available", [])


@pytest.mark.parametrize("make", ["new lock", "slots", "next", "named"])
def test_a_block_that_no_one_has_is_gone_at_once(places: Places, make: str) -> None:
    """Also before the next collection of garbage: its end releases a claim that a signal left."""
    board = places().board
    board.add("a")
    gc.disable()
    try:
        makes: dict[str, Callable[[], Any]] = {
            "new lock": lambda: board.lock("x"),
            "slots": lambda: board.lock("x", slots=2),
            "next": board.working,
            "named": lambda: board.working("a"),
        }
        made = makes[make]()
        claim = made.__enter__()
        block = weakref.ref(made)
        del made
        assert block() is None
        assert claim.lost.wait(PATIENCE)
        assert claim.outcome == "released"
    finally:
        gc.enable()


def ends(verb: str, *given: Any, **terms: Any) -> Callable[[Any], None]:
    """A handler that ends the claim of a, and then raises an error."""

    def handler(claim: Any) -> None:
        if claim.id == "a" and claim.fence == 1:
            getattr(claim, verb)(*given, **terms)
            raise ValueError("the cleanup failed")

    return handler


@pytest.mark.parametrize(
    ("handler", "state"),
    [
        (ends("done", b"42"), "done"),
        (ends("ask", "which?"), "asked"),
        (ends("fail", "no", retry_in=60), "later"),
        (ends("release", start_in=60), "later"),
        (lambda claim: claim.id == "b" or claim.release(start_in=60), "later"),
    ],
    ids=["done", "ask", "fail", "release", "release, and no error"],
)
def test_a_handler_that_ended_its_claim_does_not_stop_the_pool(
    way: Way, handler: Callable[[Any], None], state: str
) -> None:
    assert way.pool(handler) == 1 + (state == "done")
    assert [now(way, ident).state for ident in "ab"] == [state, "done"]


def test_a_task_that_is_released_at_once_ends_the_loop_and_says_so(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "dibs"):
        assert way.pool(lambda claim: claim.release("not for me")) == 0
        for claim in way.loop():
            claim.release("not for me")
    assert states(way) == {"available": 2}
    assert [record.getMessage().count("start_in") for record in caplog.records] == [1, 1]
