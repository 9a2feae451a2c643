"""A client whose clock is an hour off does and sees the same as any other."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.child import Child

HOUR = 3600
NEAR = 30.0
"""Seconds that this machine may lose between two steps of a test; much less than an hour."""


@pytest.fixture(params=[-HOUR, HOUR], ids=["behind", "ahead"])
def child(request: pytest.FixtureRequest, site: Site) -> Iterator[Child]:
    """A process with that clock."""
    with Child(site.where, request.param) as found:
        now = found.ask("time.time()")
        assert abs(now - time.time() - request.param) < NEAR
        yield found


def test_its_leases_are_as_long_as_others(child: Child, site: Site) -> None:
    board = site.board
    board.add("build")
    child.ask("(claim := board.claim(owner='child', ttl=60)) and 0")
    left = child.ask("claim.deadline / 1e9 - time.clock_gettime(time.CLOCK_BOOTTIME)")
    assert 48 - NEAR < left <= 48
    assert child.ask("claim.beat()") is child.ask("claim.verify()") is None
    (entry,) = board.entries_of(board.find("build"))
    assert entry.state == "claimed"
    assert entry.age is not None
    assert entry.age < NEAR
    assert board.reap().tasks == ()
    assert child.ask("board.evidence(claim.task).verdict.name") == "ALIVE"
    assert board.evidence(board.find("build")[0]).verdict.name == "ALIVE"


def test_it_reaps_what_expired_and_nothing_else(child: Child, site: Site) -> None:
    board = site.board
    board.add("long")
    board.add("short")
    board.claim("long", owner="me", ttl=60)
    board.claim("short", owner="me", ttl=1)
    assert child.ask("board.wait_for(board.claim, 60).id") == "short"
    assert child.ask("[task.id for task in board.reap().tasks]") == []
    assert board.find("long")[0].owner == "me"
    assert child.ask("board.evidence(board.find('long')[0]).verdict.name") == "ALIVE"


def test_its_own_expired_claims_are_taken_over(child: Child, site: Site) -> None:
    board = site.board
    board.add("build")
    child.ask("(claim := board.claim(owner='child', ttl=1)) and 0")
    taken = board.wait_for(lambda: board.claim(owner="me"), PATIENCE)
    assert taken is not None
    assert child.ask("claim.done()") in ("Lost", "Uncertain")
    taken.done()


def test_a_start_in_so_many_seconds_counts_on_the_board(child: Child, site: Site) -> None:
    board = site.board
    child.ask("board.add('soon', start_in=1) and 0")
    child.ask("board.add('tonight', start_in=600) and 0")
    (task,) = board.find("tonight")
    assert abs(task.not_before - time.time() - 600) < NEAR
    claim = board.wait_for(board.claim, PATIENCE)
    assert claim is not None
    assert claim.id == "soon"
    starts = child.ask("[entry.starts for entry in board.entries() if entry.id == 'tonight'][0]")
    assert 600 - NEAR < starts <= 601


def test_it_sees_and_makes_pauses_that_end_in_time(child: Child, site: Site) -> None:
    board = site.board
    board.add("build")
    child.ask("board.pause_claims('first', seconds=600) and 0")
    (pause,) = board.pauses()
    assert pause.until is not None
    assert abs(pause.until - time.time() - 600) < NEAR
    assert child.ask("[pause.reason for pause in board.pauses()]") == ["first"]
    assert child.ask("board.claim()") == "Paused"
    assert child.ask(f"len(board.resume_claims(['{pause.name}']))") == 1
    board.pause_claims("second", seconds=1)
    assert child.ask("board.wait_for(board.claim, 60).id") == "build"


def test_ages_and_purges_go_by_the_board(child: Child, site: Site) -> None:
    board = site.board
    for ident in ("over", "waits"):
        board.add(ident)
    claim = board.claim("over")
    assert claim is not None
    claim.done()
    ages = child.ask("[entry.age for entry in board.entries()]")
    assert len(ages) == 2
    assert all(0 <= age < NEAR for age in ages), ages
    assert child.ask("board.purge(600)") == 0
    assert child.ask("board.purge(0)") == 1


def test_its_events_have_the_time_of_the_board(child: Child, site: Site) -> None:
    child.ask("board.add('build') and 0")
    child.ask("board.claim('build').done() and 0")
    assert all(abs(event.at - time.time()) < NEAR for event in site.board.log.of("build"))
