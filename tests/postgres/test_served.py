"""A server before a database whose rows, connections or network are in someone else's hands."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest

import dibs
from dibs.board import locate
from dibs.model.hooks import Hook
from dibs.postgres import waiting
from dibs.serve import hook_sender, storage
from dibs.serve.deliveries import HookPlace
from dibs.serve.hook_sender import HookSenders, HookTarget
from dibs.serve.problems import Refusal
from dibs.serve.route_table import Made
from dibs.serve.service import Service, Wording
from dibs.serve.tokens import Principal, Role
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy
from tests.serve.http_client import HttpClient, Reply, until
from tests.serve.server_process import ServerProcess


@contextmanager
def serving(where: str, folder: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(folder / "served", where=where)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def forgotten(where: str, ident: str) -> Iterator[None]:
    """A transaction that someone began in psql, and forgot: it has the row of a claim."""
    with psycopg.connect(where) as other:
        other.execute("SELECT 1 FROM dibs.claim WHERE eid = %s FOR UPDATE", (ident,))
        yield


def backends(site: Site) -> set[int]:
    """The processes that the server of the database has for dibs."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'dibs' AND datname = %s"
    return {pid for (pid,) in site.sql(query, site.database)}


def connections(site: Site) -> int:
    """How many connections dibs has to the database."""
    return len(backends(site))


@pytest.fixture
def no_collector() -> Iterator[None]:
    """No garbage is collected meanwhile: in a server that is idle, that takes hours."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def others_are_served(client: HttpClient, ident: str) -> None:
    """What has nothing to do with the row that is locked is answered as always."""
    client.post("/v1/tasks", {"id": ident})
    claim = client.post("/v1/claims", {"id": ident})["claim"]
    client.post(f"/v1/claims/{claim}/beat")
    lock = client.post(f"/locks/lock-{ident}/acquire")
    client.post(f"/locks/lock-{ident}/renew", {"lease_id": lock["lease_id"]})
    client.get("/v1/tasks")
    client.post(f"/v1/claims/{claim}/done")
    assert client.ask("GET", "/health").status == 200


def test_a_row_that_someone_locked_holds_up_only_what_is_about_it(
    site: Site, tmp_path: Path
) -> None:
    with serving(site.where, tmp_path) as server, ThreadPoolExecutor(40) as pool:
        client = server.client("olga", "operator")
        lease = client.post("/locks/l1/acquire", {"ttl_seconds": 3600})["lease_id"]
        session = client.post("/sessions", {"ttl_seconds": 300})["session_id"]

        def renew() -> Reply:
            return client.ask("POST", "/locks/l1/renew", {"lease_id": lease})

        with forgotten(site.where, "l1"), client.stream("/locks/watch") as stream:
            stream.next("snapshot")
            blocked = [pool.submit(renew) for _ in range(30)]
            others_are_served(client, "a")
            client.post(f"/sessions/{session}/keepalive")
            assert stream.next("acquired").data["name"] == "lock-a"
            assert not all(each.done() for each in blocked), "nothing was held up"
            others_are_served(client, "b")
            replies = [each.result(PATIENCE) for each in blocked]
            assert {reply.status for reply in replies} == {503}
            assert {reply.code for reply in replies} <= {"storage_error", "busy", "uncertain"}
            assert any("lock timeout" in reply.text for reply in replies)
        assert renew().status == 200
        assert client.get("/locks/l1")["status"] == "held"


def test_hosts_are_values_and_have_no_connections_of_their_own(site: Site, tmp_path: Path) -> None:
    with serving(site.where, tmp_path) as server:
        client = server.client("olga")
        client.post("/v1/tasks", {"id": "first"})
        client.post("/v1/claims", {"host": "host-0"})
        client.get("/v1/tasks")
        before = connections(site)
        for number in range(1, 40):
            client.post("/v1/tasks", {"id": f"t{number}"})
            claim = client.post("/v1/claims", {"host": f"host-{number}"})
            assert claim["record"]["host"] == f"host-{number}"
        assert connections(site) == before
        operator = server.client("op", "operator")
        operator.post("/v1/pauses", {"reason": "x", "host": "host-7"})
        client.post("/v1/tasks", {"id": "last"})
        assert client.ask("POST", "/v1/claims", {"host": "host-7"}).code == "paused"
        assert client.post("/v1/claims", {"host": "host-8"})["status"] == "claimed"


def test_a_network_that_drops_all_packets_is_answered_in_time_and_survived(
    site: Site, shared_server: Server, tmp_path: Path
) -> None:
    """The silent twin of a database that is killed."""
    with (
        Proxy(shared_server.socket) as proxy,
        serving(proxy.url(site.database), tmp_path) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        client = server.client("olga", "operator")
        lease = client.post("/locks/l1/acquire", {"ttl_seconds": 3600})["lease_id"]
        client.post("/v1/tasks", {"id": "a"})
        claim = client.post("/v1/claims")["claim"]
        with client.stream("/v1/events?snapshot=false") as stream:
            proxy.stall()
            asked = [
                pool.submit(client.ask, "POST", "/locks/l1/renew", {"lease_id": lease}),
                pool.submit(client.ask, "POST", f"/v1/claims/{claim}/beat", {}),
                pool.submit(client.ask, "POST", "/v1/tasks", {"id": "b"}),
                pool.submit(client.ask, "GET", "/health"),
            ]
            for each in asked:
                assert each.result(PATIENCE).status in (200, 201, 503)
            proxy.flow()
            until(lambda: client.ask("GET", "/health").status == 200)
            until(lambda: client.ask("POST", f"/v1/claims/{claim}/done", {}).status == 200)
            assert stream.next("done").data["id"] == "a"
        assert client.post("/locks/l1/renew", {"lease_id": lease})["lease_id"] == lease


REFUSED: dict[str, Callable[[dibs.Board], object]] = {
    "a lock that is held": lambda board: board.acquire("l", owner="me"),
    "all slots are held": lambda board: board.acquire("gpu", slots=2, owner="me"),
    "a lock that is held for long": lambda board: board.acquire("l", owner="me", wait=0.3),
    "a task that is claimed": lambda board: board.claim("t", owner="me"),
    "a wait for that": lambda board: board.wait_for(partial(board.claim, "t", owner="me"), 0.3),
    "a task that is there": lambda board: board.add("t"),
    "no such task": lambda board: board.claim("nope"),
    "no such claim": lambda board: board.attach("t.00.x-0123456789").beat(),
}


@pytest.mark.usefixtures("no_collector")
def test_a_board_that_no_one_has_any_more_leaves_no_connection_also_if_it_refused(
    site: Site,
) -> None:
    holder = site.board
    holder.acquire("l", owner="other")
    for _ in range(2):
        holder.acquire("gpu", slots=2, owner="other")
    holder.add("t")
    holder.claim("t", owner="other")
    before, left = backends(site), []
    for what, ask in REFUSED.items():
        board = site.board
        with pytest.raises(dibs.DibsError):
            ask(board)
        del board
        end = time.monotonic() + 3
        while (now := backends(site)) != before and time.monotonic() < end:
            time.sleep(0.02)
        if now != before:
            left.append(what)
            before = now
    assert not left


@pytest.mark.usefixtures("no_collector")
def test_a_server_that_waits_to_send_keeps_its_one_connection(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What that one has seen of the clock shows when the lease of a sender that hangs is over."""
    board = site.board
    board.acquire("hook~ci", owner="serve-other", metadata="hook=ci folder=x", process=os.getpid())
    tries = threading.Semaphore(0)
    monkeypatch.setattr(hook_sender, "_AGAIN", 0.01)
    monkeypatch.setattr(hook_sender._Sender, "_held", lambda *_: tries.release())
    target = HookTarget(Hook("ci", "http://127.0.0.1:9/", ("add",)), b"0" * 16)
    senders = HookSenders(site.where, HookPlace(str(tmp_path)), [target], (), print)
    without = backends(site)
    senders.begin()
    try:
        assert tries.acquire(timeout=PATIENCE)
        first = backends(site)
        assert len(first - without) == 1
        for _ in range(20):
            assert tries.acquire(timeout=PATIENCE)
        assert backends(site) == first
    finally:
        senders.stop()
        senders.end(PATIENCE)
    until(lambda: backends(site) == without)


@pytest.mark.usefixtures("no_collector")
def test_threads_that_end_after_a_storm_leave_no_connections(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wording = Wording(lambda error: {}, lambda entry: {}, lambda board: "")
    who = Principal("olga", Role.OPERATOR, "", "")
    monkeypatch.setattr(waiting, "AFTER", 0)
    names = [f"l{number}" for number in range(4)]

    async def main() -> tuple[int, int, int]:
        service = Service(
            locate(site.where), str(tmp_path / "tokens"), wording, HookPlace(str(tmp_path))
        )
        await service.begin()
        run, desk = service.verbs.run, service.desk

        async def lease_of(name: str) -> str:
            found = await run(partial(desk.acquire, who, "w", name, ttl=3600))
            assert isinstance(found, Made)
            return str(found.answer["lease_id"])

        async def renew(name: str, lease: str) -> object:
            return await run(partial(desk.renew, who, "w", name, lease, None), lambda: name)

        async def waits(state: str) -> None:
            await run(partial(service.waits, "olga", "key", "web-3", None, state))

        leases = [await lease_of(name) for name in names]
        await waits("idle")
        until(lambda: connections(site) >= 3)
        calm = connections(site)
        with psycopg.connect(site.where) as other:
            other.execute("SELECT 1 FROM dibs.claim FOR UPDATE")
            asked = map(renew, names, leases)
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(each, (dibs.DibsError, Refusal)) for each in found)
            storm = connections(site)
        monkeypatch.setattr(storage, "_UNUSED", 0.0)
        await asyncio.to_thread(until, lambda: connections(site) <= calm)
        for each in zip(names, leases, strict=True):
            await renew(*each)
        await waits("paused")
        after = connections(site)
        shown = await run(lambda: service.board.waiters())
        assert [(one.owner, one.state) for one in shown] == [("web-3", "paused")]
        assert service.end(PATIENCE)
        return calm, storm, after

    calm, storm, after = asyncio.run(main())
    assert storm > calm, "no thread was left alone"
    assert after == calm
