"""Waiting for a release: when it is noticed, and how seldom a waiter looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dibs
from tests.core.tools import SECOND, Movable, Place, World, opened

RELEASED = 5.0


class Waiter(Movable):
    """A directory that a waiter looks at, in seconds of a world where only sleeping takes time."""

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


def test_a_waiter_reads_the_board_no_oftener_than_once_in_most_of_a_second(place: Place) -> None:
    port, tries = Waiter(place), []
    board = opened(port)
    assert board.wait_for(lambda: tries.append(now(place.world)), 30) is None
    assert len(tries) < 45
    assert port.looks < 200
