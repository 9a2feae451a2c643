"""Blocks, loops and pools that are shared, handed away or ended by their handler."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dibs
from tests.contract.place import Places
from tests.contract.test_working import beating, now, way
from tests.contract.ways import Sync, Way
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
