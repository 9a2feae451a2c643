"""A watch of a database misses nothing and reports nothing twice, whatever others do there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg
import pytest

import dibs
from tests.contract.test_watch import agrees, reported
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy
from tests.watched import Watched, watched

WRITERS = 4
SLOW = """
CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF random() < 0.2 THEN
    RAISE 'this commit is rolled back' USING ERRCODE = 'P0001';
  END IF;
  PERFORM pg_sleep(random() * 0.15);
  RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON dibs.event
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.slow();
"""
"""At the commit of each change: some wait, some are rolled back."""


@contextmanager
def left_open(where: str) -> Iterator[None]:
    """A transaction that has written and does not end."""
    with psycopg.connect(where) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS public.other (n int)")
        connection.execute("SELECT pg_current_xact_id()")
        yield
        connection.rollback()


def opened(where: str) -> dibs.Board:
    """The board, also if the first connections are cut."""
    while True:
        with suppress(dibs.StorageError):
            return dibs.open(where)


def change(where: str, writer: str) -> None:
    """Take tasks through some states; what the storage refuses is left as it is."""
    board = opened(where)
    for number in range(6):
        ident = f"{writer}-{number}"
        acts: list[Callable[[], object]] = [
            partial(board.add, ident),
            partial(board.prioritize, f"{ident}.available", 9),
            partial(board.park, f"{ident}.f0p9.available", "no"),
            partial(board.claim, ident, ttl=600),
        ]
        for act in acts:
            with suppress(dibs.DibsError):
                act()


def write_all(site: Site, during: Callable[[], None] = lambda: None, prefix: str = "w") -> None:
    """Several writers at once; meanwhile something else."""
    writers = [
        threading.Thread(target=change, args=(site.where, f"{prefix}{number}"))
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        during()
        for writer in writers:
            writer.join(0.05 / WRITERS)
    for writer in writers:
        writer.join(PATIENCE)


def test_a_transaction_left_open_elsewhere_holds_nothing_back(
    site: Site, shared_server: Server
) -> None:
    elsewhere = shared_server.url("postgres")
    with left_open(elsewhere), left_open(site.where), watched(site.where) as seen:
        seen.until_live()
        write_all(site)
        agrees(seen, site.where)
        assert seen.health.trouble is None
        assert len(reported(seen)) > 3 * WRITERS


def test_late_commits_and_rollbacks_are_told_apart(site: Site) -> None:
    site.sql(SLOW)
    with watched(site.where) as seen:
        seen.until_live()
        write_all(site)
        agrees(seen, site.where)
    kinds = {event.verb for event in reported(seen)}
    assert {"add", "prioritize"} <= kinds
    assert site.contradictions() == []


def test_a_killed_backend_is_replaced_and_nothing_is_missed(site: Site) -> None:
    killed = 0

    def kill() -> None:
        nonlocal killed
        rows = site.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        killed += len(rows)

    with watched(site.where) as seen:
        seen.until_live()
        for turn in range(4):
            write_all(site, kill, f"turn-{turn}-")
        agrees(seen, site.where)
    assert killed > 4


@pytest.fixture
def proxy(shared_server: Server) -> Iterator[Proxy]:
    with Proxy(shared_server.socket) as found:
        yield found


def test_a_half_open_connection_is_found_out(site: Site, proxy: Proxy) -> None:
    with watched(proxy.url(site.database)) as seen:
        seen.until_live()
        write_all(site, once(proxy.hush))
        agrees(seen, site.where)


def test_a_watch_that_hears_nothing_says_so_and_catches_up(site: Site, proxy: Proxy) -> None:
    with watched(proxy.url(site.database)) as seen:
        seen.until_live()
        proxy.stall()
        write_all(site)
        seen.until(lambda: lagging(seen))
        proxy.flow()
        agrees(seen, site.where)
        seen.until(lambda: not lagging(seen))


def test_a_claim_over_a_half_open_connection_ends_in_time(site: Site, proxy: Proxy) -> None:
    site.board.add("build")
    board = dibs.open(proxy.url(site.database))
    claim = board.claim("build", ttl=3)
    assert claim is not None
    proxy.hush()
    try:
        claim.beat()
    except dibs.Uncertain:
        assert site.board.find("build")[0].name == claim.task.name
    else:
        claim.verify()


def test_a_server_that_is_gone_is_named_and_found_again(site: Site, proxy: Proxy) -> None:
    with watched(proxy.url(site.database)) as seen:
        seen.until_live()
        proxy.refuse()
        seen.until(lambda: seen.health.trouble is not None)
        assert len(seen.health.cause.splitlines()) == 1
        write_all(site)
        proxy.listen()
        agrees(seen, site.where)
        seen.until(lambda: seen.health.trouble is None)


def lagging(seen: Watched) -> bool:
    """Whether a watch says that it is behind."""
    health = seen.health
    return bool(health.trouble) or health.lag(time.monotonic()) > 0


def once(act: Callable[[], None]) -> Callable[[], None]:
    """A function that acts at its first call only."""
    waiting = [act]
    return lambda: waiting.pop()() if waiting else None
