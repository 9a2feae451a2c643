"""A board whose mount hangs: no error, no answer. The silent twin of a board that is away."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dibs
from tests.filesystems.hanging import Hanging
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, until
from tests.serve.server_process import ServerProcess


@pytest.fixture
def mount(scratch: Path) -> Iterator[Hanging]:
    """A board on a mount that can hang."""
    dibs.open(scratch / "below", create=True)
    found = Hanging(scratch / "below", scratch / "board")
    yield found
    found.end()


def test_while_a_mount_hangs_all_is_answered_and_afterwards_all_goes_on(
    mount: Hanging, scratch: Path
) -> None:
    server = ServerProcess(mount.place)
    client, nobody = server.client("olga", "operator"), HttpClient(server.url, None)
    lease = client.post("/locks/l1/acquire", {"ttl_seconds": 3600})["lease_id"]
    client.post("/v1/tasks", {"id": "a"})
    claim = client.post("/v1/claims")["claim"]
    try:
        with (
            ThreadPoolExecutor(60) as pool,
            client.stream("/locks/watch") as locks,
            client.stream("/v1/events") as events,
        ):
            locks.next("snapshot")
            events.next("snapshot")
            mount.hang()
            asked = [
                pool.submit(client.ask, "POST", "/locks/l1/renew", {"lease_id": lease}),
                pool.submit(client.ask, "POST", f"/v1/claims/{claim}/beat", {}),
                *(pool.submit(client.ask, "POST", "/v1/tasks", {"id": f"b{n}"}) for n in range(50)),
                pool.submit(client.ask, "GET", "/status"),
                pool.submit(client.ask, "GET", "/health"),
                pool.submit(nobody.ask, "GET", "/v1/tasks", headers={"Authorization": "Bearer x"}),
            ]
            assert nobody.ask("GET", "/").status == 200, "the page for browsers is no matter of it"
            assert nobody.ask("GET", "/v1/openapi.json").status == 200
            replies = [each.result(PATIENCE) for each in asked]
            assert {reply.status for reply in replies} == {503}
            assert client.ask("GET", "/health").status == 503
            mount.go_on()
            until(lambda: client.ask("GET", "/health").status == 200)
            assert client.post("/locks/l1/renew", {"lease_id": lease})["lease_id"] == lease
            assert client.post(f"/v1/claims/{claim}/done")["status"] == "done"
            assert locks.next("renewed").data["name"] == "l1"
            assert events.next("done").data["id"] == "a"
            added = {f"b{n}" for n in range(50)}
            for ident in added:  # each request said that it is unknown, or that it was not done
                reply = client.ask("POST", "/v1/tasks", {"id": ident})
                assert reply.status == 201 or reply.code == "exists"
            listed = {row["id"] for row in client.get("/v1/tasks?limit=1000")["tasks"]}
            assert added <= listed
    finally:
        mount.go_on()
        assert server.stop() == 0


def test_a_beat_for_a_server_does_not_try_for_as_long_as_the_lease(scratch: Path) -> None:
    dibs.open(scratch / "board", create=True)
    board = dibs.open(scratch / "board").for_host("web-7", step=0.2)
    claim = board.acquire("l1", ttl=3600)
    (scratch / "board").rename(scratch / "away")
    with pytest.raises((dibs.Uncertain, dibs.StorageError)):
        claim.beat()
    (scratch / "away").rename(scratch / "board")
    claim.beat()
    assert claim.record.host == "web-7"
