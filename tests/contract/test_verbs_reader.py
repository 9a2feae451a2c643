"""The reader's verbs: snapshots, settings and the log."""

from __future__ import annotations

import subprocess

import pytest

import dibs
from tests.contract.place import Place, Places, require
from tests.core.tools import News

pytestmark = pytest.mark.fast("tests.contract")


def populate(board: dibs.Board) -> dibs.Claim:
    """Add a task of each state, a free and a held lock; returns the claim on the claimed task."""
    for ident in ("wait", "mine", "over", "sunk"):
        board.add(ident, ident.encode())
    done = board.claim("over")
    claim = board.claim("mine", owner="me", ttl=100)
    assert done is not None
    assert claim is not None
    done.done()
    board.park("sunk.available", "no")
    board.acquire("gate").release()
    board.acquire("door", ttl=100)
    return claim


def test_a_snapshot_counts_expired_claims_as_stale(place: Place) -> None:
    claim = populate(place.board)
    place.advance(101)
    snapshot = place.board.snapshot()
    assert snapshot.stale(claim.task.name)
    assert snapshot.age(claim.task.name) == pytest.approx(101, abs=1)
    counts = snapshot.counts()
    assert (counts["stale"], counts["claimed"], counts["held"]) == (2, 0, 0)


def test_a_claim_whose_process_has_exited_is_stale_before_its_lease_expires(place: Place) -> None:
    board = place.board
    with subprocess.Popen(["sleep", "60"]) as worker:
        board.add("x")
        claim = board.claim(ttl=100, process=board.host.process(worker.pid))
        assert claim is not None
        assert board.snapshot().counts()["claimed"] == 1
        worker.kill()
    snapshot = board.snapshot()
    assert snapshot.stale(claim.task.name)
    assert snapshot.counts()["stale"] == 1
    assert [row.state for row in board.entries(snapshot)] == ["stale"]
    assert [row.state for row in board.entries_of([claim.task])] == ["stale"]
    require(place, dibs.Capability.LOCAL_EVIDENCE)
    elsewhere = place.other(dibs.this_host()._replace(boot="another"))
    assert elsewhere.snapshot().counts()["claimed"] == 1, "only its own host can know"


def test_a_snapshot_can_omit_ended_tasks_and_free_locks(place: Place) -> None:
    populate(place.board)
    states = {task.state for task in place.board.snapshot(ended=False).tasks.values()}
    assert states == {"available", "claimed", "held"}


def test_a_board_has_its_own_settings(places: Places) -> None:
    place = places(ttl=7.5, plain_ttl=60, max_attempts=1, reap_dead=False, retry=(5, 90, 7200))
    assert place.board.settings == dibs.Settings(7.5, 60, 1, "off", False, (5, 90, 7200))


def test_following_the_journal_gives_each_event_once(place: Place) -> None:
    news = News(place.board.log)
    place.board.add("x")
    assert [event.verb for event in news()] == ["add"]
    assert news() == []
    assert place.board.claim("x") is not None
    assert [event.verb for event in news()] == ["claim"]


def test_an_act_with_a_long_reason_can_be_read_back(place: Place) -> None:
    task = place.board.add("x")
    place.board.park(task.name, "why " * 10_000)
    assert [event.verb for event in place.board.log.of("x")] == ["add", "park"]
