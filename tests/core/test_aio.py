"""asyncio: no event loop is blocked, and a task that is cancelled leaves no claim behind."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import dibs
import dibs.aio
from tests.core.tools import Place, settle
from tests.patience import PATIENCE

# A block that is expected to raise has the body of the block inside.
# ruff: noqa: PT012


@pytest.fixture
def where(board_dir: Path) -> Path:
    settle(board_dir)
    return board_dir


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine; one that hangs fails the test."""

    async def limited() -> None:
        async with asyncio.timeout(PATIENCE):
            await work()

    asyncio.run(limited())


def states(board: dibs.Board) -> dict[str, int]:
    return {state: n for state, n in board.snapshot().counts().items() if n}


def test_without_a_place_the_board_is_found_as_by_open(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_BOARD", str(where))

    async def work() -> None:
        board = await dibs.aio.open()
        assert board.location == dibs.open().location
        monkeypatch.delenv("DIBS_BOARD")
        monkeypatch.chdir("/")
        with pytest.raises(dibs.NoBoard):
            await dibs.aio.open()

    run(work)


def nothing_given() -> None:
    raise AssertionError("the handler ran")


def two_needed_given(first: object, claim: object) -> None:
    """Takes the claim, once `partial` has given the first."""


def two_needed(claim: object, more: object) -> None:
    raise AssertionError("the handler ran")


async def awaited(claim: object) -> None:
    raise AssertionError("the handler ran")


def generates(claim: object) -> Iterator[object]:
    raise AssertionError("the handler ran")
    yield claim


@pytest.mark.parametrize("handler", [nothing_given, two_needed, lambda *, claim: claim, "text"])
def test_a_handler_that_does_not_take_one_claim_is_refused_before_it_gets_one(
    where: Path, handler: Callable[..., object]
) -> None:
    plain = dibs.open(where)
    plain.add("a")
    with pytest.raises(dibs.BadName, match="takes one argument, the claim") as caught:
        plain.work(handler)
    assert "\n" not in str(caught.value)

    async def work() -> None:
        board = await dibs.aio.open(where)
        with pytest.raises(dibs.BadName, match="takes one argument, the claim"):
            await board.work(handler)  # type: ignore[arg-type]

    run(work)
    assert [event.verb for event in plain.log.of("a")] == ["add"]


@pytest.mark.parametrize("handler", [awaited, generates])
def test_a_handler_that_a_thread_would_not_run_is_refused(
    where: Path, handler: Callable[..., object]
) -> None:
    plain = dibs.open(where)
    plain.add("a")
    with pytest.raises(dibs.BadName, match="a thread does not run"):
        plain.work(handler)
    assert plain.find("a")[0].fence == 0


class Handlers:
    """What can be called with one claim."""

    def method(self, claim: object) -> None:
        """As a bound method."""

    def __call__(self, claim: object) -> None:
        """As an instance."""

    @staticmethod
    @wraps(nothing_given)
    def wrapped(claim: object) -> None:
        """With the signature of the function that it wraps, which takes nothing."""


@pytest.mark.parametrize(
    "handler",
    [
        *(Handlers().method, Handlers(), Handlers.wrapped, Mock(), print, [].append, str, type),
        *(lambda claim, more=1: more, lambda *given: given, partial(two_needed_given, 1)),
    ],
)
def test_a_handler_that_takes_one_claim_gets_it(
    where: Path, handler: Callable[..., object]
) -> None:
    plain = dibs.open(where)
    plain.add("a")
    assert plain.work(handler) == 1


def test_a_thousand_cancelled_tasks_leave_no_claim(where: Path) -> None:
    plain = dibs.open(where)
    for number in range(50):
        plain.add(f"task-{number}")
    chance = random.Random(7)
    begun = asyncio.Event()

    async def body(board: dibs.aio.AsyncBoard) -> None:
        async with board.working(wait=PATIENCE):
            begun.set()
            await asyncio.sleep(PATIENCE)

    async def work() -> None:
        board = await dibs.aio.open(where)
        tasks = []
        for _ in range(1000):
            tasks.append(asyncio.create_task(body(board)))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() / 100)
            if chance.random() < 0.5:
                chance.choice(tasks).cancel()
        await begun.wait()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ended} == {asyncio.CancelledError}
        await board.call(lambda _: None)  # after everything that they have left behind
        assert states(plain) == {"available": 50}

    run(work)
    assert not plain.waiters()
    assert {task.attempts for task in plain.snapshot().tasks.values()} == {0}
    assert not [t for t in threading.enumerate() if t.name.startswith("dibs-beats")]


def test_a_claim_that_a_cancelled_task_wins_is_released_while_the_loop_goes_on(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    place.board.add("a")
    hangs, answers = threading.Event(), threading.Event()

    def hang(path: str) -> None:
        if path == "a.available":
            hangs.set()
            answers.wait(PATIENCE)

    async def enter(board: dibs.aio.AsyncBoard) -> None:
        async with board.working():
            raise AssertionError("the body ran")

    async def work() -> None:
        board = dibs.aio.AsyncBoard(place.board)
        place.port.before["rename"] = hang
        task = asyncio.create_task(enter(board))
        await asyncio.to_thread(hangs.wait, PATIENCE)  # the loop goes on while the disk hangs
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert [name.rpartition(".")[2] for name in place.names()] == ["available"]
        answers.set()
        await board.call(lambda _: None)
        assert place.names() == ["a.f1.available"]

    run(work)
    assert [event.verb for event in place.board.log.of("a")] == ["add", "claim", "release"]


def test_a_check_raises_lost_at_the_deadline_even_if_the_disk_hangs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.board.add("a")
    answers = threading.Event()

    def hang(_: str) -> None:
        answers.wait(PATIENCE)

    async def work() -> None:
        board = dibs.aio.AsyncBoard(place.board)
        async with board.working(ttl=1) as claim:
            place.port.before["touch"] = hang
            stuck = asyncio.create_task(board.call(lambda _: answers.wait(PATIENCE)))
            await claim.lost.wait()
            with pytest.raises(dibs.Lost):
                await claim.check()
            answers.set()
            await stuck

    with pytest.raises(dibs.Lost):
        run(work)
    assert place.names()[0].startswith("a.f1.")
    assert place.names()[0].endswith(".claimed")


def test_cancelling_a_pool_releases_every_task_also_one_that_had_not_begun(where: Path) -> None:
    plain = dibs.open(where)
    for number in range(20):
        plain.add(f"task-{number}")

    async def work() -> None:
        board = await dibs.aio.open(where)
        begun = asyncio.Event()

        async def handler(claim: dibs.aio.AsyncClaim) -> None:
            begun.set()
            await asyncio.sleep(PATIENCE)

        async def pool() -> None:
            await board.work(handler, concurrency=8)

        task = asyncio.create_task(pool())
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert states(plain) == {"available": 20}

    run(work)
    assert {task.attempts for task in plain.snapshot().tasks.values()} == {0}


def test_a_timeout_in_the_body_releases_and_one_of_the_wait_gives_nothing(where: Path) -> None:
    plain = dibs.open(where)
    plain.add("a")

    async def work() -> None:
        board = await dibs.aio.open(where)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), board.working():
                await asyncio.sleep(PATIENCE)
        assert states(plain) == {"available": 1}
        async with board.working(), board.lock("door"):
            with pytest.raises(dibs.NothingToClaim):
                async with board.working(wait=0.3):
                    raise AssertionError("the body ran")
            with pytest.raises(dibs.Held):
                async with board.lock("door", wait=0.3):
                    raise AssertionError("the body ran")

    run(work)
    assert states(plain) == {"done": 1, "free": 1}


def test_leaving_an_async_for_loop_ends_its_claim(where: Path) -> None:
    plain = dibs.open(where)
    plain.add("a")

    async def work() -> None:
        board = await dibs.aio.open(where)
        async for _ in board.work():
            break
        await board.call(lambda _: None)
        assert states(plain) == {"available": 1}
        assert plain.find("a")[0].attempts == 1

    run(work)
    assert not [t for t in threading.enumerate() if t.name.startswith("dibs-beats")]


@pytest.mark.parametrize("turns", range(5))
def test_a_waiter_that_is_cancelled_right_after_another_ends_too(where: Path, turns: int) -> None:
    """`asyncio.wait_for` of Python 3.11 drops a cancellation that comes with a result."""
    plain = dibs.open(where)

    async def enter(board: dibs.aio.AsyncBoard) -> None:
        async with board.working(wait=PATIENCE):
            raise AssertionError("the body ran")

    async def work() -> None:
        board = await dibs.aio.open(where)
        first, second = (asyncio.create_task(enter(board)) for _ in range(2))
        while not board._turn._waiters:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        first.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({first, second})
        assert [task.cancelled() for task in (first, second)] == [True, True]
        plain.add("a")

    run(work)
    assert states(plain) == {"available": 1}


def test_who_waits_for_a_loss_can_be_cancelled_as_it_comes(where: Path) -> None:
    dibs.open(where).add("a")

    async def work() -> None:
        board = await dibs.aio.open(where)
        with pytest.raises(dibs.Lost):
            async with board.working() as claim:
                waits = asyncio.create_task(claim.lost.wait())
                await asyncio.sleep(0.01)
                claim._kept.lost.set()
                await asyncio.sleep(0)  # the event is set, and the task has not run yet
                waits.cancel()
                await asyncio.wait({waits})
                assert waits.cancelled()

    run(work)


def test_two_tasks_that_share_a_loop_are_refused(where: Path) -> None:
    plain = dibs.open(where)

    async def work() -> None:
        board = await dibs.aio.open(where)
        loop = board.work(wait=PATIENCE)
        waits = asyncio.create_task(anext(loop))
        await asyncio.sleep(0)
        with pytest.raises(dibs.BadName, match="another task waits for its next task"):
            await anext(loop)
        plain.add("a")
        works, go_on = asyncio.Event(), asyncio.Event()

        async def body() -> None:
            async for claim in loop:
                assert claim.id == "b"
                works.set()
                await go_on.wait()
                return

        claim = await waits
        assert claim.id == "a"  # used, and the task that got it is over: such as a `wait_for`
        plain.add("b")
        other = asyncio.create_task(body())
        await works.wait()
        assert plain.find("a")[0].state == "done"
        with pytest.raises(dibs.BadName, match="another task works on"):
            await anext(loop)
        assert plain.find("b")[0].state == "claimed"
        go_on.set()
        await other
        await loop.aclose()
        assert states(plain) == {"done": 1, "available": 1}

    run(work)


async def in_group(work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(work)


@pytest.mark.parametrize(
    "awaited",
    [
        lambda work: asyncio.wait_for(asyncio.create_task(work), PATIENCE),
        lambda work: asyncio.gather(work, asyncio.sleep(0)),
        asyncio.shield,
        in_group,
    ],
    ids=["wait_for", "gather", "shield", "TaskGroup"],
)
def test_a_body_may_wait_for_a_task_that_works_on_its_claim(
    where: Path, awaited: Callable[[Coroutine[Any, Any, None]], Awaitable[Any]]
) -> None:
    """`wait_for` of Python 3.11 makes a task too."""
    plain = dibs.open(where)
    for ident in "abc":
        plain.add(ident)

    async def handle(claim: dibs.aio.AsyncClaim, *, fails: bool) -> None:
        await claim.payload()
        if fails:
            raise ValueError("boom")

    async def work() -> None:
        board = await dibs.aio.open(where)
        with pytest.raises(dibs.BadName, match="another task, which failed") as refused:
            async for claim in board.work():
                fails = states(plain).get("done") == 2
                with suppress(ValueError, ExceptionGroup):
                    await awaited(handle(claim, fails=fails))
        assert isinstance(refused.value.__cause__, ValueError)
        assert (await board.find("c"))[0].attempts == 1  # after the loop was closed
        assert states(plain)["done"] == 2

    run(work)


def test_each_go_of_a_loop_may_be_a_task_but_of_one_worker_only(where: Path) -> None:
    """`wait_for` of Python 3.11 makes one; it does not say for whom."""
    plain = dibs.open(where)
    for ident in "abc":
        plain.add(ident)

    async def consume(loop: dibs.aio.AsyncLoop, begun: asyncio.Event, go_on: asyncio.Event) -> None:
        with suppress(StopAsyncIteration):
            while True:
                claim = await asyncio.create_task(loop.__anext__())
                await claim.payload()
                begun.set()
                await go_on.wait()

    async def work() -> None:
        board = await dibs.aio.open(where)
        loop = board.work()
        begun, go_on = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(consume(loop, begun, go_on))
        await begun.wait()
        with pytest.raises(dibs.BadName, match=r"another task works on a\."):
            await asyncio.create_task(consume(loop, begun, go_on))
        assert plain.find("a")[0].state == "claimed"
        go_on.set()
        await first

    run(work)
    assert states(plain) == {"done": 3}


def test_a_loop_that_is_closed_while_it_waits_ends_and_claims_nothing(where: Path) -> None:
    plain = dibs.open(where)

    async def work() -> None:
        board = await dibs.aio.open(where)
        loop = board.work(wait=PATIENCE, owner="w")
        waits = asyncio.create_task(loop.__anext__())
        while not plain.snapshot().waiters:  # noqa: ASYNC110  # the board has no event
            await asyncio.sleep(0.01)
        await loop.aclose()
        await board.add("a")
        with pytest.raises(StopAsyncIteration):
            await waits

    run(work)
    assert states(plain) == {"available": 1}


def test_a_claim_that_a_loop_hands_to_a_task_is_not_committed(where: Path) -> None:
    plain = dibs.open(where)
    plain.add("a")
    plain.add("b")
    lost: list[str] = []

    async def handle(claim: dibs.aio.AsyncClaim) -> None:
        async with claim:
            await asyncio.sleep(0.1)
            lost.append(claim.id)
            raise ValueError("boom")

    async def work() -> None:
        board = await dibs.aio.open(where)
        tasks = []
        with pytest.raises(dibs.BadName, match="still being worked on"):
            async for claim in board.work():
                assert claim.id == "a"  # as a line of a log does
                tasks.append(asyncio.create_task(handle(claim)))
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ended] == [ValueError]

    run(work)
    assert lost == ["a"]
    assert states(plain) == {"available": 2}


def test_a_body_that_is_cancelled_as_it_goes_on_has_done_its_task(where: Path) -> None:
    plain = dibs.open(where)
    plain.add("a")
    plain.add("b")

    async def work() -> None:
        board = await dibs.aio.open(where)

        async def body() -> None:
            async for claim in board.work():
                assert claim.id == "a"
                task = asyncio.current_task()
                assert task is not None
                task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(body())
        await board.call(lambda _: None)

    run(work)
    assert states(plain) == {"done": 1, "available": 1}


def test_an_inner_task_that_was_cancelled_fails_one_task_and_stops_nothing(where: Path) -> None:
    plain = dibs.open(where)
    for ident in "abc":
        plain.add(ident)

    async def inner() -> None:
        task = asyncio.create_task(asyncio.sleep(PATIENCE))
        await asyncio.sleep(0)
        task.cancel()
        await task

    async def handle(claim: dibs.aio.AsyncClaim) -> None:
        if claim.id == "a":
            await inner()

    async def work() -> None:
        board = await dibs.aio.open(where)
        with pytest.raises(asyncio.CancelledError):
            async with board.working("b"):
                await inner()
        assert plain.find("b")[0].attempts == 1
        assert await board.work(handle, breaker=0) == 2

    run(work)
    assert states(plain) == {"failed": 1, "done": 2}
    assert plain.log.of("a")[-1].reason == "CancelledError"

    def in_thread(_: dibs.KeptClaim) -> None:
        asyncio.run(inner())

    plain.add("d")
    plain.add("e")
    assert plain.work(in_thread, breaker=0) == 0
    assert plain.snapshot().counts()["failed"] == 3
