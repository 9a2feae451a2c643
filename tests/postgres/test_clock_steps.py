"""A server's clock that is set takes no claim that beats, and keeps none that is over."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

import dibs
from dibs import Verdict
from dibs.board import make_roles
from dibs.model.sample import SECOND, Sample
from dibs.postgres import hosts
from dibs.postgres.hosts import ServerClock
from tests.contract.command import Command
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.clock_steps import DRILLS, Clocks, Drill


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has seen no clock yet, as one that has just begun."""
    monkeypatch.setattr(hosts, "CLOCKS", {})


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.__name__.replace("_", " "))
def test_when_the_clock_of_the_server_is_set(site: Site, drill: Drill) -> None:
    drill(Clocks(site))


def expired_long_ago(site: Site, ttl: float, count: int = 1) -> None:
    """Claims of workers that ended ten minutes ago."""
    board = site.board
    for number in range(count):
        board.add(f"t{number}")
        board.claim(f"t{number}", owner="gone", ttl=ttl)
    site.sql("UPDATE dibs.claim SET beat = beat - 600 * 1000000000::bigint")


def watched_longer(seconds: float) -> None:
    """This process has seen all clocks for so much longer."""
    for clock in hosts.CLOCKS.values():
        with clock.lock:
            last, slow, even = clock._seen
            clock._seen = last, slow, even - int(seconds * SECOND)


@pytest.mark.usefixtures("new_process")
def test_a_watch_and_its_boards_agree_whether_an_expired_claim_is_proven(site: Site) -> None:
    expired_long_ago(site, ttl=120)
    (task,) = site.board.find("t0")
    hosts.CLOCKS.clear()
    found: SimpleQueue[Verdict] = SimpleQueue()

    def report(delta: dibs.Delta) -> None:
        for verdict in delta.stale.values():
            if verdict is not None:
                found.put(verdict)

    watch = dibs.open(site.where, read_only=True).watch(report)
    try:
        assert found.get(timeout=PATIENCE) is Verdict.UNKNOWN
        assert watch.open(read_only=True).evidence(task).verdict is Verdict.UNKNOWN
        watched_longer(120)
        assert found.get(timeout=PATIENCE) is Verdict.EXPIRED
        assert site.sql("SELECT doubted FROM dibs.claim") == [(0,)]
        opened = watch.open()  # as each act of a dashboard does
        assert opened.evidence(task).verdict is Verdict.EXPIRED
        assert opened.reap_claim(task.name).state == "available"
    finally:
        watch.stop(PATIENCE)


@pytest.mark.usefixtures("new_process")
def test_a_watch_takes_the_doubt_of_another_process_for_a_proof(site: Site) -> None:
    expired_long_ago(site, ttl=120)
    site.sql("UPDATE dibs.claim SET doubted = beat + 300 * 1000000000::bigint")
    found: SimpleQueue[dict[str, Verdict | None]] = SimpleQueue()
    hosts.CLOCKS.clear()
    watch = dibs.open(site.where).watch(
        lambda delta: found.put(dict(delta.stale)) if delta.stale else None
    )
    try:
        assert [*found.get(timeout=PATIENCE).values()] == [Verdict.EXPIRED]
    finally:
        watch.stop(PATIENCE)


def test_reap_says_how_many_expired_claims_it_left_and_reaps_them_later(site: Site) -> None:
    expired_long_ago(site, ttl=600, count=3)
    site.sql("UPDATE dibs.claim SET beat = beat - 600 * 1000000000::bigint")
    command = Command(site.where, process=True)
    left = command.run("reap")
    assert left.returncode == 0
    assert left.stdout == b""
    assert left.stderr.decode().endswith(
        "3 claims have expired, but the clock is not trusted yet: try again in 600 s\n"
    )
    first = site.sql("SELECT doubted FROM dibs.claim")
    shown = json.loads(command.run("reap", "--json").stdout)
    assert shown["status"] == "waiting"
    assert shown["claims"] == 3
    assert 0 < shown["retry"] < 600
    assert site.sql("SELECT doubted FROM dibs.claim") == first, "it was doubted again"
    site.sql("UPDATE dibs.claim SET doubted = doubted - 600 * 1000000000::bigint")
    done = command.run("reap")  # as from cron
    assert done.stderr == b""
    assert len(done.stdout.splitlines()) == 3


def test_a_login_that_may_only_look_gets_evidence_too(site: Site) -> None:
    expired_long_ago(site, ttl=120)
    reader, _, _ = make_roles(site.where)
    login = f"looks_{site.database}"
    site.sql(f"CREATE ROLE {login} LOGIN IN ROLE {reader}")
    board = dibs.open(site.where.replace("//dibs@", f"//{login}@"))
    (task,) = board.find("t0")
    assert board.evidence(task).verdict is Verdict.UNKNOWN
    assert site.sql("SELECT doubted FROM dibs.claim") == [(0,)]


def seen(at: float, ahead: float = 0.0) -> Sample:
    """A reading at this time, of a clock that is so far ahead."""
    return Sample(int((1000 + at + ahead) * SECOND), int(at * SECOND))


def test_a_reading_that_comes_late_moves_evenness_only_forward() -> None:
    clock = ServerClock()
    clock.note(seen(10), 0)
    clock.note(seen(30), 0)
    clock.note(seen(20), 0)
    assert clock.even == 10 * SECOND
    assert clock.last == seen(30)
    clock.note(seen(40, ahead=600), 0)
    clock.note(seen(35), 0)
    assert clock.even == 40 * SECOND
    assert clock.last == seen(40, ahead=600)


def test_a_long_time_without_a_reading_hides_no_step() -> None:
    clock = ServerClock()
    clock.note(seen(10), 0)
    clock.note(seen(864_000, ahead=600), 0)
    assert clock.even == 864_000 * SECOND


def test_a_forked_child_reads_on_from_what_its_parent_saw() -> None:
    clock = hosts.CLOCKS[("a parent's", None)] = ServerClock()
    clock.note(seen(10), 0)

    def in_child() -> bool:
        clock.note(seen(30), 0)
        return clock.even == 10 * SECOND

    with clock.lock:  # another thread of the parent reads just now
        assert in_fork(in_child)
    del hosts.CLOCKS[("a parent's", None)]


def in_fork(what: Callable[[], bool]) -> bool:
    """Whether it is so in a child that was forked now."""
    child = os.fork()
    if not child:
        os._exit(0 if what() else 1)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False
