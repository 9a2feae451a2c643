"""Operators over `/v1`: acts by exact name, many at once, pauses, and what everyone may follow."""

from __future__ import annotations

from urllib.parse import quote

import pytest

import dibs
from tests.serve.http_client import HttpClient, until
from tests.serve.server_process import ServerProcess


@pytest.fixture
def worker(server: ServerProcess) -> HttpClient:
    return server.client("ann")


@pytest.fixture
def operator(server: ServerProcess) -> HttpClient:
    return server.client("olga", "operator")


def named(name: str, verb: str) -> str:
    return f"/v1/names/{quote(name, safe='')}/{verb}"


def test_acts_take_the_exact_name_that_was_seen(worker: HttpClient, operator: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    raised = operator.post(named("a.available", "prioritize"), {"priority": 9})
    assert raised["task"]["name"] == "a.f0p9.available"
    late = operator.ask("POST", named("a.available", "park"), {"reason": "x"})
    assert (late.status, late.code) == (409, "changed")
    assert late.data["details"]["now"][0]["claim"] == "a.f0p9.available"
    inexact = operator.ask("POST", named("a", "park"), {"reason": "x"})
    assert (inexact.status, inexact.code) == (400, "not_exact")
    parked = operator.post(named("a.f0p9.available", "park"), {"reason": "not now"})
    assert parked["task"]["state"] == "failed"
    back = operator.post(named(parked["task"]["name"], "requeue"), {"reason": "now"})
    assert back["task"]["state"] == "available"
    steps = operator.get("/v1/undo?id=a")["steps"]
    assert steps[0][0]["verb"] == "requeue"
    assert steps[0][0]["why_not"] == ""
    undone = operator.post(named(back["task"]["name"], "undo"), {"before": parked["task"]["name"]})
    assert undone["task"]["state"] == "failed"
    history = operator.get("/v1/tasks/a")["history"]
    assert {event["by"] for event in history if event["verb"] != "add"} == {"olga"}


def test_a_worker_may_not_act_on_what_others_have(worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    for verb, body in (
        ("park", {"reason": "x"}),
        ("force-release", {"reason": "x"}),
        ("requeue", {}),
        ("prioritize", {"priority": 1}),
    ):
        refused = worker.ask("POST", named("a.available", verb), body)
        assert (refused.status, refused.code) == (403, "forbidden")


def test_an_act_on_many_has_a_plan_and_a_ledger(worker: HttpClient, operator: HttpClient) -> None:
    for ident in ("a", "b", "c"):
        worker.post("/v1/tasks", {"id": ident})
    listed = ["a.available", "b.available", "c.available", "d.available"]
    worker.post("/v1/claims", {"id": "c"})
    plan = operator.post("/v1/plan", {"act": "park", "names": listed})
    assert [row["status"] for row in plan["plan"]] == ["ready", "ready", "changed", "changed"]
    assert operator.get("/v1/tasks?state=available")["total"] == 2
    body = {"act": "park", "names": listed, "reason": "freeze"}
    found = operator.post("/v1/acts", body)
    assert [row["status"] for row in found["ledger"]] == ["done", "done", "refused", "gone"]
    assert found["counts"] == {"done": 2, "refused": 1, "gone": 1}
    steps = operator.get("/v1/undo")["steps"]
    assert sorted(event["id"] for event in steps[0]) == ["a", "b"], "one step for `undo --all`"
    silent = operator.ask("POST", "/v1/acts", {"act": "park", "names": listed})
    assert (silent.status, silent.code) == (400, "missing_field")


def test_an_empty_text_among_names_is_refused_as_no_name(operator: HttpClient) -> None:
    for path, body in (
        ("/v1/plan", {"act": "park", "names": [""]}),
        ("/v1/entries", {"names": [""]}),
        ("/v1/acts", {"act": "park", "names": [""], "reason": "freeze"}),
    ):
        refused = operator.ask("POST", path, body)
        assert (refused.status, refused.code) == (400, "not_exact"), path


def test_a_pause_stops_claims_until_it_is_ended(worker: HttpClient, operator: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    pause = operator.post("/v1/pauses", {"reason": "deploy", "seconds": 3600})["pause"]
    assert pause["by"] == "olga"
    refused = worker.ask("POST", "/v1/claims", {})
    assert (refused.status, refused.code) == (409, "paused")
    assert "deploy" in refused.data["error"]
    assert [one["name"] for one in worker.get("/v1/pauses")["pauses"]] == [pause["name"]]
    ended = operator.post("/v1/pauses/resume", {"names": [pause["name"]]})["ended"]
    assert [one["name"] for one in ended] == [pause["name"]]
    assert worker.post("/v1/claims")["status"] == "claimed"


def test_upkeep_is_done_over_the_port(
    server: ServerProcess, worker: HttpClient, operator: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    claim = quote(worker.post("/v1/claims")["claim"], safe="")
    worker.post(f"/v1/claims/{claim}/done")
    assert operator.post("/v1/reap")["reaped"]["tasks"] == []
    assert operator.get("/v1/check")["findings"] == []
    assert operator.post("/v1/purge", {"older_than": 0}) == {"purged": 1}
    assert operator.post("/v1/forget", {"ids": ["a"]})["ledger"] == [
        {"id": "a", "status": "forgotten"}
    ]
    worker.post("/v1/tasks", {"id": "a"})


def test_the_board_as_a_whole_is_what_the_library_says(
    server: ServerProcess, worker: HttpClient, operator: HttpClient
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    worker.post("/v1/claims", {"metadata": "m"})
    board = dibs.open(server.board)
    found = worker.get("/v1/snapshot")["snapshot"]
    assert set(found["tasks"]) == set(board.snapshot(ended=False).tasks)
    assert found["holders"][next(iter(found["holders"]))]["metadata"] == "m"
    about = worker.get("/v1/board")
    assert about["settings"]["ttl"] == board.settings.ttl
    assert about["capabilities"] == sorted(board.capabilities)
    totals = worker.get("/v1/log/totals")
    assert totals["totals"]["claims"] == 1
    since = worker.get(f"/v1/log/since?cursor={totals['end']}")
    assert since["events"] == []
    worker.post("/v1/tasks", {"id": "b"})
    since = worker.get(f"/v1/log/since?cursor={since['cursor']}")
    assert [event["id"] for event in since["events"]] == ["b"]
    page = worker.get("/v1/log?limit=2")
    assert [event["verb"] for event in page["events"]] == ["add", "claim"]
    rest = worker.get(f"/v1/log?limit=2&skip={page['next']}&until={page['until']}")
    assert next(event["verb"] for event in rest["events"]) == "add"
    assert "dibs_tasks" in worker.ask("GET", "/metrics").text


def test_no_client_writes_what_dibs_itself_writes_into_the_log(
    worker: HttpClient, operator: HttpClient
) -> None:
    assert worker.post("/v1/log", {"verb": "report", "text": "begins"})["status"] == "noted"
    assert worker.ask("POST", "/v1/log", {"verb": "ledger", "text": "x"}).code == "forbidden"
    for client, verb in ((worker, "purge"), (operator, "pause"), (operator, "reap")):
        refused = client.ask("POST", "/v1/log", {"verb": verb, "text": "x"})
        assert (refused.status, refused.code) == (400, "bad_name")


def test_events_begin_with_a_snapshot_and_go_on_from_a_cursor(
    worker: HttpClient, server: ServerProcess
) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    with worker.stream("/v1/events") as events:
        first = events.next()
        assert first.name == "snapshot"
        assert [row["id"] for row in first.data["tasks"]] == ["a"]
        worker.post("/v1/tasks", {"id": "b"})
        added = events.next("add")
        assert added.data["id"] == "b"
        dibs.open(server.board).add("c")
        assert events.next("add").data["id"] == "c"
    worker.post("/v1/tasks", {"id": "d"})
    with worker.stream(f"/v1/events?cursor={added.id}") as events:
        assert [events.next().data["id"] for _ in range(2)] == ["c", "d"]
        worker.post("/v1/tasks", {"id": "e"})
        assert events.next().data["id"] == "e"
    with worker.stream("/v1/events", {"Last-Event-ID": first.id}) as events:
        assert [events.next().data["id"] for _ in range(4)] == ["b", "c", "d", "e"]
    bad = worker.ask("GET", "/v1/events?cursor=nonsense")
    assert (bad.status, bad.code) == (400, "invalid_query")


def test_a_watch_of_the_board_sends_all_of_it_and_then_each_delta(worker: HttpClient) -> None:
    worker.post("/v1/tasks", {"id": "a"})
    with worker.stream("/v1/watch") as deltas:

        def added() -> set[str]:
            return {task["id"] for task in deltas.next("delta").data["added"]}

        until(lambda: "a" in added())
        worker.post("/v1/tasks", {"id": "b"})
        until(lambda: "b" in added())


def test_a_revoked_token_is_refused_at_once_and_its_streams_end(
    server: ServerProcess, worker: HttpClient
) -> None:
    from tests.serve.server_process import run_dibs

    other = server.client("eve")
    other.post("/v1/tasks", {"id": "a"})
    with other.stream("/locks/watch") as locks, other.stream("/v1/events") as events:
        run_dibs(server.board, "token", "rm", "eve")
        refused = other.ask("GET", "/v1/tasks")
        assert (refused.status, refused.code) == (401, "unauthorized")
        worker.post("/locks/x/acquire")
        assert locks.ended()
        assert events.ended()
