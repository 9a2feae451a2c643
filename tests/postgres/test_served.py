"""A server before a database whose rows, connections or network are in someone else's hands."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg

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


def connections(site: Site) -> int:
    """How many connections dibs has to the database."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dibs' AND datname = %s"
    return int(site.sql(query, site.database)[0][0])


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
