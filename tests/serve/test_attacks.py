"""What an attacker may try who can reach the port, without a token or with one."""

from __future__ import annotations

import contextlib
import gzip
import socket
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, until
from tests.serve.server_process import ServerProcess
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
