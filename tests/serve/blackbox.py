"""What a client of OctoStore's language may rely on, checked against any address.

python -m tests.serve.blackbox URL TOKEN

It needs a token of a worker without a prefix, and uses only names that begin with `blackbox-` and a
random number. The two principals are two agents, A and B, that share the token.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

from tests.serve.http_client import HttpClient, Reply, until

CHECKS: list[Callable[[Bench], None]] = []
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").fullmatch


class Bench:
    """A server, and two agents that know it."""

    def __init__(self, url: str, token: str) -> None:
        self.plain = HttpClient(url, token)
        """The token without an agent's name, as a loop with curl uses it."""
        self.a, self.b = self.plain.as_agent("A"), self.plain.as_agent("B")
        self.root = f"blackbox-{secrets.token_hex(4)}"
        self._names = 0

    def name(self) -> str:
        """The name of a lock that no one has used."""
        self._names += 1
        return f"{self.root}/{self._names}"

    def acquire(self, client: HttpClient, name: str, **body: object) -> Reply:
        """Ask for a lock."""
        return client.ask("POST", f"/locks/{name}/acquire", body)

    def hold(self, client: HttpClient, name: str, **body: object) -> dict[str, object]:
        """Acquire a lock."""
        found = self.acquire(client, name, **body)
        assert found.status == 200, found
        assert found.data["status"] == "acquired", found
        return dict(found.data)

    def refuse(self, reply: Reply, status: int, code: str) -> Reply:
        """Check a refusal in all its parts."""
        assert reply.status == status, reply
        data = reply.data
        assert data["code"] == code, data
        assert isinstance(data["error"], str), data
        assert data["error"], data
        assert isinstance(data["details"], dict), data
        assert data["request_id"] == reply.headers["x-request-id"], data
        assert set(data) <= {"error", "code", "details", "request_id", "retry_after_ms"}, data
        return reply


def check(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
    CHECKS.append(function)
    return function


def at(text: object) -> float:
    """A time of an answer in unix seconds."""
    assert isinstance(text, str), text
    assert _TIME(text), text
    return datetime.fromisoformat(text).timestamp()


# Acquire


@check
def a_free_lock_is_acquired_with_every_field(bench: Bench) -> None:
    found = bench.hold(bench.a, bench.name(), ttl_seconds=30, metadata="run 7")
    assert found["metadata"] == "run 7"
    assert isinstance(found["lease_id"], str)
    assert found["lease_id"]
    assert isinstance(found["fencing_token"], int)
    assert found["fencing_token"] >= 1
    assert 25 < at(found["expires_at"]) - time.time() < 35
    assert isinstance(found["renew_after_ms"], int)
    assert 0 < found["renew_after_ms"] < 30_000


@check
def the_second_agent_is_told_who_holds_the_lock(bench: Bench) -> None:
    name = bench.name()
    mine = bench.hold(bench.a, name, ttl_seconds=30, metadata="mine")
    found = bench.acquire(bench.b, name, ttl_seconds=30)
    assert found.status == 200, found
    assert found.data["status"] == "held", found
    assert found.data["metadata"] == "mine"
    assert found.data["holder_id"].endswith("A")
    assert abs(at(found.data["expires_at"]) - at(mine["expires_at"])) < 2
    assert 0 < found.data["retry_after_ms"] <= 30_000
    assert "lease_id" not in found.data, "the lease is a secret of its holder"


@check
def the_same_agent_gets_the_lease_that_it_has(bench: Bench) -> None:
    name = bench.name()
    first = bench.hold(bench.a, name, metadata="x")
    again = bench.hold(bench.a, name, metadata="x")
    assert (first["lease_id"], first["fencing_token"]) == (
        again["lease_id"],
        again["fencing_token"],
    )


@check
def one_token_with_other_metadata_is_another_holder(bench: Bench) -> None:
    name = bench.name()
    bench.hold(bench.plain, name, metadata="agent-1")
    assert bench.acquire(bench.plain, name, metadata="agent-2").data["status"] == "held"
    assert bench.acquire(bench.plain, name, metadata="agent-1").data["status"] == "acquired"


@check
def an_agent_is_the_same_whatever_its_metadata_say(bench: Bench) -> None:
    name = bench.name()
    first = bench.hold(bench.a, name, metadata="step 1")
    again = bench.hold(bench.a, name, metadata="step 2")
    assert first["lease_id"] == again["lease_id"]
    assert again["metadata"] == "step 2"
    assert bench.a.get(f"/locks/{name}")["metadata"] == "step 2"


@check
def an_empty_body_means_the_defaults(bench: Bench) -> None:
    reply = bench.a.ask("POST", f"/locks/{bench.name()}/acquire")
    assert reply.data["status"] == "acquired", reply
    assert 50 < at(reply.data["expires_at"]) - time.time() < 65
    assert reply.data["metadata"] is None


@check
def fencing_tokens_grow_with_every_lease(bench: Bench) -> None:
    name, last = bench.name(), 0
    for client in (bench.a, bench.b, bench.a):
        found = bench.hold(client, name)
        fence = found["fencing_token"]
        assert isinstance(fence, int)
        assert fence > last
        last = fence
        client.post(f"/locks/{name}/release", {"lease_id": found["lease_id"]})


@check
def only_one_of_many_gets_the_lock(bench: Bench) -> None:
    name = bench.name()
    found: list[str] = []

    def ask(number: int) -> None:
        found.append(bench.acquire(bench.plain.as_agent(f"n{number}"), name).data["status"])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["acquired"] + ["held"] * 11


# Renew and release


@check
def a_renewal_without_a_ttl_keeps_the_leases_own(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=200)
    found = bench.a.post(f"/locks/{name}/renew", {"lease_id": held["lease_id"]})
    assert found["lease_id"] == held["lease_id"]
    assert 195 < at(found["expires_at"]) - time.time() < 205
    assert 0 < found["renew_after_ms"] < 200_000


@check
def a_renewal_with_a_ttl_changes_it(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=20)
    body = {"lease_id": held["lease_id"], "ttl_seconds": 600}
    found = bench.a.post(f"/locks/{name}/renew", body)
    assert 590 < at(found["expires_at"]) - time.time() < 605
    assert 590 < at(bench.b.get(f"/locks/{name}")["expires_at"]) - time.time() < 605


@check
def a_renewal_after_most_of_the_lease_still_counts(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=3)
    time.sleep(2.7)
    found = bench.a.post(f"/locks/{name}/renew", {"lease_id": held["lease_id"]})
    assert at(found["expires_at"]) - time.time() > 2


@check
def a_released_lock_is_free(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name)
    reply = bench.a.ask("POST", f"/locks/{name}/release", {"lease_id": held["lease_id"]})
    assert reply.status == 200, reply
    assert bench.b.get(f"/locks/{name}")["status"] == "free"
    assert bench.acquire(bench.b, name).data["status"] == "acquired"


@check
def a_second_release_is_not_current(bench: Bench) -> None:
    name = bench.name()
    body = {"lease_id": bench.hold(bench.a, name)["lease_id"]}
    bench.a.post(f"/locks/{name}/release", body)
    bench.refuse(bench.a.ask("POST", f"/locks/{name}/release", body), 409, "lease_not_current")


@check
def a_renewal_by_another_agent_is_not_current(bench: Bench) -> None:
    name = bench.name()
    body = {"lease_id": bench.hold(bench.a, name)["lease_id"]}
    bench.refuse(bench.b.ask("POST", f"/locks/{name}/renew", body), 409, "lease_not_current")
    bench.refuse(bench.b.ask("POST", f"/locks/{name}/release", body), 409, "lease_not_current")
    assert bench.a.get(f"/locks/{name}")["status"] == "held"


@check
def a_lease_that_never_was_is_not_current(bench: Bench) -> None:
    name = bench.name()
    bench.hold(bench.a, name)
    for lease in ("no", "550e8400-e29b-41d4-a716-446655440000", "x.f1.a-0123456789", "../x", " "):
        for verb in ("renew", "release"):
            reply = bench.a.ask("POST", f"/locks/{name}/{verb}", {"lease_id": lease})
            bench.refuse(reply, 409, "lease_not_current")


@check
def a_lease_of_another_lock_is_not_current(bench: Bench) -> None:
    one, other = bench.name(), bench.name()
    body = {"lease_id": bench.hold(bench.a, one)["lease_id"]}
    bench.hold(bench.a, other)
    bench.refuse(bench.a.ask("POST", f"/locks/{other}/release", body), 409, "lease_not_current")


@check
def an_expired_lease_is_not_current_and_the_next_has_the_lock(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=1)
    fence = held["fencing_token"]
    time.sleep(1.1)
    found = until(lambda: _if_acquired(bench.acquire(bench.b, name)))
    assert found["fencing_token"] > fence
    body = {"lease_id": held["lease_id"]}
    bench.refuse(bench.a.ask("POST", f"/locks/{name}/renew", body), 409, "lease_not_current")
    bench.refuse(bench.a.ask("POST", f"/locks/{name}/release", body), 409, "lease_not_current")
    assert bench.b.get(f"/locks/{name}")["status"] == "held"


def _if_acquired(reply: Reply) -> dict[str, object] | None:
    return reply.data if reply.data.get("status") == "acquired" else None


# Looking


@check
def a_lock_that_was_never_used_is_free_and_not_404(bench: Bench) -> None:
    name = bench.name()
    found = bench.a.get(f"/locks/{name}")
    assert found["name"] == name
    assert found["status"] == "free"
    assert found["holder_id"] is None
    assert found["expires_at"] is None
    assert {"fencing_token", "metadata"} <= set(found)


@check
def a_held_lock_shows_its_holder_and_not_its_lease(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, metadata="why")
    found = bench.b.get(f"/locks/{name}")
    assert found["status"] == "held"
    assert found["metadata"] == "why"
    assert found["fencing_token"] == held["fencing_token"]
    assert found["holder_id"].endswith("A")
    assert str(held["lease_id"]) not in json.dumps(found)


@check
def the_list_has_the_held_locks_with_a_prefix(bench: Bench) -> None:
    base = bench.name()
    bench.hold(bench.a, f"{base}/one", metadata="1")
    bench.hold(bench.b, f"{base}/two")
    gone = bench.hold(bench.b, f"{base}/gone")
    bench.b.post(f"/locks/{base}/gone/release", {"lease_id": gone["lease_id"]})
    found = bench.a.get(f"/locks?prefix={base}/")
    assert [one["name"] for one in found["locks"]] == [f"{base}/one", f"{base}/two"]
    assert found["total"] == 2
    assert found["prefix"] == f"{base}/"
    assert found["locks"][0]["metadata"] == "1"
    assert found["locks"][0]["status"] == "held"


@check
def a_prefix_that_no_lock_has_gives_an_empty_list(bench: Bench) -> None:
    found = bench.a.get(f"/locks?prefix={bench.name()}")
    assert found["locks"] == []
    assert found["total"] == 0


@check
def health_tries_the_storage_without_a_token(bench: Bench) -> None:
    reply = HttpClient(bench.plain.url, None).ask("GET", "/health")
    assert reply.status == 200
    assert reply.data["healthy"] is True


@check
def status_says_who_asks(bench: Bench) -> None:
    found = bench.a.get("/status")
    assert found["role"] in ("worker", "operator")
    assert found["version"]


# Names


@check
def the_longest_name_is_a_name_and_a_longer_one_is_not(bench: Bench) -> None:
    name = f"{bench.root}-{'n' * 256}"[:256]
    held = bench.hold(bench.a, name)
    assert bench.b.get(f"/locks/{name}")["status"] == "held"
    assert bench.acquire(bench.b, name).data["status"] == "held"
    bench.a.post(f"/locks/{name}/release", {"lease_id": held["lease_id"]})
    bench.refuse(bench.acquire(bench.a, f"{name}n"), 400, "invalid_lock_name")


@check
def long_names_that_differ_only_at_the_end_are_different_locks(bench: Bench) -> None:
    base = f"{bench.root}/{'d.' * 100}"
    bench.hold(bench.a, f"{base}1")
    assert bench.acquire(bench.b, f"{base}2").data["status"] == "acquired"
    assert bench.acquire(bench.b, f"{base}1").data["status"] == "held"


@check
def every_character_of_the_alphabet_is_good(bench: Bench) -> None:
    name = f"{bench.root}/aZ09-_./x"
    bench.hold(bench.a, name)
    assert bench.b.get(f"/locks/{name}")["name"] == name
    assert bench.b.get("/locks/" + name.replace("/", "%2F"))["status"] == "held"


@check
def bad_names_are_refused_everywhere(bench: Bench) -> None:
    bad = ["a//b", "a/../b", "..", "a%20b", "a%00b", "%C3%A4", "a%3Ab", "a%2F%2Fb", "~x", "a/"]
    for name in bad:
        bench.refuse(bench.acquire(bench.a, name), 400, "invalid_lock_name")
        bench.refuse(bench.a.ask("GET", f"/locks/{name}"), 400, "invalid_lock_name")
        reply = bench.a.ask("POST", f"/locks/{name}/renew", {"lease_id": "x"})
        bench.refuse(reply, 400, "invalid_lock_name")


@check
def names_that_look_like_verbs_are_names_too(bench: Bench) -> None:
    for last in ("acquire", "watch", "renew", "release"):
        name = f"{bench.name()}/{last}"
        bench.hold(bench.a, name)
        encoded = name.replace("/", "%2F")
        assert bench.b.get(f"/locks/{encoded}")["status"] == "held"


# Bodies


@check
def a_ttl_must_be_a_whole_number_from_1_to_3600(bench: Bench) -> None:
    name = bench.name()
    bad: tuple[object, ...] = (0, -1, 3601, 1.5, "60", True, [], {}, 10**30, 1e308)
    for ttl in bad:
        bench.refuse(bench.acquire(bench.a, name, ttl_seconds=ttl), 400, "invalid_ttl")
    assert bench.a.get(f"/locks/{name}")["status"] == "free"
    for fine in (1, 3600, 242.0):
        held = bench.hold(bench.a, name, ttl_seconds=fine)
        bench.a.post(f"/locks/{name}/release", {"lease_id": held["lease_id"]})


@check
def a_renewals_ttl_is_checked_too(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name)
    for ttl in (0, 3601, "9"):
        body = {"lease_id": held["lease_id"], "ttl_seconds": ttl}
        bench.refuse(bench.a.ask("POST", f"/locks/{name}/renew", body), 400, "invalid_ttl")


@check
def metadata_has_at_most_1024_characters(bench: Bench) -> None:
    name = bench.name()
    assert bench.hold(bench.a, name, metadata="ä" * 1024)["metadata"] == "ä" * 1024
    bench.refuse(bench.acquire(bench.a, name, metadata="x" * 1025), 400, "invalid_metadata")
    for metadata in (7, ["x"], {"a": 1}):
        bench.refuse(bench.acquire(bench.a, name, metadata=metadata), 400, "invalid_metadata")


@check
def an_unknown_field_is_refused_with_its_name(bench: Bench) -> None:
    name = bench.name()
    reply = bench.acquire(bench.a, name, ttl=60)
    bench.refuse(reply, 400, "unknown_field")
    assert reply.data["details"]["field"] == "ttl"
    assert "ttl" in reply.data["error"]
    assert bench.a.get(f"/locks/{name}")["status"] == "free"


@check
def a_missing_lease_is_refused_with_the_fields_name(bench: Bench) -> None:
    for verb in ("renew", "release"):
        reply = bench.a.ask("POST", f"/locks/{bench.name()}/{verb}", {})
        bench.refuse(reply, 400, "missing_field")
        assert reply.data["details"]["field"] == "lease_id"


@check
def what_is_no_json_object_is_refused(bench: Bench) -> None:
    path = f"/locks/{bench.name()}/acquire"
    deep = b"[" * 100_000
    many = b'{"ttl_seconds":1' + b"0" * 10_000 + b"}"
    twice = b'{"ttl_seconds":1,"ttl_seconds":2}'
    for raw in (b"{", b"[]", b"7", b'"x"', b"null", b"\xff\xfe", b"{'a':1}", deep, many, twice):
        bench.refuse(bench.a.ask("POST", path, raw=raw), 400, "invalid_json")
    bench.refuse(bench.a.ask("POST", path, raw=b'{"ttl_seconds":NaN}'), 400, "invalid_json")


@check
def a_body_above_1_mib_is_refused(bench: Bench) -> None:
    path = f"/locks/{bench.name()}/acquire"
    raw = b'{"metadata":"' + b"x" * (1 << 20) + b'"}'
    bench.refuse(bench.a.ask("POST", path, raw=raw), 413, "body_too_large")


# Requests


@check
def no_token_and_a_wrong_token_are_401(bench: Bench) -> None:
    name = bench.name()
    for token in (None, "wrong", "dibs_" + "A" * 43):
        client = HttpClient(bench.plain.url, token)
        for method, path in (
            ("POST", f"/locks/{name}/acquire"),
            ("GET", f"/locks/{name}"),
            ("GET", "/locks"),
            ("GET", "/locks/watch"),
            ("POST", "/sessions"),
            ("GET", "/status"),
        ):
            reply = bench.refuse(client.ask(method, path), 401, "unauthorized")
            assert reply.headers["www-authenticate"].startswith("Bearer")
    basic = {"Authorization": "Basic eDp5"}
    bare = HttpClient(bench.plain.url, None).ask("GET", "/locks", headers=basic)
    bench.refuse(bare, 401, "unauthorized")


@check
def every_answer_has_a_request_id(bench: Bench) -> None:
    ids = {bench.a.ask("GET", f"/locks/{bench.name()}").headers["x-request-id"] for _ in range(5)}
    assert len(ids) == 5
    given = {"X-Request-Id": "my-id-7"}
    assert bench.a.ask("GET", "/locks", headers=given).headers["x-request-id"] == "my-id-7"
    missing = bench.refuse(bench.a.ask("GET", "/nowhere", headers=given), 404, "not_found")
    assert missing.data["request_id"] == "my-id-7"


@check
def another_method_is_405_and_allow_names_what_there_is(bench: Bench) -> None:
    name = bench.name()
    for method, path, allowed in (
        ("GET", f"/locks/{name}/acquire", "POST"),
        ("DELETE", f"/locks/{name}", "GET"),
        ("PUT", f"/locks/{name}/renew", "POST"),
        ("POST", "/locks", "GET"),
        ("GET", "/sessions", "POST"),
    ):
        reply = bench.refuse(bench.a.ask(method, path), 405, "method_not_allowed")
        assert reply.headers["allow"] == allowed, (path, reply.headers)


@check
def an_unknown_parameter_of_the_query_is_refused(bench: Bench) -> None:
    reply = bench.refuse(bench.a.ask("GET", "/locks?prefx=a"), 400, "invalid_query")
    assert reply.data["details"]["field"] == "prefx"


@check
def the_same_request_key_gets_the_same_answer(bench: Bench) -> None:
    name, key = bench.name(), {"X-Request-Key": secrets.token_hex(8)}
    first = bench.a.ask("POST", f"/locks/{name}/acquire", {"ttl_seconds": 30}, key)
    again = bench.a.ask("POST", f"/locks/{name}/acquire", {"ttl_seconds": 30}, key)
    assert first.data == again.data
    assert first.status == again.status == 200


@check
def a_lost_answer_to_a_release_is_recovered_with_the_key(bench: Bench) -> None:
    name, key = bench.name(), {"X-Request-Key": secrets.token_hex(8)}
    body = {"lease_id": bench.hold(bench.a, name)["lease_id"]}
    first = bench.a.ask("POST", f"/locks/{name}/release", body, key)
    other = bench.hold(bench.b, name)
    again = bench.a.ask("POST", f"/locks/{name}/release", body, key)
    assert first.status == again.status == 200
    assert first.data == again.data
    assert bench.b.get(f"/locks/{name}")["fencing_token"] == other["fencing_token"]


@check
def a_request_key_is_for_one_request(bench: Bench) -> None:
    name, key = bench.name(), {"X-Request-Key": secrets.token_hex(8)}
    bench.a.ask("POST", f"/locks/{name}/acquire", {"ttl_seconds": 30}, key)
    reply = bench.a.ask("POST", f"/locks/{name}/acquire", {"ttl_seconds": 31}, key)
    bench.refuse(reply, 409, "request_key_reused")


@check
def an_answer_that_no_one_read_leaves_no_lock_that_no_one_knows_of(bench: Bench) -> None:
    """The agent asks again after its connection broke, and has the lock that it may have got."""
    name = bench.name()
    connection = bench.a.connect()
    connection.request("POST", f"/locks/{name}/acquire", b'{"ttl_seconds":30}', bench.a.headers({}))
    connection.close()
    found = until(lambda: _if_acquired(bench.acquire(bench.a, name, ttl_seconds=30)))
    bench.a.post(f"/locks/{name}/release", {"lease_id": found["lease_id"]})
    assert bench.b.get(f"/locks/{name}")["status"] == "free"


@check
def bad_headers_are_refused(bench: Bench) -> None:
    path = f"/locks/{bench.name()}/acquire"
    for headers in ({"X-Agent": "x" * 200}, {"X-Request-Key": "k" * 200}, {"X-Agent": ""}):
        bench.refuse(bench.a.ask("POST", path, {}, headers), 400, "invalid_header")


@check
def what_is_not_http_is_refused_in_the_same_form(bench: Bench) -> None:
    parts = urlsplit(bench.plain.url)
    if parts.scheme == "https":
        return
    for raw in (b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n"):
        with socket.create_connection((parts.hostname, parts.port), 20) as connection:
            connection.sendall(raw)
            got = b""
            while chunk := connection.recv(65_536):
                got += chunk
        head, _, body = got.partition(b"\r\n\r\n")
        assert b" 400 " in head[:20], got[:200]
        assert b"x-request-id" in head.lower(), head
        assert json.loads(body)["code"] == "bad_request", body


# Watching


@check
def a_watch_of_one_lock_begins_with_a_snapshot_and_tells_each_change(bench: Bench) -> None:
    name = bench.name()
    with bench.b.stream(f"/locks/{name}/watch") as events:
        first = events.next()
        assert first.name == "snapshot"
        assert first.data["locks"][0]["status"] == "free"
        held = bench.hold(bench.a, name, metadata="w")
        found = events.next()
        assert found.name == found.data["event"] == "acquired"
        assert found.data["name"] == name
        assert found.data["fencing_token"] == held["fencing_token"]
        assert found.data["metadata"] == "w"
        assert found.data["holder_id"].endswith("A")
        body = {"lease_id": held["lease_id"]}
        bench.a.post(f"/locks/{name}/renew", body)
        assert events.next().name == "renewed"
        bench.a.post(f"/locks/{name}/release", body)
        assert events.next().name == "released"


@check
def a_watch_tells_when_a_lease_expires(bench: Bench) -> None:
    name = bench.name()
    with bench.b.stream(f"/locks/{name}/watch") as events:
        events.next("snapshot")
        bench.hold(bench.a, name, ttl_seconds=1)
        assert events.next().name == "acquired"
        assert events.next().name == "expired"


@check
def a_watch_with_a_prefix_tells_only_of_its_locks(bench: Bench) -> None:
    base = bench.name()
    bench.hold(bench.a, f"{base}/in/1")
    with bench.b.stream(f"/locks/watch?prefix={base}/in/") as events:
        first = events.next()
        assert [one["name"] for one in first.data["locks"]] == [f"{base}/in/1"]
        bench.hold(bench.a, f"{base}/out/1")
        bench.hold(bench.a, f"{base}/in/2")
        assert events.next().data["name"] == f"{base}/in/2"


# Sessions and delays


@check
def a_session_begins_lives_and_ends(bench: Bench) -> None:
    reply = bench.a.ask("POST", "/sessions", {"ttl_seconds": 30})
    assert reply.status == 201, reply
    session = reply.data["session_id"]
    assert 25 < at(reply.data["expires_at"]) - time.time() < 32
    assert reply.data["keepalive_interval_secs"] == 15
    kept = bench.a.post(f"/sessions/{session}/keepalive")
    assert kept["session_id"] == session
    assert at(kept["expires_at"]) > time.time() + 25
    shown = bench.a.get(f"/sessions/{session}")
    assert shown["active"] is True
    assert shown["lock_count"] == 0
    assert bench.a.ask("DELETE", f"/sessions/{session}").status == 204
    for method, path in (
        ("GET", f"/sessions/{session}"),
        ("POST", f"/sessions/{session}/keepalive"),
        ("DELETE", f"/sessions/{session}"),
    ):
        bench.refuse(bench.a.ask(method, path), 404, "session_not_found")


@check
def a_sessions_ttl_is_10_to_300(bench: Bench) -> None:
    for ttl in (9, 301, 10.5, "60"):
        bench.refuse(bench.a.ask("POST", "/sessions", {"ttl_seconds": ttl}), 400, "invalid_ttl")


@check
def an_ephemeral_lock_goes_with_its_session_and_another_stays(bench: Bench) -> None:
    session = bench.a.post("/sessions", {"ttl_seconds": 60})["session_id"]
    ephemeral, lasting = bench.name(), bench.name()
    bench.hold(bench.a, ephemeral, session_id=session, ephemeral=True)
    bench.hold(bench.a, lasting, session_id=session)
    assert bench.a.get(f"/sessions/{session}")["lock_count"] == 2
    assert bench.a.ask("DELETE", f"/sessions/{session}").status == 204
    assert bench.b.get(f"/locks/{ephemeral}")["status"] == "free"
    assert bench.b.get(f"/locks/{lasting}")["status"] == "held"


@check
def a_lock_of_an_unknown_session_is_refused(bench: Bench) -> None:
    name = bench.name()
    reply = bench.acquire(bench.a, name, session_id="no-such", ephemeral=True)
    bench.refuse(reply, 404, "session_not_found")
    bench.refuse(bench.acquire(bench.a, name, ephemeral=True), 400, "missing_field")
    assert bench.a.get(f"/locks/{name}")["status"] == "free"


@check
def a_lock_delay_keeps_everyone_out_after_an_expiry(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=1, lock_delay_seconds=3)
    end = at(held["expires_at"])
    assert bench.acquire(bench.b, name).data["status"] == "held"
    time.sleep(max(0.0, end - time.time()) + 0.2)
    reply = bench.refuse(bench.acquire(bench.b, name), 409, "delayed")
    available = at(reply.data["details"]["available_at"])
    assert 2 < available - end < 4
    assert reply.data["retry_after_ms"] > 0
    shown = bench.b.get(f"/locks/{name}")
    assert shown["status"] == "free"
    assert abs(at(shown["available_at"]) - available) < 1
    body = {"lease_id": held["lease_id"]}
    bench.refuse(bench.a.ask("POST", f"/locks/{name}/renew", body), 409, "lease_not_current")
    found = until(lambda: _if_acquired(bench.acquire(bench.b, name)))
    assert time.time() >= available - 0.5
    assert found["fencing_token"] != held["fencing_token"]


@check
def a_released_lock_has_no_delay(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=60, lock_delay_seconds=30)
    assert 55 < at(held["expires_at"]) - time.time() < 65
    bench.a.post(f"/locks/{name}/release", {"lease_id": held["lease_id"]})
    assert bench.acquire(bench.b, name).data["status"] == "acquired"


@check
def a_lock_delay_is_a_whole_number_from_0_to_30(bench: Bench) -> None:
    for delay in (-1, 31, 1.5, "5"):
        reply = bench.acquire(bench.a, bench.name(), lock_delay_seconds=delay)
        bench.refuse(reply, 400, "invalid_lock_delay")


# Waiting


@check
def who_waits_has_the_lock_soon_after_its_release(bench: Bench) -> None:
    name = bench.name()
    held = bench.hold(bench.a, name, ttl_seconds=60)
    found: list[Reply] = []

    def wait() -> None:
        found.append(bench.acquire(bench.b, name, wait_seconds=30))

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: bench.a.get("/status")["waiting"] > 0)
    bench.a.post(f"/locks/{name}/release", {"lease_id": held["lease_id"]})
    thread.join(20)
    assert [reply.data["status"] for reply in found] == ["acquired"]


@check
def who_waited_in_vain_is_told_who_has_it(bench: Bench) -> None:
    name = bench.name()
    bench.hold(bench.a, name)
    started = time.monotonic()
    assert bench.acquire(bench.b, name, wait_seconds=1).data["status"] == "held"
    assert time.monotonic() - started > 0.9


def run(url: str, token: str) -> int:
    """Do all checks; the number of those that failed."""
    failed = 0
    bench = Bench(url, token)
    for one in CHECKS:
        try:
            one(bench)
            print(f"ok    {one.__name__.replace('_', ' ')}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {one.__name__.replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed")
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m tests.serve.blackbox URL TOKEN")
    raise SystemExit(bool(run(*sys.argv[1:])))
