"""What the drills stand on does what it says: a server, a proxy, a pooler, a standby, a judge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dibs.model.events import Event
from tests.filesystems.remote import await_
from tests.patience import PATIENCE
from tests.postgres.cluster import Server, server
from tests.postgres.pooler import pooler
from tests.postgres.pooler import why_not as no_pooler
from tests.postgres.proxy import Loss, Proxy
from tests.postgres.replay import violations


@pytest.fixture
def table(shared_server: Server) -> Iterator[str]:
    """A database with an empty table `t`."""
    database = f"rig_{os.getpid()}"
    shared_server.create(database)
    shared_server.sql("CREATE TABLE t (n int)", database=database)
    yield database
    shared_server.sql(f"DROP DATABASE {database} WITH (FORCE)")


def test_a_server_is_private_and_leaves_nothing(shared_server: Server) -> None:
    with server() as found:
        pid, folders = found.pid, (found.folder,)
        assert found.sql("SELECT 1") == [(1,)]
        assert found.sql("SHOW listen_addresses") == [("",)]
        found.restart("immediate")
        found.kill()
        found.start()
        assert found.sql("SELECT 1") == [(1,)]
        assert found.pid != pid
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("loss", [Loss.REQUEST, Loss.ANSWER, Loss.HALF, Loss.LATE])
def test_the_proxy_loses_what_it_says(shared_server: Server, table: str, loss: Loss) -> None:
    with (
        Proxy(shared_server.socket) as proxy,
        psycopg.connect(proxy.url(table), autocommit=True) as connection,
    ):
        connection.execute("INSERT INTO t VALUES (0)")
        proxy.lose(1, loss)
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("INSERT INTO t VALUES (2)")
        assert (proxy.requests, proxy.lost) == (2, 1)
        rows = shared_server.sql("SELECT n FROM t", database=table)
        assert len(rows) == (2 if loss in (Loss.REQUEST, Loss.LATE) else 3)
        proxy.deliver()
        rows = shared_server.sql("SELECT n FROM t", database=table)
        assert len(rows) == (2 if loss is Loss.REQUEST else 3)


def test_the_proxy_stalls_refuses_and_goes_on(shared_server: Server, table: str) -> None:
    with Proxy(shared_server.socket) as proxy:
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError, match="refused"):
            psycopg.connect(proxy.url(table))
        proxy.listen()
        with psycopg.connect(proxy.url(table), autocommit=True) as connection:
            proxy.hush()
            with psycopg.connect(proxy.url(table), autocommit=True) as other:
                assert other.execute("SELECT 1").fetchall() == [(1,)]
            proxy.cut()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        proxy.stall()
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            psycopg.connect(proxy.url(table), connect_timeout=2)
        proxy.flow()
        psycopg.connect(proxy.url(table)).close()


def test_the_pooler_gives_one_connection_to_many(shared_server: Server, table: str) -> None:
    if reason := no_pooler():
        pytest.skip(f"NO POOLER WAS TRIED: {reason}")
    with pooler(shared_server, size=1) as found:
        many = [psycopg.connect(found.url(table), prepare_threshold=None) for _ in range(3)]
        pids = set()
        for each in many:
            pids |= {row[0] for row in each.execute("SELECT pg_backend_pid()").fetchall()}
            each.commit()
            each.close()
        assert len(pids) == 1


def event(verb: str, src: str, dst: str) -> Event:
    return Event(0.0, verb, "x", src, dst, "me")


STORY = [
    event("add", "", "x.available"),
    event("claim", "x.available", "x.f1.me-0123456789.claimed"),
    event("fail", "x.f1.me-0123456789.claimed", "x.f1a1.available"),
    event("claim", "x.f1a1.available", "x.f2a1.me-0123456780.claimed"),
    event("done", "x.f2a1.me-0123456780.claimed", "done/x.f2a1.me-0123456780"),
]
LAST = STORY[-1].dst
WRONG = {
    "a step is missing": (STORY[:1] + STORY[2:], LAST),
    "a step twice": ([*STORY[:2], STORY[1], *STORY[2:]], LAST),
    "the end is on the board only": (STORY[:-1], LAST),
    "the board does not know": (STORY, ""),
    "a fence again": (
        [*STORY[:3], event("claim", "x.f1a1.available", "x.f1a1.me-0123456780.claimed")],
        "x.f1a1.me-0123456780.claimed",
    ),
    "an attempt for nothing": (
        [*STORY[:2], event("release", STORY[2].src, "x.f1a1.available")],
        "x.f1a1.available",
    ),
    "done without a claim": ([STORY[0], event("done", "x.available", "done/x.f0")], "done/x.f0"),
}


def test_a_right_story_has_no_violation() -> None:
    assert list(violations(STORY, [LAST])) == []


@pytest.mark.parametrize("story", WRONG)
def test_a_wrong_story_is_found_out(story: str) -> None:
    events, last = WRONG[story]
    assert list(violations(events, [last] if last else []))


def test_a_server_ends_with_its_tests(shared_server: Server) -> None:
    """Also if they are killed."""
    root = Path(__file__).parents[2]
    code = (
        "from tests.postgres.cluster import Server\nfound = Server()\nfound.make()\n"
        "found.start()\nprint(found.pid, found.folder, flush=True)\ninput()\n"
    )
    path = os.pathsep.join(map(str, (root, root / "core", root / "tui")))
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    pid, *folders = child.stdout.readline().split()
    child.kill()
    child.wait(PATIENCE)
    child.stdout.close()
    child.stdin.close()
    await_(lambda: not Path(f"/proc/{pid}").exists(), "the server outlives its tests")
    for folder in folders:
        shutil.rmtree(folder)
