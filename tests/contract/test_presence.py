"""Who waits for tasks: shown from the third second on, gone with the worker."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import dibs
from tests.contract.place import Place
from tests.patience import PATIENCE


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def owners(board: dibs.Board) -> list[str]:
    return [waiter.owner for waiter in board.waiters()]


def test_a_worker_that_waits_is_shown_from_the_third_second_on(place: Place) -> None:
    presence = place.board.presence("web-3")
    presence.keep()
    assert owners(place.board) == []
    place.advance(2)
    presence.keep()
    (waiter,) = place.other().waiters()
    assert (waiter.owner, waiter.host, waiter.state) == (
        "web-3",
        place.board.host.name,
        "idle",
    )
    age = waiter.age(place.board.snapshot().now)
    assert age == pytest.approx(2, abs=2)
    presence.end()
    assert owners(place.board) == []
    presence.keep()
    assert owners(place.board) == []  # a new wait begins


def test_a_worker_whose_presence_ends_without_it_is_ignored_after_30_seconds(place: Place) -> None:
    presence = place.board.presence("web-3")
    presence.keep()
    place.advance(3)
    presence.keep()
    place.advance(28)
    assert owners(place.board) == ["web-3"]
    place.advance(4)
    assert owners(place.board) == []
    presence.keep()
    assert owners(place.board) == ["web-3"]


def test_a_presence_lasts_as_long_as_the_worker_waits(place: Place) -> None:
    presence = place.board.presence("web-3")
    for _ in range(60):
        presence.keep()
        place.advance(5)
        place.other().reap()
    assert owners(place.board) == ["web-3"]


def test_a_wait_shows_its_presence_and_ends_it(place: Place) -> None:
    seen: list[list[str]] = []
    other = place.other()

    def attempt() -> dibs.Claim | None:
        seen.append(owners(other))
        return place.board.claim("a") if len(seen) == 8 else None

    other.add("a")
    claim = place.board.wait_for(attempt, 60, presence=place.board.presence("web-3"))
    assert claim is not None
    assert (seen[0], seen[-1]) == ([], ["web-3"])
    assert owners(other) == []


def test_a_presence_ends_with_a_wait_that_fails(place: Place) -> None:
    tries = 0

    def attempt() -> None:
        nonlocal tries
        tries += 1
        if tries == 8:
            assert owners(place.board) == ["web-3"]
            raise dibs.StorageError("the disk is on fire")

    with pytest.raises(dibs.StorageError):
        place.board.wait_for(attempt, 60, presence=place.board.presence("web-3"))
    assert owners(place.board) == []


def test_a_state_is_shown_at_once(place: Place) -> None:
    presence = place.board.presence("web-3")
    presence.keep()
    place.advance(3)
    for state in ("idle", "paused", "broken", "idle"):
        presence.keep(state)
        assert [waiter.state for waiter in place.board.waiters()] == [state]


def test_an_invalid_owner_is_refused(place: Place) -> None:
    with pytest.raises(dibs.BadName):
        place.board.presence("a\nb")


def test_tasks_are_untaken_while_no_worker_works_or_waits(place: Place) -> None:
    assert place.board.snapshot().untaken() == 0
    for ident in ("a", "b", "c"):
        place.board.add(ident)
    assert place.board.snapshot().untaken() == 3
    presence = place.board.presence()
    presence.keep()
    place.advance(3)
    presence.keep()
    assert place.board.snapshot().untaken() == 0
    presence.end()
    claim = place.board.claim()
    assert claim is not None
    assert place.board.snapshot().untaken() == 0
    place.advance(200)
    assert place.board.snapshot().untaken() == 2  # the only claim is stale
    claim.done()
    place.board.acquire("lock")
    assert place.board.snapshot().untaken() == 2


def test_a_pause_of_all_hosts_is_no_reason_to_miss_workers(place: Place) -> None:
    place.board.add("a")
    for host in ("", "*"):
        pause, _ = place.board.pause_claims("upgrade", host=host)
        assert place.board.snapshot().untaken() == 0
        place.board.resume_claims([pause.name])
        assert place.board.snapshot().untaken() == 1


def test_while_one_host_is_paused_the_workers_of_the_others_are_missed(place: Place) -> None:
    for ident in ("a", "b"):
        place.board.add(ident)
    paused = place.other(place.board.host._replace(name="web-3"))
    assert paused.claim() is not None
    place.board.pause_claims("new disk", host="web-*")
    presence = paused.presence()
    presence.keep()
    place.advance(3)
    presence.keep("paused")
    assert [waiter.host for waiter in place.board.waiters()] == ["web-3"]
    assert place.board.snapshot().untaken() == 1
    elsewhere = place.board.claim()
    assert elsewhere is not None
    place.board.add("c")
    assert place.board.snapshot().untaken() == 0
    elsewhere.done()
    assert place.board.snapshot().untaken() == 1


def test_a_watch_reports_who_waits(place: Place) -> None:
    deltas: list[dibs.Delta] = []
    watch = place.board.watch(deltas.append)
    try:
        until(lambda: any(delta.complete for delta in deltas), "no complete board")
        presence = place.other().presence("web-3")
        presence.keep()
        place.advance(3)
        presence.keep()

        def reported() -> list[list[str]]:
            found = [delta.waiters for delta in deltas if delta.waiters is not None]
            return [[waiter.owner for waiter in waiters] for waiters in found]

        until(lambda: ["web-3"] in reported(), "the worker was not reported")
        presence.end()
        until(lambda: reported()[-1] == [], "its end was not reported")
        assert reported() == [["web-3"], []]
    finally:
        watch.stop(PATIENCE)
