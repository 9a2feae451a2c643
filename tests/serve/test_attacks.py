"""What an attacker may try who can reach the port, without a token or with one."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import time
from pathlib import Path
from urllib.parse import quote

import pytest

import dibs
from dibs.model.events import FORMER_VERBS, LEDGER, NOTHING_MOVED, ON_BOARD
from dibs.model.hooks import EVENTS
from dibs.model.rates import TOTALS
from dibs.serve.route_table import OPEN, STREAM
from dibs.serve.routes import ROUTES
from dibs.serve.tokens import Role
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, until
from tests.serve.rights import is_allowed, parts_of
from tests.serve.server_process import ServerProcess, add_token
from tests.serve.test_safety import answers, connected

BOMB = gzip.compress(gzip.compress(b"\0" * (64 << 20)))


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def complaints(server: ServerProcess) -> list[str]:
    """The lines of a server's log, but for that of its start."""
    lines = server.log.read_text().splitlines()
    return [line for line in lines if "no token is there yet" not in line]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP", "identity, gzip", "x"])
@pytest.mark.parametrize("path", ["/v1/tasks", "/login", "/nowhere"])
def test_a_body_with_an_encoding_is_refused_unread(
    module_server: ServerProcess, operator: HttpClient, encoding: str, path: str
) -> None:
    for client in (operator, HttpClient(module_server.url, None)):
        reply = client.ask("POST", path, raw=BOMB, headers={"Content-Encoding": encoding})
        assert (reply.status, reply.code) == (415, "encoded_body")
    assert complaints(module_server) == []


def test_an_encoded_body_costs_no_time_and_leaves_no_line(server: ServerProcess) -> None:
    stranger, body = HttpClient(server.url, None), gzip.compress(b" " * (200 << 20), 1)
    stranger.ask("GET", "/health")
    before = processor_seconds(server.process.pid)
    for encoded in (body[: 1 << 20], b"no gzip at all" * 9, body[:2000] + b"\0" * 2000):
        headers = {"Content-Encoding": "gzip"}
        with contextlib.suppress(ConnectionError):  # it closes while this still sends
            reply = stranger.ask("POST", "/v1/tasks", raw=encoded, headers=headers)
            assert reply.code == "encoded_body"
    assert stranger.ask("GET", "/health").status == 200
    assert processor_seconds(server.process.pid) - before < 0.3
    assert complaints(server) == []


def test_a_body_as_it_is_may_say_so(operator: HttpClient) -> None:
    headers = {"Content-Encoding": "identity"}
    assert operator.ask("POST", "/v1/tasks", {"id": "as-it-is"}, headers).status == 201


def test_a_body_that_breaks_off_leaves_no_line(server: ServerProcess) -> None:
    client = server.client("ci")
    chunked = "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    for authorization in ("", f"Authorization: Bearer {client.token}\r\n"):
        for rest in (b"zz\r\n", b"5\r\n{", b"5\r\n{zzzzzzzz\r\n0\r\n\r\n", b"-1\r\n\r\n"):
            with connected(server) as one, contextlib.suppress(ConnectionError):
                one.sendall(f"{chunked}{authorization}\r\n".encode() + rest)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65_536):
                    pass
    assert client.get("/status")
    assert complaints(server) == []


def test_a_connection_that_asks_for_nothing_loses_its_place(scratch: Path) -> None:
    server = ServerProcess(scratch / "board", "--clients", "3")
    try:
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(connected(server)) for _ in range(3)]
            held[1].sendall(b"GET /health HTTP/1.1\r\nHost")
            held[2].sendall(b"G")
            for one in held:
                assert _is_closed(one)
        assert time.monotonic() - began < 30
        until(lambda: answers(HttpClient(server.url, None)))
        assert complaints(server) == []
    finally:
        assert server.stop() == 0


def test_connections_that_are_refused_leave_no_line(scratch: Path) -> None:
    server = ServerProcess(scratch / "board", "--clients", "1")
    try:
        with connected(server) as first:
            first.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in first.recv(65_536)
            for _ in range(20):
                with connected(server) as one, contextlib.suppress(ConnectionError):
                    one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert one.recv(1) == b""
    finally:
        assert server.stop() == 0
    assert complaints(server) == []


def _is_closed(one: socket.socket) -> bool:
    """Whether the server closes a connection, sooner or later."""
    one.settimeout(PATIENCE)
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("ident", ["session~1", "session~", "hook~ci", "hook~x.2"])
def test_no_client_makes_an_id_that_is_the_servers_own(
    module_server: ServerProcess, operator: HttpClient, ident: str
) -> None:
    worker = module_server.client(f"reserve-{ident.replace('~', '-').replace('.', '-')}")
    for client in (worker, operator):
        for path, body in (
            ("/v1/tasks", {"id": ident}),
            ("/v1/acquire", {"id": ident}),
            ("/v1/acquire", {"id": ident, "slots": 3}),
            ("/v1/claims", {"id": ident}),
            ("/v1/resume", {"id": ident}),
        ):
            reply = client.ask("POST", path, body)
            assert (reply.status, reply.code) == (403, "reserved_id"), (path, reply)
    assert module_server.client(f"s-{ident[:4]}-{len(ident)}").post("/sessions")["session_id"]


def test_a_session_is_ended_only_as_a_session(server: ServerProcess) -> None:
    client = server.client("ci")
    session = client.post("/sessions")["session_id"]
    name = session.replace("~", "%7E")
    for verb in ("release", "beat", "note", "fail"):
        body = {"text": "x"} if verb == "note" else {}
        reply = client.ask("POST", f"/v1/claims/{name}/{verb}", body)
        assert reply.code == "reserved_id", (verb, reply)
    assert client.ask("POST", "/v1/resume", {"name": session}).code == "reserved_id"
    assert client.post(f"/sessions/{session}/keepalive")["session_id"] == session


def test_sessions_go_on_beside_tasks_and_locks_that_a_shell_has_made(
    server: ServerProcess,
) -> None:
    board = dibs.open(server.board)
    board.add("session~1")
    board.acquire("session~2", ttl=600)
    board.acquire("session~3", slots=2, ttl=600)
    client = server.client("ci")
    session = client.post("/sessions")["session_id"]
    assert client.post(f"/sessions/{session}/keepalive")
    assert client.ask("DELETE", f"/sessions/{session}").status == 204


def test_a_worker_logs_its_own_words_and_none_that_hooks_send(
    module_server: ServerProcess, operator: HttpClient
) -> None:
    worker = module_server.client("logs", agent="a-1")
    own = {*EVENTS, *TOTALS, *NOTHING_MOVED, *ON_BOARD, *FORMER_VERBS} - {LEDGER}
    for client in (worker, operator):
        for verb in (*sorted(own), "Failed", "fail ed", "purge\n", " purge", "", "é"):
            reply = client.ask("POST", "/v1/log", {"verb": verb, "text": "a lie"})
            assert reply.status == 400, (verb, reply)
    for verb in (LEDGER, "hook"):
        assert worker.ask("POST", "/v1/log", {"verb": verb, "text": "x"}).code == "forbidden"
        operator.post("/v1/log", {"verb": verb, "text": "park: 1 done"})
    worker.post("/v1/log", {"verb": "report", "text": "the nightly run begins"})
    (event,) = operator.get("/v1/log?verb=report")["events"]
    assert (event["by"], event["id"], event["src"], event["dst"]) == ("logs/a-1", "", "", "")


@pytest.mark.parametrize("role", Role)
def test_a_token_with_a_prefix_is_refused_on_every_route_beyond_it(
    module_server: ServerProcess, operator: HttpClient, role: Role
) -> None:
    operator.ask("POST", "/v1/acquire", {"id": "secret-1", "metadata": "secret"})
    below = HttpClient(
        module_server.url, add_token(module_server.board, f"on-{role.word}", role.word, "mine-")
    )
    for route in ROUTES:
        if route.kind == OPEN or is_allowed(route, role, "mine-", inside=False):
            continue
        path = route.path
        for part, text in parts_of(path, "secret-1").items():
            path = path.replace(f"{{{part}}}", quote(text, safe=""))
        reply = below.ask(route.method, path, {} if route.method == "POST" else None)
        assert (reply.status, reply.code) == (403, "forbidden"), (route, reply)


def test_a_token_with_a_prefix_sees_nothing_of_the_complete_board(
    module_server: ServerProcess, operator: HttpClient
) -> None:
    """Every request that a reader may send: none shows an id, or a count, beyond the prefix."""
    for ident in ("mine-1", "secret-2", "secret-3"):
        operator.post("/v1/tasks", {"id": ident, "payload": "of secret-2"})
    held = operator.post("/v1/acquire", {"id": "secret-lock", "metadata": "key=secret"})["claim"]
    pause = operator.post("/v1/pauses", {"reason": "secret", "host": "secret-host"})["pause"]
    waits = {"key": "k", "owner": "secret-worker", "state": "idle"}
    operator.post("/v1/presence", waits)
    name = quote(f"{held}.held", safe="")
    token = add_token(module_server.board, "below", "operator", "mine-")
    below = HttpClient(module_server.url, token)
    assert below.ask("GET", "/metrics").code == "forbidden"
    for route in ROUTES:
        if route.method != "GET" or route.kind == OPEN:
            continue
        path = route.path.replace("{id}", "secret-2").replace("{name}", name)
        needed = [name for name, field in route.query.items() if field.needed]
        given = {"id": "secret-2", "state": "available", "key": "key", "value": "secret", "most": 9}
        query = "&".join(f"{name}={given[name]}" for name in needed)
        where = f"{path}?{query}" if query else path
        if route.kind == STREAM and not route.whole and "{" not in route.path:
            with below.stream(where) as stream:
                text = json.dumps(stream.next("snapshot").data)
        else:
            text = below.ask("GET", where).text
        assert "secret" not in text.replace(name, ""), (path, text)
    operator.post("/v1/pauses/resume", {"names": [pause["name"]]})
    del waits["state"]
    operator.post("/v1/presence", waits)


ORIGINS = ("http://[", "http://[::1", "//[", "null", "http://[x]:99999/", "http://x@", "\xff")
HEADERS = (
    *('Cookie: \xff=\xfe; a="\\', "X-Agent: \xff", "X-Request-Key: \xff", "Expect: 100-continue"),
    *("Last-Event-ID: \xff!", "Upgrade: websocket\r\nConnection: Upgrade", "Expect: 200-ok"),
    *("Connection: upgrade\r\nUpgrade: h2c", "Content-Type: \xff", "Range: bytes=0-"),
    *("Transfer-Encoding: gzip, chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
    *("Content-Type: text/html; charset=nonsense", "If-None-Match: \xff", "Host: x\r\nHost: [y"),
    *(f"Origin: {origin}" for origin in ORIGINS),
)
LINES = (
    *("GET /status", "POST /v1/tasks", "POST /login", "GET /", "GET /terminal", "GET /v1/events"),
    *("HEAD /v1/watch", "OPTIONS *", "CONNECT x:1", "GET http://x/status", "GET //", "GET /%zz"),
    *("GET /\xff", "GET ?x", "GET /locks/%00", "GET /v1/tasks/%ff%fe", "GET /static/board.js"),
    *(f"GET {path}?{'&'.join(['a=1'] * 150)}" for path in ("/status", "/v1/events", "/terminal")),
    f"DELETE /sessions/x?{'&'.join(['a=1'] * 150)}",
)


def test_no_request_makes_a_fault_of_the_server(server: ServerProcess) -> None:
    token = server.client("ci").token
    for line in LINES:
        for header in HEADERS:
            head = (
                f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{header}\r\n\r\n"
            )
            with connected(server) as one, contextlib.suppress(ConnectionError):
                one.sendall(head.encode("latin-1"))
                one.shutdown(socket.SHUT_WR)
                assert b" 500 " not in one.recv(4096).partition(b"\r\n")[0], (line, header)
    assert server.client("other").get("/status")
    assert complaints(server) == []


def test_a_query_with_too_many_parameters_is_refused(operator: HttpClient) -> None:
    reply = operator.ask("GET", "/v1/tasks?" + "&".join(["filter=x"] * 101))
    assert (reply.status, reply.code) == (400, "invalid_query")
