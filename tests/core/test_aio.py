"""asyncio: no event loop is blocked, and a task that is cancelled leaves no claim behind."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
import dibs.aio
from tests.core.tools import Place, settle
from tests.patience import PATIENCE


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
