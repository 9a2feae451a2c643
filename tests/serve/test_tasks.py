"""Tasks over `/v1`: what workers, producers and readers do with real requests."""

from __future__ import annotations

import base64
import secrets
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

import dibs
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, Reply, until
from tests.serve.server_process import ServerProcess, add_token


@pytest.fixture
def worker(server: ServerProcess) -> HttpClient:
    return server.client("ann")


@pytest.fixture
def operator(server: ServerProcess) -> HttpClient:
    return server.client("olga", "operator")


def claim_path(claim: str, verb: str) -> str:
    return f"/v1/claims/{quote(claim, safe='')}/{verb}"


def test_a_task_goes_from_add_to_done_with_its_result(
    server: ServerProcess, worker: HttpClient
) -> None:
    added = worker.ask("POST", "/v1/tasks", {"id": "a/b", "payload": "wörk", "priority": 7})
    assert added.status == 201
    assert added.data["task"]["name"] == "a=2Fb.f0p7.available"
    claim = worker.post("/v1/claims", {"owner": "web-3", "metadata": "run 7", "ttl": 60})
    assert claim["status"] == "claimed"
    assert claim["payload"] == "wörk"
    assert claim["record"]["owner"] == "ann/web-3"
    assert claim["claim"].startswith("a=2Fb.f1p7.ann-web-3-")
    beat = worker.post(claim_path(claim["claim"], "beat"), {"note": "step 1", "ttl": 90})
    assert beat["ttl"] == 90
    assert worker.post(claim_path(claim["claim"], "verify"))["status"] == "yours"
    shown = worker.get("/v1/tasks/a%2Fb")
    assert shown["tasks"][0]["note"] == "step 1"
    assert shown["tasks"][0]["evidence"]["verdict"] == "alive"
    done = worker.post(claim_path(claim["claim"], "done"), {"result": "42"})
    assert done["task"]["state"] == "done"
    again = worker.post(claim_path(claim["claim"], "done"), {"result": "42"})
    assert again["task"]["name"] == done["task"]["name"]
    name = quote(done["task"]["name"], safe="")
    assert worker.get(f"/v1/names/{name}/result") == {"result": "42"}
    history = worker.get("/v1/tasks/a%2Fb")["history"]
    assert [event["verb"] for event in history] == ["add", "claim", "done"]
    assert [event["by"] for event in history][1:] == ["ann/web-3", "ann/web-3"]


def test_a_payload_that_is_no_text_comes_as_base64(worker: HttpClient) -> None:
    data = base64.b64encode(b"\xff\x00").decode()
    worker.post("/v1/tasks", {"id": "a", "payload_base64": data})
    claim = worker.post("/v1/claims", {"id": "a"})
    assert claim["payload"] is None
    assert claim["payload_base64"] == data
    both = worker.ask("POST", "/v1/tasks", {"id": "b", "payload": "x", "payload_base64": data})
    assert (both.status, both.code) == (400, "invalid_field")


def test_nothing_to_claim_is_an_answer_and_a_held_task_a_refusal(worker: HttpClient) -> None:
    assert worker.post("/v1/claims") == {"status": "empty"}
    worker.post("/v1/tasks", {"id": "a"})
    worker.post("/v1/claims", {"id": "a", "owner": "one"})
    held = worker.ask("POST", "/v1/claims", {"id": "a"})
    assert (held.status, held.code) == (409, "held")
    assert held.data["details"]["owner"] == "ann/one"
    assert held.data["retry_after_ms"] > 1000
    unknown = worker.ask("POST", "/v1/claims", {"id": "nowhere"})
    assert (unknown.status, unknown.code) == (404, "unknown_id")


def test_an_id_is_added_once(worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    again = worker.ask("POST", "/v1/tasks", {"id": "a"})
    assert (again.status, again.code) == (409, "exists")


def test_who_waits_for_a_task_has_it_as_soon_as_it_is_added(worker: HttpClient) -> None:
    found: list[Reply] = []
    waits = threading.Thread(
        target=lambda: found.append(worker.ask("POST", "/v1/claims", {"wait": 50}))
    )
    waits.start()
    until(lambda: worker.get("/status")["waiting"] == 1)
    start = time.monotonic()
    worker.post("/v1/tasks", {"id": "a"})
    waits.join(30)
    assert found[0].data["claim"].startswith("a.f1.ann-")
    assert time.monotonic() - start < 20


def test_a_task_that_another_process_adds_ends_the_wait_too(
    server: ServerProcess, worker: HttpClient
) -> None:
    found: list[Reply] = []
    waits = threading.Thread(
        target=lambda: found.append(worker.ask("POST", "/v1/claims", {"wait": 50}))
    )
    waits.start()
    until(lambda: worker.get("/status")["waiting"] == 1)
    dibs.open(server.board).add("b")
    waits.join(30)
    assert found[0].data["claim"].startswith("b.f1.ann-")


def test_a_worker_fails_releases_and_asks(worker: HttpClient, operator: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    first = worker.post("/v1/claims", {"id": "a"})["claim"]
    failed = worker.post(claim_path(first, "fail"), {"reason": "no branch", "retry_in": 0})
    assert failed["task"]["attempts"] == 1
    second = worker.post("/v1/claims", {"id": "a"})["claim"]
    assert worker.post(claim_path(second, "release"))["task"]["state"] == "available"
    third = worker.post("/v1/claims", {"id": "a"})["claim"]
    asked = worker.post(claim_path(third, "ask"), {"question": "which branch?"})
    assert asked["task"]["state"] == "asked"
    name = quote(asked["task"]["name"], safe="")
    operator.post(f"/v1/names/{name}/answer", {"text": "main"})
    fourth = worker.post("/v1/claims", {"id": "a"})
    assert [(one["text"], one["answer"]) for one in fourth["answers"]] == [
        ("which branch?", "main")
    ]
    assert fourth["answers"][0]["answered_by"] == "olga"


def test_a_lost_claim_is_refused_with_what_is_there_now(
    worker: HttpClient, operator: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    claim = worker.post("/v1/claims")["claim"]
    name = quote(f"{claim}.claimed", safe="")
    operator.post(f"/v1/names/{name}/force-release", {"reason": "stuck"})
    for verb in ("beat", "verify", "done", "fail"):
        lost = worker.ask("POST", claim_path(claim, verb), {})
        assert (lost.status, lost.code) == (409, "lost"), verb
        assert [row["state"] for row in lost.data["details"]["now"]] == ["available"]


def test_a_worker_cannot_touch_the_claim_of_another_token(
    server: ServerProcess, worker: HttpClient, operator: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    claim = worker.post("/v1/claims")["claim"]
    other = server.client("ann-2")
    for verb, body in (("beat", {}), ("done", {}), ("ask", {"question": "x"}), ("release", {})):
        refused = other.ask("POST", claim_path(claim, verb), body)
        assert (refused.status, refused.code) == (403, "forbidden"), verb
    assert operator.post(claim_path(claim, "release"))["status"] == "released"


def test_a_worker_cannot_take_the_name_of_another_token(
    server: ServerProcess, worker: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    other = server.client("bob")
    claim = other.post("/v1/claims", {"owner": "ann/web-3"})
    assert claim["record"]["owner"] == "bob/ann/web-3"


def test_a_claim_is_resumed_after_a_restart_of_its_worker(worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    old = worker.post("/v1/claims", {"owner": "w", "metadata": "m"})["claim"]
    new = worker.post("/v1/resume", {"name": old})
    assert new["fence"] == 2
    assert new["record"]["owner"] == "ann/w"
    assert new["record"]["metadata"] == "m"
    assert worker.ask("POST", claim_path(old, "beat"), {}).code == "lost"


def test_locks_with_slots_are_acquired_renewed_and_shown(worker: HttpClient) -> None:
    first = worker.post("/v1/acquire", {"id": "gpu", "slots": 2, "owner": "one"})
    second = worker.post("/v1/acquire", {"id": "gpu", "slots": 2, "owner": "two"})
    assert {first["slot"], second["slot"]} == {1, 2}
    held = worker.ask("POST", "/v1/acquire", {"id": "gpu", "slots": 2, "owner": "three"})
    assert (held.status, held.code) == (409, "held")
    again = worker.post(
        "/v1/acquire", {"id": "gpu", "slots": 2, "lease": first["claim"], "ttl": 99}
    )
    assert (again["claim"], again["ttl"]) == (first["claim"], 99)
    assert len(worker.get("/v1/locks/gpu")["lock"]["slots"]) == 2
    assert worker.post(claim_path(first["claim"], "release"))["task"]["state"] == "free"


def test_the_output_of_the_work_is_kept_and_read_again(worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    claim = worker.post("/v1/claims")["claim"]
    data = base64.b64encode(b"compiling\n").decode()
    body = {"data_base64": data, "at": 0, "limit": 65_536}
    worker.post(claim_path(claim, "output"), body)
    found = worker.get(claim_path(claim, "output"))["output"]
    assert found == {"parts": [[0, data]], "end": 10}
    assert worker.get("/v1/tasks/a")["outputs"][0]["claim"] == claim


def test_lists_take_the_filters_of_the_command_line_and_come_in_pages(
    worker: HttpClient,
) -> None:
    for n in range(25):
        worker.post("/v1/tasks", {"id": f"t{n:02}", "priority": n % 3})
    worker.post("/v1/claims", {"id": "t00", "metadata": "ticket=7"})
    seen: list[str] = []
    after = ""
    while True:
        page = worker.get(f"/v1/tasks?limit=10{after}")
        assert page["total"] == 25
        seen += [row["id"] for row in page["tasks"]]
        if page["next"] is None:
            break
        after = f"&after={quote(page['next'])}"
    assert len(seen) == len(set(seen)) == 25
    assert seen[0] == "t00", "a claim comes first"
    mine = worker.get("/v1/tasks?filter=meta.ticket%3D7&filter=state%3Dclaimed")
    assert [row["id"] for row in mine["tasks"]] == ["t00"]
    assert mine["counts"]["available"] == 24
    assert [row["id"] for row in worker.get("/v1/tasks?state=claimed")["tasks"]] == ["t00"]
    bad = worker.ask("GET", "/v1/tasks?filter=nosuch%3D1")
    assert (bad.status, bad.code) == (400, "bad_name")
    assert worker.get("/v1/claims?key=ticket&value=7")["entries"][0]["id"] == "t00"


def test_a_request_key_makes_a_claim_only_once(worker: HttpClient) -> None:
    for ident in ("a", "b"):
        worker.post("/v1/tasks", {"id": ident})
    key = {"X-Request-Key": secrets.token_hex(8)}
    first = worker.ask("POST", "/v1/claims", {}, key)
    again = worker.ask("POST", "/v1/claims", {}, key)
    assert first.data == again.data
    assert worker.get("/v1/tasks?state=available")["total"] == 1


def test_a_claim_whose_client_has_gone_is_given_back(worker: HttpClient) -> None:
    connection = worker.connect()
    body = b'{"wait": 50}'
    connection.request("POST", "/v1/claims", body, worker.headers())
    until(lambda: worker.get("/status")["waiting"] == 1)
    connection.close()
    worker.post("/v1/tasks", {"id": "a"})
    until(lambda: worker.get("/status")["waiting"] == 0)
    until(lambda: worker.get("/v1/tasks?state=available")["total"] == 1)


def test_a_token_with_a_prefix_sees_and_takes_only_its_ids(
    server: ServerProcess, worker: HttpClient
) -> None:
    ci = HttpClient(server.url, add_token(server.board, "ci", "worker", "ci/"))
    for ident in ("other", "ci/1"):
        worker.post("/v1/tasks", {"id": ident, "priority": 9 if ident == "other" else 1})
    refused = ci.ask("POST", "/v1/tasks", {"id": "mine"})
    assert (refused.status, refused.code) == (403, "forbidden")
    assert [row["id"] for row in ci.get("/v1/tasks")["tasks"]] == ["ci/1"]
    assert ci.ask("GET", "/v1/tasks/other").code == "forbidden"
    assert ci.post("/v1/claims")["task"]["id"] == "ci/1"
    assert ci.post("/v1/claims") == {"status": "empty"}
    assert ci.ask("POST", "/locks/other/acquire", {}).code == "forbidden"
    assert ci.post("/locks/ci/x/acquire", {})["status"] == "acquired"
    seen = ci.get("/v1/snapshot")["snapshot"]
    assert {name.partition(".")[0] for name in (*seen["tasks"], *seen["holders"])} == {
        "ci=2F1",
        "ci=2Fx",
    }


def test_a_reader_only_looks(server: ServerProcess, worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    reader = server.client("rita", "reader")
    assert reader.get("/v1/tasks")["total"] == 1
    assert reader.get("/v1/tasks/a")["id"] == "a"
    for path, body in (
        ("/v1/tasks", {"id": "b"}),
        ("/v1/claims", {}),
        ("/locks/x/acquire", {}),
        ("/v1/names/a.available/park", {"reason": "x"}),
        ("/v1/pauses", {"reason": "x"}),
    ):
        refused = reader.ask("POST", path, body)
        assert (refused.status, refused.code) == (403, "forbidden"), path


def test_a_claim_whose_answer_was_lost_is_found_by_its_nonce_after_a_restart(
    server: ServerProcess, worker: HttpClient
) -> None:
    for ident in ("a", "b"):
        worker.post("/v1/tasks", {"id": ident})
    body = {"nonce": "00000000AF", "wait": 0}
    first = worker.post("/v1/claims", body)
    assert first["claim"].endswith("-00000000AF")
    again = worker.post("/v1/claims", body | {"again": True})
    assert (again["claim"], again["fence"]) == (first["claim"], first["fence"])
    other = server.client("bob").post("/v1/claims", body | {"again": True})
    assert other["claim"] != first["claim"], "another token's nonce finds nothing"
    lock = worker.post("/v1/acquire", {"id": "l", "nonce": "00000000B0"})
    found = worker.post("/v1/acquire", {"id": "l", "nonce": "00000000B0", "again": True})
    assert found["claim"] == lock["claim"]
    bad = worker.ask("POST", "/v1/claims", {"nonce": "xxxxxxxxxx"})
    assert (bad.status, bad.code) == (400, "bad_name")


def test_a_pause_of_a_host_stops_the_workers_there(
    server: ServerProcess, worker: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    server.client("olga", "operator").post("/v1/pauses", {"reason": "x", "host": "web-*"})
    refused = worker.ask("POST", "/v1/claims", {"host": "web-3"})
    assert (refused.status, refused.code) == (409, "paused")
    claim = worker.post("/v1/claims", {"host": "db-1"})
    assert claim["record"]["host"] == "db-1"


def test_a_worker_that_waits_over_the_port_is_shown_among_the_waiters(
    server: ServerProcess, worker: HttpClient
) -> None:
    waits = threading.Thread(
        target=lambda: worker.ask("POST", "/v1/claims", {"wait": 50, "owner": "w", "host": "far"})
    )
    waits.start()
    (shown,) = until(lambda: worker.get("/v1/waiters")["waiters"])
    assert (shown["owner"], shown["host"], shown["state"]) == ("ann/w", "far", "idle")
    worker.post("/v1/tasks", {"id": "a"})
    waits.join(30)
    until(lambda: not worker.get("/v1/waiters")["waiters"])


def test_who_watches_locks_hears_of_those_that_v1_acquires_and_frees(worker: HttpClient) -> None:
    with worker.stream("/locks/l/watch") as events:
        events.next("snapshot")
        claim = worker.post("/v1/acquire", {"id": "l", "ttl": 60})["claim"]
        assert events.next().name == "acquired"
        worker.post(claim_path(claim, "release"))
        assert events.next().name == "released"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/claims", {}),
        ("/v1/claims", {"wait": 30}),
        ("/v1/claims", {"id": "b"}),
        ("/v1/acquire", {"id": "gpu"}),
        ("/v1/acquire", {"id": "disk", "slots": 2}),
        ("/locks/a/acquire", {}),
    ],
)
def test_a_claim_with_a_key_is_found_again_by_another_server_and_after_a_kill(
    scratch: Path, path: str, body: dict[str, object]
) -> None:
    server, other = ServerProcess(scratch / "board"), ServerProcess(scratch / "board")
    try:
        client = server.client("ci")
        for ident in ("a1", "b", "c"):
            client.post("/v1/tasks", {"id": ident})
        key = {"X-Request-Key": "k-1"}
        made = client.post(path, body, headers=key)
        there = HttpClient(other.url, client.token)
        name = "lease_id" if "lease_id" in made else "claim"
        assert there.post(path, body, headers=key)[name] == made[name]
        stranger = other.client("another")
        if path == "/v1/claims" and "id" not in body:
            assert stranger.post(path, body, headers=key)[name] != made[name]
            second = there.post(path, body, headers={"X-Request-Key": "k-2"})
            assert second[name] != made[name]
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server = ServerProcess(scratch / "board")
        again = HttpClient(server.url, client.token).post(path, body, headers=key)
        assert again[name] == made[name]
        assert again.get("payload") == made.get("payload")
    finally:
        assert server.stop() == 0
        assert other.stop() == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/claims", {"owner": "w/9", "ttl": 7, "metadata": "m"}),
        ("/v1/acquire", {"id": "gpu", "owner": "w/9", "ttl": 7, "metadata": "m"}),
        ("/locks/a/acquire", {"ttl_seconds": 7, "metadata": "m"}),
    ],
)
def test_a_claim_whose_server_died_before_its_record_is_had_again_with_the_same_key(
    scratch: Path, path: str, body: dict[str, object]
) -> None:
    server = ServerProcess(scratch / "board")
    try:
        client = server.client("ci", agent="w/9")
        client.post("/v1/tasks", {"id": "task"})
        key = {"X-Request-Key": "k-1"}
        client.post(path, body, headers=key)
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        (record,) = (scratch / "board/.dibs/records").iterdir()
        record.unlink()  # as if the kill had come before it was written
        server = ServerProcess(scratch / "board")
        client = HttpClient(server.url, client.token, agent="w/9")
        stranger = HttpClient(server.url, client.token, agent="w-9")
        if path != "/v1/claims":
            assert "held" in stranger.ask("POST", path, body, {"X-Request-Key": "k-2"}).text
        made = client.post(path, body, headers=key)
        assert client.post(path, body, headers=key) == made
        board = dibs.open(scratch / "board")
        (row,) = board.entries(board.snapshot(), {"claimed", "held"})
        assert (row.owner, row.metadata, row.ttl) == ("ci/w/9", "m", 7)
        assert row.claim == made.get("claim", made.get("lease_id"))
    finally:
        assert server.stop() == 0


def test_a_claim_with_a_key_waits_in_line_as_any_other(server: ServerProcess) -> None:
    client = server.client("ci")
    waits = threading.Thread(
        target=lambda: found.append(
            client.post("/v1/claims", {"wait": 50}, headers={"X-Request-Key": "k"})
        )
    )
    found: list[dict[str, object]] = []
    waits.start()
    until(lambda: client.get("/status")["waiting"] == 1)
    client.post("/v1/tasks", {"id": "a"})
    waits.join(PATIENCE)
    assert found[0]["status"] == "claimed"


def test_the_log_names_the_owner_of_a_lost_claim_in_full(
    server: ServerProcess, operator: HttpClient
) -> None:
    worker = server.client("t-worker", agent="web-3")
    worker.post("/v1/tasks", {"id": "a"})
    claim = worker.post("/v1/claims")["claim"]
    name = quote(f"{claim}.claimed", safe="")
    operator.post(f"/v1/names/{name}/force-release", {"reason": "stuck"})
    assert worker.ask("POST", claim_path(claim, "done"), {}).code == "lost"
    (event,) = operator.get("/v1/log?verb=refused")["events"]
    assert (event["by"], event["reason"]) == ("t-worker/web-3", "done")


def test_an_answer_that_made_no_new_lease_says_so(worker: HttpClient) -> None:
    def acquire(metadata: str, key: str = "") -> dict[str, object]:
        headers = {"X-Request-Key": key} if key else {}
        given = {"ttl_seconds": 60, "metadata": metadata}
        found = worker.ask("POST", "/locks/nightly/acquire", given, headers=headers).data
        assert isinstance(found, dict)
        return found

    first = acquire("runner=a", key="one")
    assert (first["status"], "again" in first) == ("acquired", False)
    assert acquire("runner=a", key="one") == first, "the same request"
    again = acquire("runner=a")
    assert (again["lease_id"], again["again"]) == (first["lease_id"], True)
    other = acquire("runner=b")
    assert (other["status"], "again" in other) == ("held", False)
