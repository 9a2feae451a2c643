"""A server that is left running: floods, slow clients, its own end, and crashes."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import threading
import time
from collections import deque
from http.client import HTTPResponse
from itertools import repeat
from pathlib import Path
from urllib.parse import quote

import pytest

import dibs
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, Reply, until
from tests.serve.server_process import ServerProcess, add_token


def resident(pid: int) -> int:
    """The memory that a process uses, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def connected(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def test_sigterm_ends_it_within_5_s_with_watchers_and_waiters(server: ServerProcess) -> None:
    client = server.client("ci")
    client.post("/locks/a/acquire", {"ttl_seconds": 60})
    found: list[Reply] = []
    waits = [
        threading.Thread(
            target=lambda n=n: found.append(
                client.as_agent(f"w{n}").ask("POST", "/locks/a/acquire", {"wait_seconds": 50})
            )
        )
        for n in range(5)
    ]
    for thread in waits:
        thread.start()
    with contextlib.ExitStack() as stack:
        paths = ("/locks/watch", "/v1/events", "/v1/watch", "/locks/a/watch") * 5
        streams = [stack.enter_context(client.stream(path)) for path in paths]
        silent = stack.enter_context(connected(server))
        half = stack.enter_context(connected(server))
        half.sendall(b"POST /locks/b/acquire HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        until(lambda: client.get("/status")["waiting"] == 5)
        start = time.monotonic()
        assert server.stop() == 0
        took = time.monotonic() - start
        assert all(stream.ended() for stream in streams)
        assert silent.recv(1) == b""
    for thread in waits:
        thread.join(PATIENCE)
    assert [reply.code for reply in found] == ["shutting_down"] * 5
    assert took < 5
    assert "Traceback" not in server.log.read_text()


def test_kill_9_under_load_keeps_every_acknowledged_change(scratch: Path) -> None:
    """Clients acquire, release, claim and finish while the server is killed again and again."""
    board = scratch / "board"
    server = ServerProcess(board)
    port, token = server.port, add_token(board, "ci")
    library = dibs.open(board)
    for n in range(400):
        library.add(f"t{n}")
    over = threading.Event()
    fences: dict[str, list[int]] = {f"l{n}": [] for n in range(4)}
    released: list[tuple[str, int]] = []
    done: list[str] = []
    faults: list[str] = []

    def work(number: int) -> None:
        client = HttpClient(server.url, token, f"w{number}")
        while not over.is_set():
            with contextlib.suppress(OSError, ValueError, EOFError):
                try:
                    name = random.choice(list(fences))
                    reply = client.ask("POST", f"/locks/{name}/acquire", {"ttl_seconds": 2})
                    if reply.status == 200 and reply.data["status"] == "acquired":
                        fences[name].append(reply.data["fencing_token"])
                        body = {"lease_id": reply.data["lease_id"]}
                        if client.ask("POST", f"/locks/{name}/release", body).status == 200:
                            released.append((name, reply.data["fencing_token"]))
                    claimed = client.ask("POST", "/v1/claims", {"ttl": 5})
                    if claimed.status == 200 and claimed.data["status"] == "claimed":
                        claim = claimed.data["claim"].replace("=", "%3D")
                        ended = client.ask("POST", f"/v1/claims/{claim}/done", {"result": "ok"})
                        if ended.status == 200:
                            done.append(claimed.data["task"]["id"])
                except Exception as error:
                    if isinstance(error, OSError | ValueError | EOFError):
                        raise
                    if "RemoteDisconnected" not in repr(error) and "Incomplete" not in repr(error):
                        faults.append(repr(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        seen = len(done)
        until(lambda seen=seen: len(done) > seen + 10 or len(done) > 380)
        server.kill()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server = ServerProcess(board, listen=f"127.0.0.1:{port}")
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert server.stop() == 0
    assert not faults
    board_now = dibs.open(board)
    for ident in done:
        assert [task.state for task in board_now.find(ident)] == ["done"], ident
        assert board_now.result(board_now.find(ident)[0]) == b"ok"
    assert len(done) == len(set(done)), "no task was done twice"
    for name, seen_fences in fences.items():
        ours = [fence for one, fence in released if one == name]
        assert len(ours) == len(set(ours)), "no fence repeats"
        status = board_now.status(name)
        if seen_fences:
            assert status.task is not None
            assert status.task.fence >= max(seen_fences)
    # A claim whose answer was lost expires, and a kill may come before its record is written.
    found = [finding for finding in board_now.check() if finding.kind not in ("stale", "record")]
    assert found == []


def test_servers_that_are_stopped_under_load_do_nothing_twice(scratch: Path) -> None:
    """The silent twin of a kill: clients go to the other server, and the first goes on later."""
    board = scratch / "board"
    servers = [ServerProcess(board) for _ in range(2)]
    token, library = add_token(board, "ci"), dibs.open(board)
    for n in range(200):
        library.add(f"t{n}")
    over, done, released = threading.Event(), list[str](), list[tuple[str, int]]()

    def work(number: int) -> None:
        here = number % 2
        while not over.is_set():
            client = HttpClient(servers[here].url, token, f"w{number}", timeout=1.0)
            try:
                lock = f"l{random.randrange(4)}"
                made = client.ask("POST", f"/locks/{lock}/acquire", {"ttl_seconds": 2})
                if made.status == 200 and made.data["status"] == "acquired":
                    lease = {"lease_id": made.data["lease_id"]}
                    if client.ask("POST", f"/locks/{lock}/release", lease).status == 200:
                        released.append((lock, made.data["fencing_token"]))
                claimed = client.ask("POST", "/v1/claims", {"ttl": 5})
                if claimed.status == 200 and claimed.data["status"] == "claimed":
                    name = quote(claimed.data["claim"], safe="")
                    if client.ask("POST", f"/v1/claims/{name}/done", {}).status == 200:
                        done.append(claimed.data["task"]["id"])
            except OSError:
                here = 1 - here

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    try:
        for number in range(4):
            stopped = servers[number % 2].process
            stopped.send_signal(signal.SIGSTOP)
            seen = len(done)
            until(lambda seen=seen: len(done) > seen + 10 or len(done) > 180)
            stopped.send_signal(signal.SIGCONT)
            until(lambda number=number: answers(HttpClient(servers[number % 2].url, token)))
    finally:
        over.set()
        for server in servers:
            server.process.send_signal(signal.SIGCONT)
        for thread in threads:
            thread.join(PATIENCE)
    assert [server.stop() for server in servers] == [0, 0]
    assert len(done) == len(set(done)), "no task was done twice"
    assert {library.find(ident)[0].state for ident in done} == {"done"}
    assert len(released) == len(set(released)), "no fence repeats"
    assert [finding for finding in library.check() if finding.kind != "stale"] == []


def test_half_a_body_is_refused_after_a_while_and_holds_no_one_up(server: ServerProcess) -> None:
    client = server.client("ci")
    head = f"POST /locks/a/acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    with connected(server) as slow:
        slow.sendall(f"{head}Content-Length: 50\r\n\r\n{{".encode())
        start = time.monotonic()
        assert client.post("/locks/b/acquire")["status"] == "acquired"
        assert time.monotonic() - start < 5
        answer = slow.recv(65_536).decode()
    assert " 408 " in answer.splitlines()[0]
    assert json.loads(answer.partition("\r\n\r\n")[2])["code"] == "timeout"


def test_a_body_without_a_token_is_not_read(server: ServerProcess) -> None:
    with connected(server) as client:
        client.sendall(
            b"POST /locks/a/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"
        )
        assert b" 401 " in client.recv(65_536).splitlines()[0]


def test_more_connections_than_allowed_are_closed(scratch: Path) -> None:
    server = ServerProcess(scratch / "board", "--clients", "20")
    try:
        client = server.client("ci")
        held = [connected(server) for _ in range(40)]
        closed = 0
        for one in held:
            one.settimeout(0.2)
            try:
                closed += one.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                closed += 1
        assert closed >= 20
        for one in held:
            one.close()
        until(lambda: answers(client))
    finally:
        assert server.stop() == 0


def answers(client: HttpClient) -> bool:
    try:
        return client.ask("GET", "/health").status == 200
    except OSError:
        return False


def test_a_flood_of_garbage_costs_bounded_memory(server: ServerProcess) -> None:
    client = server.client("ci")
    client.get("/status")
    before = resident(server.process.pid)
    rng = random.Random(7)
    for n in range(300):
        with connected(server) as one, contextlib.suppress(OSError):
            match n % 5:
                case 0:
                    one.sendall(rng.randbytes(4000))
                case 1:
                    one.sendall(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000)
                case 2:
                    one.sendall(b"POST /v1/tasks HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
                    one.sendall(b"x" * 200_000)
                case 3:
                    one.sendall(b"GET /locks/" + b"a" * 60_000 + b" HTTP/1.1\r\n\r\n")
                case _:
                    one.sendall(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert client.post("/locks/a/acquire")["status"] == "acquired"
    assert resident(server.process.pid) - before < 60 << 20
    assert "Traceback" not in server.log.read_text()


def test_a_thousand_idle_watchers_cost_little_and_hear_each_event(server: ServerProcess) -> None:
    client = server.client("ci")
    client.get("/status")
    before = resident(server.process.pid)
    watchers = [connected(server) for _ in range(1000)]
    try:
        for one in watchers:
            one.sendall(asked(client, "/locks/watch"))
        for one in watchers:
            _read_until(one, b"event: snapshot")
        assert resident(server.process.pid) - before < 100 << 20
        client.post("/locks/a/acquire")
        for one in watchers:
            _read_until(one, b"event: acquired")
    finally:
        for one in watchers:
            one.close()


def _read_until(one: socket.socket, wanted: bytes, got: bytes = b"") -> bytes:
    """Read until something comes; what came after it."""
    end = time.monotonic() + PATIENCE
    while wanted not in got:
        assert time.monotonic() < end, got[-2000:]
        chunk = one.recv(65_536)
        assert chunk, got[-2000:]
        got = got[-len(wanted) :] + chunk
    return got.partition(wanted)[2]


def test_a_reader_that_lags_is_told_and_starts_again(server: ServerProcess) -> None:
    client = server.client("ci", agent="x")
    with connected(server) as slow:
        slow.sendall(asked(client, "/locks/watch"))
        rest = _read_until(slow, b"event: snapshot")
        connection = client.connect()
        for n in range(1500):  # each of 6 KB, because every character is escaped
            body = json.dumps({"metadata": f"{n}" + "\u00e4" * 1000}).encode()
            connection.request("POST", "/locks/a/acquire", body, client.headers())
            assert connection.getresponse().read()
        connection.close()
        rest = _read_until(slow, b"event: lagged", rest)
        rest = _read_until(slow, b"event: snapshot", rest)
        client.post("/locks/b/acquire")
        _read_until(slow, b'"name": "b"', rest)


def asked(client: HttpClient, path: str) -> bytes:
    """A GET with the client's token."""
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    return head.encode()


def test_every_form_of_http_gets_the_same_answer(server: ServerProcess) -> None:
    client = server.client("forms")
    forms = {
        "stays": ("GET", "HTTP/1.1", ""),
        "closes": ("GET", "HTTP/1.1", "Connection: close\r\n"),
        "old": ("GET", "HTTP/1.0", ""),
        "head": ("HEAD", "HTTP/1.1", ""),
    }
    found = {}
    for name, (method, version, more) in forms.items():
        head = f"{method} /locks/forms {version}\r\nHost: x\r\nX-Request-Id: {name}\r\n{more}"
        with connected(server) as one:
            one.sendall(f"{head}Authorization: Bearer {client.token}\r\n\r\n".encode())
            answer = HTTPResponse(one, method=method)
            answer.begin()
            fields = {key.lower(): text for key, text in answer.getheaders()}
            assert (answer.status, answer.reason) == (200, "OK")
            assert fields.pop("x-request-id") == name
            assert fields.pop("date").endswith(" GMT")
            assert fields.pop("connection", "") == ("close" if name == "closes" else "")
            found[name] = fields, answer.read()
    assert found["closes"] == found["old"] == found["stays"]
    assert found["head"] == (found["stays"][0], b"")


@pytest.mark.parametrize("path", ["/v1/events", "/v1/watch", "/locks/watch", "/locks/forms/watch"])
def test_the_head_of_a_stream_has_no_body_and_the_next_request_is_answered(
    server: ServerProcess, path: str
) -> None:
    client = server.client("forms")
    with connected(server) as one:
        one.sendall(asked(client, path).replace(b"GET", b"HEAD", 1) + asked(client, "/status"))
        head = HTTPResponse(one, method="HEAD")
        head.begin()
        assert (head.status, head.getheader("Content-Type")) == (200, "text/event-stream")
        rest = head.fp.read1()
        status = rest or one.recv(65_536)
        assert status.startswith(b"HTTP/1.1 200 OK"), status


def said_to_half_closed(server: ServerProcess, data: bytes) -> bytes:
    """All that a client gets that closes its side as soon as it has sent its requests."""
    with connected(server) as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        found = b""
        while part := one.recv(65_536):
            found += part
        return found


def test_a_client_that_closes_its_side_gets_its_answers(server: ServerProcess) -> None:
    client = server.client("olga")
    get, stream = asked(client, "/locks/half"), asked(client, "/v1/events")
    said = said_to_half_closed(server, get * 3)
    assert said.count(b"HTTP/1.1 200 OK") == said.count(b'"status": "free"') == 3
    add = posted(client, "/v1/tasks", b'{"id": "a"}')
    assert b"HTTP/1.1 201 Created" in said_to_half_closed(server, add)
    assert said_to_half_closed(server, add[:-3]) == b"", "this request is not complete"
    with connected(server) as one:
        one.sendall(stream)
        _read_until(one, b"event: snapshot", b"")
        one.shutdown(socket.SHUT_WR)
        while one.recv(65_536):
            pass  # it ends: most such clients have gone


@pytest.mark.parametrize("wait", [b"", b', "wait": 30'])
def test_a_client_that_closes_its_side_is_given_no_claim(
    server: ServerProcess, wait: bytes
) -> None:
    client = server.client("olga")
    client.post("/v1/tasks", {"id": "a"})
    claim = posted(client, "/v1/claims", b'{"id": "a"' + wait + b"}")
    said = said_to_half_closed(server, claim)
    assert b"HTTP/1.1 400 " in said
    assert b"keep it open until the answer" in said
    until(lambda: client.get("/v1/tasks")["counts"]["available"] == 1)


def posted(client: HttpClient, path: str, body: bytes) -> bytes:
    """A POST with the client's token."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_client_that_does_not_read_its_answers_gets_no_more(server: ServerProcess) -> None:
    client = server.client("mute")
    head = f"GET /locks/mute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    before = resident(server.process.pid)
    with connected(server) as one:
        one.settimeout(3)
        with pytest.raises(TimeoutError):  # of 100 MB, more than all buffers between hold
            deque(map(one.sendall, repeat(head.encode() * 1000, 1000)), 0)
        assert resident(server.process.pid) - before < 20 << 20
        assert client.get("/locks/mute")["status"] == "free"


def test_health_is_503_while_the_board_is_away(scratch: Path) -> None:
    server = ServerProcess(scratch / "board")
    try:
        client = server.client("ci")
        (scratch / "board").rename(scratch / "away")
        reply = HttpClient(server.url, None).ask("GET", "/health")
        assert reply.status == 503
        assert reply.data["healthy"] is False
        (scratch / "away").rename(scratch / "board")
        until(lambda: answers(client))
        assert client.post("/locks/a/acquire")["status"] == "acquired"
    finally:
        assert server.stop() == 0


def test_two_servers_before_one_board_agree(scratch: Path) -> None:
    one, other = ServerProcess(scratch / "board"), ServerProcess(scratch / "board")
    try:
        ann = one.client("ann")
        there = HttpClient(other.url, ann.token)
        held = ann.post("/locks/a/acquire", {"metadata": "m"})
        again = there.post("/locks/a/acquire", {"metadata": "m"})
        assert again["lease_id"] == held["lease_id"]
        assert there.post("/locks/a/acquire", {"metadata": "x"})["status"] == "held"
        assert there.post("/locks/a/renew", {"lease_id": held["lease_id"], "ttl_seconds": 900})
        session = ann.post("/sessions", {"ttl_seconds": 60})["session_id"]
        there.post(f"/sessions/{session}/keepalive")
        body = {"session_id": session, "ephemeral": True}
        assert there.post("/locks/b/acquire", body)["status"] == "acquired"
        with ann.stream("/locks/b/watch") as events:
            first = events.next("snapshot").data["locks"][0]
            assert first["status"] == "held"
            assert ann.ask("DELETE", f"/sessions/{session}").status == 204
            until(lambda: ann.get("/locks/b")["status"] == "free")
        assert there.post("/locks/a/release", {"lease_id": held["lease_id"]})
        assert ann.post("/locks/a/acquire", {"metadata": "z"})["fencing_token"] == 2
    finally:
        assert one.stop() == 0
        assert other.stop() == 0


def test_a_restart_keeps_leases_sessions_and_lock_delays(scratch: Path) -> None:
    server = ServerProcess(scratch / "board")
    port = server.port
    client = server.client("ci")
    session = client.post("/sessions", {"ttl_seconds": 60})["session_id"]
    body = {"session_id": session, "ephemeral": True, "ttl_seconds": 300}
    lock = client.post("/locks/e/acquire", body)
    client.post("/locks/d/acquire", {"ttl_seconds": 2, "lock_delay_seconds": 20})
    server.kill()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server = ServerProcess(scratch / "board", listen=f"127.0.0.1:{port}")
    try:
        client = HttpClient(server.url, client.token)
        assert client.get(f"/sessions/{session}")["lock_count"] == 1
        assert client.post("/locks/e/renew", {"lease_id": lock["lease_id"]})["lease_id"]
        found = until(lambda: _delayed(client))
        assert found["available_at"]
        assert client.ask("DELETE", f"/sessions/{session}").status == 204
        assert client.get("/locks/e")["status"] == "free"
    finally:
        assert server.stop() == 0


def _delayed(client: HttpClient) -> dict[str, object] | None:
    found = client.as_agent("other").ask("POST", "/locks/d/acquire", {})
    return found.data["details"] if found.status == 409 and found.code == "delayed" else None


@pytest.mark.parametrize("waiters", [200])
def test_waiters_get_the_lock_one_after_another_in_line(
    server: ServerProcess, waiters: int
) -> None:
    client = server.client("ci")
    held = client.post("/locks/a/acquire", {"ttl_seconds": 600})
    order: list[int] = []
    gate = threading.Lock()

    def wait(number: int) -> None:
        mine = client.as_agent(f"w{number}")
        got = mine.post("/locks/a/acquire", {"wait_seconds": 60})
        assert got["status"] == "acquired"
        with gate:
            order.append(got["fencing_token"])
        mine.post("/locks/a/release", {"lease_id": got["lease_id"]})

    threads = [threading.Thread(target=wait, args=(n,)) for n in range(waiters)]
    for thread in threads:
        thread.start()
    until(lambda: client.get("/status")["waiting"] == waiters)
    client.post("/locks/a/release", {"lease_id": held["lease_id"]})
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(order) == list(range(2, waiters + 2))
