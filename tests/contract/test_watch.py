"""Watching a board: every change is reported, once and in order."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from threading import Event

import pytest

import dibs
from dibs.board import engine_of
from dibs.model.delta import Delta
from dibs.model.health import Trouble
from dibs_tui.model.board import BoardModel
from tests.contract.place import Places
from tests.patience import PATIENCE
from tests.tui.recorder import soon
from tests.watched import Watched, watched

WRITERS = 3
ROUNDS = 15


@pytest.fixture
def where(places: Places) -> str:
    """The place of a board with one claim and two available tasks, in real time."""
    place = places()
    for ident in ("task-1", "task-2", "task-3"):
        place.board.add(ident)
    place.board.claim("task-1", owner="web-1", ttl=3600)
    return place.board.location.where


def names(where: str) -> set[str]:
    """The exact names of all tasks and locks."""
    return {*dibs.open(where).snapshot().tasks}


def transitions(where: str, ident: str) -> None:
    """Take a task through most of its states, and acquire a lock."""
    board = dibs.open(where)
    board.add(ident)
    claim = board.claim(ident, owner="w")
    assert claim is not None
    claim.fail("not yet")
    board.park(board.find(ident)[0].name, "by hand")
    board.requeue(board.find(ident)[0].name)
    again = board.claim(ident, owner="w")
    assert again is not None
    again.beat()
    again.done()
    board.acquire(f"lock-{ident}", ttl=600)


def reported(found: Watched) -> list[dibs.Event]:
    """All events that the deltas reported; one with rates replaces the earlier events."""
    events: list[dibs.Event] = []
    for delta in found.deltas:
        if delta.rates is not None:
            events.clear()
        events += delta.events
    return events


def agrees(found: Watched, where: str) -> None:
    """Wait until the reports match the board, with each event exactly once."""
    there = names(where)
    found.until(lambda: found.names == there)
    log = sorted(dibs.open(where).log.oldest_first())
    found.until(lambda: sorted(reported(found)) == log)


# Nothing is missed


def test_no_transition_is_missed_between_the_first_report_and_the_deltas(where: str) -> None:
    begun = Event()

    def work(writer: int) -> None:
        for number in range(ROUNDS):
            transitions(where, f"w{writer}-{number}")
            begun.set()

    writers = [threading.Thread(target=work, args=(writer,)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    assert begun.wait(PATIENCE)
    with watched(where) as found:
        for writer in writers:
            writer.join(PATIENCE)
        agrees(found, where)


def test_what_a_dashboard_counts_is_complete_from_the_first_report_or_from_the_last(
    where: str,
) -> None:
    transitions(where, "ended")
    with watched(where) as found:
        found.until(lambda: any(d.complete and not d.more for d in found.deltas))
        deltas = list(found.deltas)
    model, expected = (
        BoardModel(),
        Counter(t.state for t in dibs.open(where).snapshot().tasks.values()),
    )
    states = ("available", "claimed", "held", "later", "asked", "done", "failed", "free")
    for delta in deltas:
        model.apply(delta)
        for state in (state for state in states if model.knows(state)):
            assert model.counts[state] == expected[state], state
        if model.knows():
            break
    assert all(model.knows(state) for state in states)


def test_changes_during_the_first_report_are_reported_next(where: str) -> None:
    first: list[Delta] = []
    acted = Event()

    def act(delta: Delta) -> None:
        if delta.added and not first:
            first.append(delta)
            transitions(where, "meanwhile")
            acted.set()

    with watched(where, on_report=act) as found:
        assert acted.wait(PATIENCE)
        agrees(found, where)
        assert len(first[0].added) == 3


def test_a_claim_is_reported_with_its_holder_and_so_is_each_beat(where: str) -> None:
    claim = dibs.open(where).acquire("door", owner="me", ttl=600)
    with watched(where) as found:
        found.until(lambda: claim.task.name in found.holders)
        before = found.holders[claim.task.name]
        assert (before.owner, before.ttl) == ("me", 600)
        time.sleep(0.05)
        claim.beat()
        found.until(lambda: found.holders[claim.task.name].beat > before.beat)


def test_a_lease_that_expires_is_reported_and_so_is_its_end(where: str) -> None:
    board = dibs.open(where)
    claim = board.claim("task-2", owner="me", ttl=1)
    assert claim is not None
    with watched(where) as found:
        found.until(lambda: claim.task.name in found.stale)
        board.force_release(claim.task.name, "gone")
        found.until(lambda: not found.stale)


def test_since_when_a_task_is_available_is_reported_when_it_is_asked(where: str) -> None:
    with watched(where) as found:
        found.until_live()
        found.watch.ask_since(["task-2.available", "nothing.available"])
        found.until(lambda: any("task-2.available" in delta.since for delta in found.deltas))
        assert not any("nothing.available" in delta.since for delta in found.deltas)


def test_a_refresh_does_not_wait_for_the_next_pass(where: str) -> None:
    with watched(where, poll=3600) as found:
        found.until_live()
        added = dibs.open(where).add("later").name
        found.watch.refresh()
        found.until(lambda: added in found.names)


def test_why_tasks_failed_is_searched_for_in_the_complete_log_after_the_board(where: str) -> None:
    board = dibs.open(where)
    for reason in ("no route to db-1", "no disk"):  # the last one counts
        claim = board.claim("task-2", owner="w")
        assert claim is not None
        claim.fail(reason)
    board.park(board.find("task-3")[0].name, "withdrawn")
    for ident in ("later", "done"):
        transitions(where, ident)
    with watched(where) as found:
        found.until(lambda: any(delta.reasons_read for delta in found.deltas))
        read = [d.reasons_read for d in found.deltas if d.reasons_read is not None]
        assert read == [False, True]
        board_at = next(n for n, d in enumerate(found.deltas) if d.complete)
        past_at = next(n for n, d in enumerate(found.deltas) if d.past)
        assert board_at < past_at
        past = [event for delta in found.deltas for event in delta.past]
        reasons = {event.id: event.reason for event in past}
        assert reasons == {"task-2": "no disk", "task-3": "withdrawn"}


def test_a_search_of_the_log_ends_on_a_board_without_failures_too(where: str) -> None:
    with watched(where) as found:
        found.until(lambda: any(delta.reasons_read for delta in found.deltas))
        assert not any(delta.past for delta in found.deltas)


# A reader that lags, or fails


@pytest.fixture
def slow() -> Iterator[Event]:
    """Set it to let a blocked reader continue; it is set at the end of the test."""
    go_on = Event()
    yield go_on
    go_on.set()


def test_a_lagging_reader_shows_in_the_health_and_catches_up(where: str, slow: Event) -> None:
    blocked = Event()

    def block(delta: Delta) -> None:
        if any(task.id == "slow" for task in delta.added):
            blocked.set()
            assert slow.wait(PATIENCE)

    with watched(where, on_report=block) as found:
        found.until_live()
        dibs.open(where).add("slow")
        assert blocked.wait(PATIENCE)
        transitions(where, "meanwhile")
        found.until(lambda: found.health.lag(time.monotonic()) > 0)
        assert not any(name.startswith("done/meanwhile.") for name in found.names)
        slow.set()
        agrees(found, where)
        found.until(lambda: found.health.lag(time.monotonic()) == 0)


def test_a_report_that_fails_shows_in_the_health_and_is_repeated(where: str) -> None:
    found, failed = Watched(), Event()

    def fail_once(delta: Delta) -> None:
        if delta.removed and not failed.is_set():
            failed.set()
            raise RuntimeError("the reader has a fault")
        found.report(delta)

    found.watch = dibs.watch(where, fail_once, poll=0.1)
    try:
        found.until_live()
        dibs.open(where).park("task-2.available", "no")
        found.until(lambda: found.health.trouble is Trouble.FAILED)
        transitions(where, "meanwhile")
        found.until_live()
        agrees(found, where)
    finally:
        assert found.watch.stop(PATIENCE)
    assert found.faults == []


# Who acts on it, and how it ends


def test_the_board_of_a_watch_is_opened_for_another_thread(where: str) -> None:
    with watched(where) as found:
        found.until_live()
        found.watch.open().park("task-2.available", "no")
        with pytest.raises(dibs.ReadOnly):
            found.watch.open(read_only=True).park("task-3.available", "no")


def test_a_watch_that_only_reads_opens_a_board_for_acts_once_they_are_unlocked(where: str) -> None:
    seen = Event()
    engine = engine_of(where)
    watch = engine.watch(where, lambda delta: seen.set(), None, poll=1.0, read_only=True)
    try:
        assert seen.wait(PATIENCE)
        with pytest.raises(dibs.ReadOnly):
            watch.open(read_only=True).park("task-2.available", "no")
        watch.open(read_only=False).park("task-2.available", "no")
    finally:
        assert watch.stop(PATIENCE)


def test_nothing_is_reported_after_the_end_and_no_thread_is_left(where: str) -> None:
    before = {*threading.enumerate()}  # one of an earlier test may end meanwhile
    with watched(where) as found:
        found.until_live()
    count = len(found.deltas)
    transitions(where, "later")
    assert soon(lambda: {*threading.enumerate()} <= before)
    assert len(found.deltas) == count
