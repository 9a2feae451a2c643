"""Waiting for a release: how soon it is noticed, and how rarely a waiter looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dibs
from dibs.files.ending import EndWait
from tests.core.tools import SECOND, Movable, Place, World, opened

pytestmark = pytest.mark.fast("dibs.files")

RELEASED = 5.0


class Waiter(Movable):
    """A directory that a waiter looks at, in a world where only sleeping takes time."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.path, place.world)
        self.looks = 0
        self.release: Callable[[], object] | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.looks += 1
        if self.release and now(self.world) >= RELEASED:
            self.release()
            self.release = None


def now(world: World) -> float:
    return world.boot / SECOND


def held(place: Place, lock: bool) -> dibs.Claim:
    """A claim that another process has."""
    if lock:
        return place.board.acquire("a", ttl=3600)
    place.board.add("a")
    claim = place.board.claim(ttl=3600)
    assert claim is not None
    return claim


@pytest.mark.parametrize("lock", [False, True], ids=["task", "lock"])
def test_a_waiter_notices_a_release_within_a_second(place: Place, lock: bool) -> None:
    port = Waiter(place)
    port.release = held(place, lock).release
    board = opened(port)

    def attempt() -> dibs.Claim | None:
        try:
            return board.acquire("a") if lock else board.claim()
        except dibs.Held:
            return None

    claim = board.wait_for(attempt, 60)
    assert claim is not None
    assert claim.fence == 2
    assert RELEASED <= now(place.world) < RELEASED + 1


def test_a_waiter_reads_the_board_about_once_a_second(place: Place) -> None:
    port, tries = Waiter(place), []
    board = opened(port)
    assert board.wait_for(lambda: tries.append(now(place.world)), 30) is None
    assert len(tries) < 45
    assert port.looks < 200


def test_the_last_of_many_tasks_does_not_wait_for_those_that_have_ended(place: Place) -> None:
    for n in range(200):
        place.board.add(f"t{n:03}")
    tasks = list(place.board.snapshot().tasks.values())
    other, port = place.another()
    wait = EndWait(other._store, tasks)
    wait.look()
    for _ in range(199):
        claim = place.board.claim()
        assert claim is not None
        claim.done()
    port.before["stat"] = lambda _: place.world.advance(0.001)  # a slow disk
    ended: list[dibs.Task] = []
    while len(ended) < 199:
        ended += wait.look()
    port.before.clear()
    claim = place.board.claim()
    assert claim is not None
    claim.done()
    for _ in range(20):
        if wait.changed():
            break
        port.sleep(0.01)
    else:
        pytest.fail("it looks away for more than 0.2 s")
