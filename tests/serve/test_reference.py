"""The reference and the OpenAPI document say exactly what the server does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest

from dibs.serve.openapi import answer_schema, codes_of, document
from dibs.serve.problems import CODES
from dibs.serve.route_table import OPEN, STREAM, Route, RouteTable
from dibs.serve.routes import ROUTES
from tests.serve.http_client import HttpClient
from tests.serve.server_process import ServerProcess

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text()
ROW = re.compile(r"^\| `([A-Z]+ /\S*)` \| ([a-z ]+) \| (.*?) \| (.*) \|$", re.MULTILINE)


def test_the_page_has_every_route_with_its_role_and_fields_and_no_other() -> None:
    known = {}
    for route in ROUTES:
        role = "no token" if route.kind == OPEN else route.role.word
        fields = route.body or route.query
        shown = " ".join(f"`{n}`" + "!" * f.needed for n, f in fields.items())
        known[f"{route.method} {route.path}"] = (role, shown, route.text)
    listed = [(line, (role, fields, text)) for line, role, fields, text in ROW.findall(PAGE)]
    assert len(listed) == len(dict(listed)), "no route twice"
    assert dict(listed) == known


def test_the_page_has_every_code_with_its_status() -> None:
    listed = re.findall(r"^\| (\d{3}) \| `([a-z_]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    found = {code: (int(status), text) for status, code, text in listed}
    assert found == {name: tuple(code) for name, code in CODES.items()}


def test_the_document_is_served_and_names_every_route(server: ServerProcess) -> None:
    served = HttpClient(server.url, None).get("/v1/openapi.json")
    assert served == json.loads(json.dumps(document(ROUTES)))
    assert served["openapi"].startswith("3.1")
    named = {
        f"{method.upper()} {path}" for path, found in served["paths"].items() for method in found
    }
    assert named == {f"{route.method} {route.path}" for route in ROUTES}
    for path, found in served["paths"].items():
        parts = set(re.findall(r"\{([a-z]+)\}", path))
        for operation in found.values():
            inside = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert inside == parts


def test_every_route_is_found_by_its_own_path() -> None:
    table = RouteTable(ROUTES)
    for route in ROUTES:
        raw = re.sub(r"\{[a-z]+\}", "x.f1.a-0123456789.available", route.path)
        assert table.find(route.method, raw)[0] is route


def examples(client: HttpClient) -> dict[str, tuple[str, object]]:
    """A path and a body for each route with which it succeeds, in an order in which they can."""
    for ident in ("a", "b", "c", "d", "e", "f", "g", "h"):
        client.post("/v1/tasks", {"id": ident})

    def claimed(ident: str) -> str:
        return str(client.post("/v1/claims", {"id": ident})["claim"])

    def claim(name: str, verb: str = "") -> str:
        return f"/v1/claims/{quote(name, safe='')}" + (f"/{verb}" if verb else "")

    def named(name: str, verb: str) -> str:
        return f"/v1/names/{quote(name, safe='')}/{verb}"

    lock = client.post("/locks/l/acquire")
    session = client.post("/sessions")["session_id"]
    ended = client.post("/sessions")["session_id"]
    held, asks, fails, gives = claimed("a"), claimed("b"), claimed("c"), claimed("d")
    parked = client.post(named("e.available", "park"), {"reason": "x"})["task"]["name"]
    asked = client.post(claim(claimed("f"), "ask"), {"question": "?"})["task"]["name"]
    forced = claimed("g")
    old = client.post("/v1/acquire", {"id": "gpu"})["claim"]
    raised = client.post(named("h.available", "prioritize"), {"priority": 7})["task"]["name"]
    pause = client.post("/v1/pauses", {"reason": "x", "host": "nowhere"})["pause"]["name"]
    client.post("/v1/pauses/resume", {"names": [pause]})
    keep = {"data_base64": "eA==", "at": 0, "limit": 4096}
    found: dict[str, tuple[str, object]] = {
        "POST /locks/{name}/acquire": ("/locks/m/acquire", {}),
        "POST /locks/{name}/renew": ("/locks/l/renew", {"lease_id": lock["lease_id"]}),
        "GET /locks/{name}": ("/locks/l", None),
        "POST /locks/{name}/release": ("/locks/l/release", {"lease_id": lock["lease_id"]}),
        "POST /sessions/{id}/keepalive": (f"/sessions/{session}/keepalive", {}),
        "GET /sessions/{id}": (f"/sessions/{session}", None),
        "DELETE /sessions/{id}": (f"/sessions/{ended}", None),
        "POST /v1/tasks": ("/v1/tasks", {"id": "z"}),
        "GET /v1/tasks/{id}": ("/v1/tasks/a", None),
        "POST /v1/presence": ("/v1/presence", {"key": "k", "state": "idle"}),
        "POST /v1/find": ("/v1/find", {"ids": ["a", "zz"]}),
        "GET /v1/outputs": ("/v1/outputs?id=a", None),
        "GET /v1/ages": ("/v1/ages?state=available&state=done", None),
        "GET /v1/room": ("/v1/room?most=3", None),
        "POST /v1/claims": ("/v1/claims", {"id": "z"}),
        "POST /v1/acquire": ("/v1/acquire", {"id": "disk", "slots": 2}),
        "POST /v1/resume": ("/v1/resume", {"name": old}),
        "GET /v1/locks/{id}": ("/v1/locks/gpu", None),
        "GET /v1/claims/{name}": (claim(held), None),
        "POST /v1/claims/{name}/beat": (claim(held, "beat"), {"note": "n"}),
        "POST /v1/claims/{name}/note": (claim(held, "note"), {"text": "n"}),
        "POST /v1/claims/{name}/release-unconfirmed": (claim(held, "release-unconfirmed"), {}),
        "POST /v1/claims/{name}/verify": (claim(held, "verify"), {}),
        "POST /v1/claims/{name}/output": (claim(held, "output"), keep),
        "GET /v1/claims/{name}/output": (claim(held, "output"), None),
        "GET /v1/names/{name}/payload": (named(f"{held}.claimed", "payload"), None),
        "GET /v1/names/{name}/holder": (named(f"{held}.claimed", "holder"), None),
        "GET /v1/names/{name}/evidence": (named(f"{held}.claimed", "evidence"), None),
        "GET /v1/names/{name}/questions": (named(asked, "questions"), None),
        "POST /v1/claims/{name}/done": (claim(held, "done"), {"result": "r"}),
        "GET /v1/names/{name}/result": (named(f"done/{held}", "result"), None),
        "POST /v1/claims/{name}/ask": (claim(asks, "ask"), {"question": "?"}),
        "POST /v1/claims/{name}/fail": (claim(fails, "fail"), {"reason": "x"}),
        "POST /v1/claims/{name}/release": (claim(gives, "release"), {}),
        "POST /v1/names/{name}/force-release": (
            named(f"{forced}.claimed", "force-release"),
            {"reason": "x"},
        ),
        "GET /v1/names/{name}/requeueable": (named(parked, "requeueable"), None),
        "POST /v1/names/{name}/requeue": (named(parked, "requeue"), {}),
        "POST /v1/names/{name}/park": (named("g.f1.available", "park"), {"reason": "x"}),
        "POST /v1/names/{name}/answer": (named(asked, "answer"), {"text": "x"}),
        "POST /v1/names/{name}/undo": (named(raised, "undo"), {"before": "h.available"}),
        "POST /v1/names/{name}/prioritize": (named("h.available", "prioritize"), {"priority": 1}),
        "POST /v1/plan": ("/v1/plan", {"act": "park", "names": ["x.available"]}),
        "POST /v1/acts": ("/v1/acts", {"act": "park", "names": ["x.available"], "reason": "x"}),
        "POST /v1/resolve": ("/v1/resolve", {"text": "x\n"}),
        "POST /v1/pauses": ("/v1/pauses", {"reason": "x", "host": "nowhere"}),
        "POST /v1/pauses/resume": ("/v1/pauses/resume", {"names": []}),
        "POST /v1/purge": ("/v1/purge", {"older_than": 0}),
        "POST /v1/forget": ("/v1/forget", {"ids": ["a"]}),
        "POST /v1/deliveries": ("/v1/deliveries", {"act": "send", "ids": []}),
        "POST /v1/entries": ("/v1/entries", {"names": [raised]}),
        "GET /v1/claims": ("/v1/claims?key=x&value=y", None),
        "POST /v1/log": ("/v1/log", {"verb": "report", "text": "x"}),
    }
    return found


SPECIAL = {"POST /v1/names/{name}/reap", "POST /v1/undo"}
"""Routes whose success needs an expired claim or a pause as the last act; other tests have them."""


def test_every_answer_is_what_the_document_says(server: ServerProcess) -> None:
    client = server.client("olga", "operator")
    given = examples(client)
    plain = [r for r in ROUTES if f"{r.method} {r.path}" not in given and r.kind != STREAM]
    lines = [*given, *(f"{r.method} {r.path}" for r in plain)]
    by_line = {f"{route.method} {route.path}": route for route in ROUTES}
    for line in lines:
        if line in SPECIAL:
            continue
        route = by_line[line]
        path, body = given.get(line, (route.path, None if route.method == "GET" else {}))
        reply = client.ask(route.method, path, body)
        assert reply.status == route.status, (line, reply)
        if route.answer:
            jsonschema.validate(reply.data, answer_schema(route))
        assert "x-request-id" in reply.headers


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_what_is_wrong_is_refused_with_a_code_that_the_document_names(
    module_server: ServerProcess, operator: HttpClient, route: Route
) -> None:
    path = re.sub(r"\{[a-z]+\}", "x.f1.a-0123456789.available", route.path)
    bad: list[tuple[str, object, bytes | None]] = [(f"{path}?nosuch=1", None, None)]
    if route.method == "POST":
        bad = [
            (path, {"nosuch": 1}, None),
            (path, None, b"[1]"),
            (path, None, b'{"a":' + b"9" * 5000 + b"}"),
            (f"{path}?x=1", {}, None),
        ]
        values: tuple[object, ...] = (None, [], {}, -1, 1e300, "\ud800", "\x00" * 9, True, [[]])
        for name in route.body:
            for value in values:
                bad.append((path, {name: value}, None))
    allowed = codes_of(route)
    for where, body, raw in bad:
        reply = operator.ask(route.method, where, body, raw=raw)
        if route.kind == OPEN:
            assert reply.status == 200
            continue
        assert reply.status != 500, (where, body, reply)
        if reply.status >= 400:
            assert reply.code in allowed, (where, body, reply)
            assert CODES[reply.code].status == reply.status
            jsonschema.validate(
                reply.data,
                document(ROUTES)["components"]["schemas"]["Refusal"],  # type: ignore[index]
            )
        elif route.answer:
            jsonschema.validate(reply.data, answer_schema(route))
