"""Whatever a server answers, a client fails in one line, in bounded time and memory."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

import dibs
from dibs.model.errors import DibsError
from dibs.model.records import Record
from dibs.remote import sessions, watch, wire
from dibs.remote.claims import RemoteClaim
from tests.patience import PATIENCE

pytestmark = pytest.mark.fast("dibs.remote")
Answer = Callable[[socket.socket], object]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_TOKEN", "dibs_x")
    monkeypatch.setattr(sessions, "PATIENCE", 10**8)
    monkeypatch.setattr(sessions, "SILENCE", 1.0)


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of a server that answers every request so."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_now: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                conn, _ = listener.accept()
                open_now[:] = [conn]
                with conn, suppress(OSError):
                    conn.settimeout(PATIENCE)
                    while conn.recv(1 << 20):
                        answer(conn)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    for conn in open_now:
        with suppress(OSError):
            conn.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(PATIENCE)


def sent(data: bytes) -> Answer:
    return lambda conn: conn.sendall(data)


def body(data: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(data), data)


def fields(found: object, status: int = 200) -> bytes:
    return body(json.dumps(found).encode(), status)


GARBAGE = {
    "no HTTP": b"\0\xff\r\n\r\n" * 9,
    "an early end": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "a length of a book": b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{}",
    "parts that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "another status": b"HTTP/1.1 OK\r\n\r\n",
    "HTML": body(b"<html>hello</html>"),
    "a page that is not there": body(b"<html>404</html>", 404),
    "a redirection": b"HTTP/1.1 302 X\r\nLocation: http://a/\r\nContent-Length: 0\r\n\r\n",
    "a list": fields([]),
    "no fields": fields({}),
    "another refusal": fields({"error": 1, "code": []}, 409),
    "an unknown refusal": fields({"error": "\x1b[2J", "code": "new"}, 409),
    "a holder that is none": fields({"error": "x", "code": "held", "details": {"name": 7}}, 409),
    "a pause that is none": fields({"error": "x", "code": "paused", "details": {}}, 409),
    "a name that is none": fields({"task": {"name": "../../etc/passwd"}, "ttl": 1}),
    "a ttl that is none": fields({"task": {"name": "x.f1.a-0123456789.claimed"}, "ttl": "9"}),
    "an endless ttl": body(
        b'{"task": {"name": "x.f1.a-0123456789.claimed"}, "ttl": 1' + b"0" * 5000 + b"}"
    ),
    "deep": body(b'{"task":' * 100_000),
    "a huge number": body(b'{"task": ' + b"9" * 5000 + b"}"),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_an_answer_that_is_none_is_refused_in_one_line(what: str) -> None:
    with answering(sent(GARBAGE[what])) as url:
        board = dibs.open(url)
        calls: list[Callable[[], object]] = [
            board.claim,
            board.snapshot,
            lambda: board.find("x"),
            lambda: board.log.since(),
            lambda: board.settings,
            lambda: board.evidence(held),
        ]
        for call in calls:
            with pytest.raises(DibsError) as caught:
                call()
            line = str(caught.value)
            assert line.isprintable()
            assert len(line) < 1000


NONSENSE = (
    "HTML",
    "a list",
    "no fields",
    "a name that is none",
    "deep",
    "no HTTP",
    "another status",
)


@pytest.mark.parametrize("what", NONSENSE)
def test_a_change_with_an_answer_that_is_none_is_uncertain(what: str) -> None:
    with answering(sent(GARBAGE[what])) as url:
        board = dibs.open(url)
        calls: list[Callable[[], object]] = [
            board.claim,
            lambda: board.add("x"),
            lambda: board.park("x.available", "no"),
            RemoteClaim(board._session, held, Record(owner="a")).done,  # type: ignore[attr-defined]
        ]
        for call in calls:
            with pytest.raises(dibs.Uncertain, match="unknown whether it was done") as caught:
                call()
            assert str(caught.value).isprintable()
            assert not caught.value.again


def test_a_fault_of_the_server_leaves_a_change_uncertain() -> None:
    fault = fields({"error": "a fault", "code": "internal", "details": {}}, 500)
    with answering(sent(fault)) as url:
        board = dibs.open(url)
        with pytest.raises(dibs.Uncertain, match="unknown whether it was done"):
            board.add("x")
        with pytest.raises(dibs.StorageError, match="a fault: see the log of the server"):
            board.snapshot()


def test_an_answer_of_another_version_is_refused_with_both_versions() -> None:
    answer = sent(fields({"version": "9.9.9"}))
    with answering(answer) as url, pytest.raises(dibs.StorageError) as caught:
        dibs.open(url).snapshot()
    assert f"(here {dibs.__version__}, there '9.9.9')" in str(caught.value)


@pytest.mark.parametrize("code", [404, 302])
def test_a_page_that_refuses_has_changed_nothing(code: int) -> None:
    with answering(sent(body(b"<html>", code))) as url, pytest.raises(dibs.StorageError):
        dibs.open(url).add("x")


(held,) = [
    dibs.Task("x.f1.a-0123456789.claimed", "x", "claimed", 1, 0, 5, "a-0123456789"),
]


def test_an_endless_head_and_an_endless_body_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST", 1 << 20)

    def endless(begin: bytes, more: bytes) -> Answer:
        def answer(conn: socket.socket) -> None:
            conn.sendall(begin)
            while True:
                conn.sendall(more)

        return answer

    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    part = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    for begin, more in ((b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), (chunked, part)):
        with answering(endless(begin, more)) as url, pytest.raises(dibs.StorageError):
            dibs.open(url).snapshot()


def test_a_server_that_answers_a_byte_a_second_is_given_up() -> None:
    def slow(conn: socket.socket) -> None:
        for byte in fields({"pauses": []}):
            conn.sendall(bytes([byte]))
            time.sleep(0.2)  # how slow the server is

    with answering(slow) as url:
        start = time.monotonic()
        with pytest.raises(dibs.StorageError, match="did not answer in time"):
            dibs.open(url).pauses()
        assert time.monotonic() - start < PATIENCE / 2


def patient(url: str) -> dibs.Board:
    board = dibs.open(url)
    board._session.patience = int(PATIENCE * 10**9)  # type: ignore[attr-defined]
    return board


def test_a_proxy_without_its_server_is_tried_again() -> None:
    answers = [body(b"<html>502</html>", 502), body(b"<html>503</html>", 503)]
    answers.append(fields({"pauses": []}))
    with answering(lambda conn: conn.sendall(answers.pop(0))) as url:
        assert patient(url).pauses() == ()
    with answering(sent(body(b"<html>504</html>", 504))) as url:
        with pytest.raises(dibs.StorageError, match="a proxy answered 504"):
            dibs.open(url).pauses()
        with pytest.raises(dibs.Uncertain, match="a proxy answered 504"):
            dibs.open(url).add("x")


def test_a_busy_server_is_asked_again_and_nothing_is_uncertain() -> None:
    busy = fields({"error": "too many", "code": "busy", "details": {}}, 503)
    answers = [busy, busy, fields({"task": {"name": "x.available"}}, 201)]
    with answering(lambda conn: conn.sendall(answers.pop(0))) as url:
        assert patient(url).add("x").name == "x.available"
    with answering(sent(busy)) as url, pytest.raises(dibs.StorageError, match="too many"):
        dibs.open(url).add("x")


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize(
    "data",
    [
        b"event: delta\ndata: {}{}\n\n",
        b"event: delta\ndata: []\n\n",
        b'event: delta\ndata: {"added": [7]}\n\n',
        b'event: delta\ndata: {"added": [{"name": "\\u001b[2J"}]}\n\n',
        b'event: delta\ndata: {"added": [], "holders": {"x": 1}}\n\n',
        b'event: health\ndata: {"health": {"fresh": "now"}}\n\n',
    ],
)
def test_a_watch_shows_what_is_wrong_and_goes_on_trying(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_RETRY", (0.05,))
    troubled = threading.Event()
    with answering(sent(STREAM + chunk(data))) as url:
        following = dibs.watch(url, lambda delta: troubled.set())
        assert troubled.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while following.health.trouble is None and time.monotonic() < deadline:
            troubled.wait(0.01)
        assert following.health.trouble is dibs.Trouble.FAILED
        assert following.health.cause.isprintable()
        assert following.stop(PATIENCE)
