"""The primary is lost and its standby promoted: with one address, and without a fence twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from tests.patience import PATIENCE
from tests.postgres.cluster import why_not
from tests.postgres.failover import Pair, fail_over, pair
from tests.postgres.proxy import Proxy
from tests.tui.live import drive, text_of, until
from tests.watched import watched


@pytest.fixture(autouse=True)
def can_start() -> None:
    if reason := why_not():
        pytest.skip(f"NO POSTGRESQL SERVER WAS TRIED: {reason}")


@pytest.fixture
def synchronous() -> Iterator[Pair]:
    with pair(synchronous=True) as found:
        yield found


@pytest.fixture
def far() -> Iterator[Proxy]:
    """What an asynchronous standby follows its primary through."""
    with Proxy("") as found:
        yield found


@pytest.fixture
def asynchronous(far: Proxy) -> Iterator[Pair]:
    with pair(synchronous=False, through=far) as found:
        yield found


def shows(where: str, text: str) -> None:
    """Wait until the dashboard shows a text."""

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: text in text_of(app))

    drive(where, steps, size=(260, 40))


@pytest.mark.parametrize("silent", [False, True], ids=["killed", "silent"])
def test_nothing_acknowledged_is_lost_with_a_synchronous_standby(
    synchronous: Pair, tmp_path: Path, silent: bool
) -> None:
    if not silent:
        shows(synchronous.place.where, "durable: 1 standby")
    faults, words = fail_over(synchronous, tmp_path, silent=silent)
    assert faults == []
    assert words["ok"] > 20
    assert words["not-done"] == 0


def test_no_fence_is_given_twice_after_a_tail_was_lost(asynchronous: Pair, far: Proxy) -> None:
    place = asynchronous.place
    board = place.board
    for ident in ("kept", "lost"):
        board.add(ident)
    first = board.claim("kept", owner="first", ttl=600)
    assert first is not None
    shows(place.where, "durable: local")
    asynchronous.standby.until_it_follows()
    far.stall()  # from here on the standby gets nothing, and the primary acknowledges it
    fences = [first.fence]
    claim = first
    for _ in range(3):
        claim.release()
        again = board.claim("kept", owner="later", ttl=600)
        assert again is not None
        claim = again
        fences.append(claim.fence)
    lost = board.claim("lost", owner="later", ttl=600)
    assert lost is not None
    board.add("never copied")
    asynchronous.primary.kill()
    asynchronous.standby.promote()
    assert board.find("never copied") == ()
    for late in (claim, lost):
        with pytest.raises(dibs.Lost):
            late.done()
    (task,) = board.find("kept")
    board.force_release(task.name, "the server lost its newest changes")
    taken = board.claim("kept", owner="new")
    assert taken is not None
    assert taken.fence > max(fences)
    other = board.claim("lost", owner="new")
    assert other is not None
    assert other.fence > lost.fence
    fresh = board.add("fresh")
    assert board.claim("fresh") is not None
    assert fresh.state == "available"
    assert len(asynchronous.promoted.floors()) == 1, "one history, however many found out"
    assert asynchronous.promoted.contradictions() == []


def test_a_watch_shows_what_is_left_after_a_failover(asynchronous: Pair, far: Proxy) -> None:
    place = asynchronous.place
    board = place.board
    board.add("copied")
    asynchronous.standby.until_it_follows()
    with watched(place.where) as seen:
        seen.until(lambda: any(name.startswith("copied") for name in seen.names))
        far.stall()
        lost = board.add("lost").name
        seen.until(lambda: lost in seen.names)
        asynchronous.primary.kill()
        asynchronous.standby.promote()
        seen.until(lambda: lost not in seen.names)
        seen.until(lambda: seen.health.trouble is None)
        added = board.wait_for(lambda: board.add("after"), PATIENCE)
        assert added is not None
        seen.until(lambda: seen.names == {"copied.available", "after.available"})
