"""Behind PgBouncer in transaction mode: found out, said, and nothing is given twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.settings import Settings
from dibs_tui.app import DibsApp
from tests.contract.test_watch import agrees, transitions
from tests.patience import PATIENCE
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server
from tests.postgres.many_claims import race
from tests.postgres.pooler import Pooler, pooler, why_not
from tests.postgres.storm import Plan, settings, storm
from tests.tui.live import drive, text_of, until
from tests.watched import watched


@pytest.fixture(scope="module")
def pooled_server(shared_server: Server) -> Iterator[Pooler]:
    if reason := why_not():
        pytest.skip(f"NO POOLER WAS TRIED: {reason}")
    with pooler(shared_server) as found:
        yield found


@pytest.fixture
def pooled(shared_server: Server, pooled_server: Pooler) -> Site:
    """A board behind the pooler; the test still reaches its tables directly."""
    made = new_site(shared_server, Settings(max_attempts=1000, retry=()))
    return made._replace(where=pooled_server.url(made.database))


def test_the_dashboard_says_that_a_pooler_is_between(pooled: Site, site: Site) -> None:
    async def found(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "pooler" in text_of(app))

    async def direct(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "durable" in text_of(app))
        assert "pooler" not in text_of(app)

    drive(pooled.where, found, size=(160, 40))
    drive(site.where, direct, size=(160, 40))


def test_many_processes_get_each_task_once(pooled: Site, tmp_path: Path) -> None:
    assert race(pooled, pooled.where, 300, tmp_path) == []


def test_a_storm_breaks_nothing(
    shared_server: Server, pooled_server: Pooler, tmp_path: Path
) -> None:
    made = new_site(shared_server, settings())
    made = made._replace(where=pooled_server.url(made.database))
    verdict = storm(made, tmp_path, Plan(seconds=3, workers=3))
    assert verdict.faults == ()


def test_a_watch_misses_nothing(pooled: Site) -> None:
    with watched(pooled.where) as seen:
        seen.until_live()
        for number in range(5):
            transitions(pooled.where, f"task-{number}")
        agrees(seen, pooled.where)


def test_sessions_share_no_state(pooled: Site) -> None:
    """More clients than connections, each with an open board, take turns."""
    boards = [dibs.open(pooled.where) for _ in range(8)]
    for number in range(40):
        boards[number % 8].add(f"task-{number:02}")
    claims = [boards[number % 8].claim(owner=f"w{number % 8}", ttl=600) for number in range(40)]
    assert len({claim.id for claim in claims if claim is not None}) == 40
    lock = boards[0].acquire("door", owner="first", ttl=600)
    with pytest.raises(dibs.Held):
        boards[1].acquire("door", owner="second")
    lock.release()
    assert boards[1].acquire("door", owner="second", wait=PATIENCE).fence == 2


def test_an_isolation_level_that_cannot_be_put_back_is_refused(
    pooled: Site, shared_server: Server
) -> None:
    site = pooled._replace(where=shared_server.url(pooled.database))
    site.sql(f"ALTER DATABASE {site.database} SET default_transaction_isolation = serializable")
    with pytest.raises(dibs.StorageError, match=r"cannot be changed behind a pooler: `ALTER ROLE"):
        dibs.open(pooled.where)
    assert dibs.open(pooled.where, read_only=True).snapshot().tasks == {}
    assert dibs.open(site.where).add("a").name == "a.available"
