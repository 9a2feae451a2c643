"""How locks end: ttl, renewal, release and expiry, and the fence that keeps growing."""

from __future__ import annotations

import os
import signal

import pytest

import dibs
from dibs.cli.refusal import fields
from tests.core.tools import Place, in_child


@pytest.mark.parametrize("verb", ["acquire", "claim", "resume"])
def test_with_an_untrusted_clock_the_refusal_says_how_long_to_wait(place: Place, verb: str) -> None:
    def ask() -> dibs.Claim:
        claim: dibs.Claim = getattr(place.another()[0], verb)("door", owner="me", ttl=100)
        return claim

    if verb == "claim":
        place.board.add("door")
    if verb == "resume":
        place.board.acquire("door", owner="me", ttl=100)
    else:
        ask()
    place.world.step(150)  # the file system's clock alone
    for wait in (25, 25, 20):  # a quarter of the ttl, or what is left of 80 s
        with pytest.raises(
            dibs.Held, match=f"clock is not trusted yet: try again in {wait} s"
        ) as held:
            ask()
        assert held.value.retry == pytest.approx(wait, abs=0.5)
        assert fields(held.value)["retry"] == round(held.value.retry, 3)
        place.world.advance(30)
    assert ask().fence == 2


def test_fences_only_grow_over_releases_expiries_restarts_and_kill_9(place: Place) -> None:
    fences = []

    def die() -> int:
        board = place.another()[0]
        fence = board.acquire("door", ttl=10, process=board.host.process(os.getpid())).fence
        os.write(writable, bytes([fence]))
        os.kill(os.getpid(), signal.SIGKILL)
        return fence

    readable, writable = os.pipe()
    for _ in range(3):
        lease = place.another()[0].acquire("door", ttl=10)
        fences.append(lease.fence)
        lease.release()
        fences.append(place.another()[0].acquire("door", ttl=10).fence)
        place.world.advance(11)
        with pytest.raises((AssertionError, EOFError)):
            in_child(die)
        fences.append(os.read(readable, 1)[0])
    os.close(readable)
    os.close(writable)
    assert fences == list(range(1, 10))
