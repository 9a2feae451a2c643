"""The parts of hooks: settings, secrets, addresses, and answers of a hostile receiver."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from dibs.model.errors import BadName, BadSettings, DibsError
from dibs.model.events import Event
from dibs.model.hooks import MOST, RETRY, Hook, hook_of
from dibs.model.settings import dump, load
from dibs.serve import hook_request
from dibs.serve.hook_request import (
    NotDelivered,
    deliver,
    networks_of,
    secret_of,
    why_refused,
)
from tests.patience import PATIENCE
from tests.serve.hook_receiver import receiving

SECRET = b"0123456789abcdef"
GOOD = 'name = "ci"\nurl = "https://ci.example.com/x"\nevents = ["failed"]\n'


def hook(url: str = "https://ci.example.com/x", **more: Any) -> Hook:
    return hook_of({"name": "ci", "url": url, "events": ["add"], **more}, RETRY)


def event(verb: str = "add", ident: str = "a", dst: str = "") -> Event:
    return Event(1.0, verb, ident, "", dst, "web-3")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('url = "https://a"\nevents = ["add"]', "name must have"),
        (GOOD.replace('"ci"', '"CI"'), "name must have"),
        (GOOD.replace('"ci"', '"x-file"'), "name must have"),
        (GOOD.replace('"ci"', '"../ci"'), "name must have"),
        (GOOD.replace("https:", "http:"), "url must begin with https://"),
        (GOOD.replace("https:", "file:"), "url must be https://"),
        (GOOD.replace("https://", "https://bob:hunter2@"), "url must be https://"),
        (GOOD.replace("https://", "https://hunter2@"), "url must be https://"),
        (GOOD.replace("/x", ":70000/x"), "url must be https://"),
        (GOOD.replace("/x", "/x y"), "url must be https://"),
        (GOOD.replace("/x", r"/\u001b[2J"), "url must be https://"),
        (GOOD.replace("/x", r"/\r\nX: y"), "url must be https://"),
        (GOOD.replace("/x", "/x#y"), "url must be https://"),
        (GOOD.replace('"https://ci.example.com/x"', "3"), "url must be a text"),
        (GOOD.replace('["failed"]', '["doen"]'), "events must be a list"),
        (GOOD.replace('["failed"]', "[]"), "events must be a list"),
        (GOOD.replace('["failed"]', '"failed"'), "events must be a list"),
        (GOOD + "ids = []", "ids must be a list"),
        (GOOD + 'ids = ["\\u0007"]', "ids must be a list"),
        (GOOD + 'retry = ["2d"]', "retry must be a list of times"),
        (GOOD + "retry = 3", "retry must be a list of times"),
        (GOOD + 'secret = "x"', "there is no key 'secret'"),
        (GOOD + "[[hooks]]\n" + GOOD, "there are two hooks ci"),
    ],
)
def test_an_invalid_hook_is_refused_in_one_line_with_its_place(lines: str, said: str) -> None:
    data = f"ttl = 60\n[[hooks]]\n{lines}\n".encode()
    with pytest.raises(BadSettings) as refused:
        load(data)
    text = str(refused.value)
    at = 6 if "two hooks" in said else 2
    assert text.startswith(f".dibs/board.toml line {at}: hooks: ")
    assert said in text
    assert text.isprintable()
    assert "hunter2" not in text


def test_hooks_that_are_no_tables_or_too_many_are_refused() -> None:
    for data in (b"hooks = 3\n", b"hooks = [3]\n", f"[[hooks]]\n{GOOD}".encode() * (MOST + 1)):
        with pytest.raises(BadSettings, match="hooks"):
            load(data)


def test_hooks_survive_being_written_as_settings() -> None:
    data = f'[[hooks]]\n{GOOD}retry = ["90s", "1h"]\n[[hooks]]\n{GOOD.replace("ci", "b")}'.encode()
    settings = load(data)
    assert [one.name for one in settings.hooks] == ["ci", "b"]
    assert settings.hooks[0].retry == (90, 3600)
    assert settings.hooks[1].retry == RETRY
    assert load(dump(settings)) == settings


def test_a_hook_wants_its_events_of_its_ids_and_never_those_of_its_lock() -> None:
    found = hook(events=["add", "failed"], ids=["deploy-*", "x"])
    assert found.wants(event("add", "deploy-1"))
    assert found.wants(event("add", "x"))
    assert not found.wants(event("add", "build"))
    assert not found.wants(event("done", "x"))
    assert found.wants(event("fail", "x", "failed/x.f1a5.web-3-0A1B2C3D4E"))
    assert not found.wants(event("fail", "x", "x.f1a1.available"))
    assert not hook().wants(event("add", "hook~ci"))


def test_the_origin_of_a_url_shows_neither_path_nor_query() -> None:
    assert hook("https://h.example/s3cret?t=1").address.origin == "https://h.example"
    assert hook("https://H.example:8443").address == ("https", "h.example", 8443, "/")
    assert hook("http://[::1]:80/x").address.origin == "http://[::1]"


PUBLIC = (
    *("93.184.215.14", "2606:4700::1111", "::ffff:93.184.215.14", "1.1.1.1", "223.255.255.254"),
    *("100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1"),
    *("198.20.0.1", "2001:200::1", "2003::1", "2a00::1", "3ffe::1", "2001:4860:4860::8888"),
)
OTHERS = (
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "224.0.0.1", "239.1.2.3", "255.255.255.255", "192.0.2.1", "::1", "::"),
    *("fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1"),
    *("64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::", "2001::1", "fec0::1", "::127.0.0.1"),
    *("::10.0.0.1", "::ffff:0:127.0.0.1", "3fff::1", "5f00::1", "100::1", "2001:db8::1"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:1::1", "fc00::1", "ff0e::1", "4000::1"),
    *("192.0.0.8", "192.0.0.10", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
    *("203.0.113.1", "240.0.0.1", "100.127.255.255", "172.31.0.1", "0.1.2.3", "127.255.0.1"),
    *("::ffff:0.0.0.0", "::ffff:169.254.169.254", "::ffff:192.0.0.8", "::1.1.1.1"),
)


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_may_be_reached(text: str) -> None:
    assert why_refused(hook().address, text, ()) == ""


@pytest.mark.parametrize("text", OTHERS)
def test_no_other_address_may_be_reached_unless_it_is_allowed(text: str) -> None:
    assert "not public" in why_refused(hook().address, text, ())
    others = networks_of(["10.9.0.0/16", "fd99::/16"])
    assert "not public" in why_refused(hook().address, text, others)
    found = ip_address(text.partition("%")[0])
    plain = getattr(found, "ipv4_mapped", None) or found
    assert why_refused(hook().address, text, networks_of([str(plain)])) == ""


def test_without_tls_only_loopback_is_reached_even_if_a_network_is_allowed() -> None:
    address = hook("http://localhost:8080").address
    networks = networks_of(["127.0.0.0/8", "10.0.0.0/8"])
    assert why_refused(address, "127.0.0.1", networks) == ""
    assert "without TLS" in why_refused(address, "10.0.0.1", networks)
    assert "without TLS" in why_refused(address, PUBLIC[0], networks)


def test_a_network_that_is_none_is_refused() -> None:
    for text in ("10.0.0.1/8", "example.com", ""):
        with pytest.raises(BadName, match="is no network"):
            networks_of([text])


def test_a_secret_is_read_from_the_environment_or_from_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    assert secret_of("my-chat", {"DIBS_HOOK_MY_CHAT": SECRET.decode()}) == SECRET
    named = {"DIBS_HOOK_CI_FILE": str(path)}
    assert secret_of("ci", named) == SECRET
    path.chmod(0o640)
    for given, said in (
        ({}, r"set \$DIBS_HOOK_CI to its secret"),
        ({"DIBS_HOOK_CI": "short"}, "at least 16 characters"),
        ({**named, "DIBS_HOOK_CI": "x" * 16}, "both set"),
        (named, "can be read by others"),
        ({"DIBS_HOOK_CI_FILE": str(tmp_path / "none")}, "No such file"),
    ):
        with pytest.raises(DibsError, match=said):
            secret_of("ci", given)


@contextmanager
def answering(act: Callable[[socket.socket], object], host: str = "127.0.0.1") -> Iterator[int]:
    """A server that does this with each connection."""
    with socket.create_server((host, 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.recv(65_536)
                        act(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def send(port: int, host: str = "127.0.0.1") -> None:
    address = hook(f"http://{host}:{port}/x").address
    deliver(address, "id", b"{}", SECRET, networks_of(["127.0.0.0/8"]))


def drip(connection: socket.socket) -> None:
    """One byte after another, for longer than anyone waits."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while connection.send(b"x"):
        time.sleep(0.02)


def flood(start: bytes, part: bytes) -> Callable[[socket.socket], None]:
    def act(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range((1 << 20) // len(part)):
            connection.sendall(part)

    return act


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda connection: None, "closed connection"),
        (lambda connection: connection.sendall(b"SSH-2.0-x\r\n"), "not HTTP"),
        (lambda connection: connection.sendall(b"\x00\xff" * 99), "not HTTP"),
        (lambda connection: connection.sendall(b"HTTP/1.1 99999 \x1b[2J\r\n\r\n"), "not HTTP"),
        (flood(b"HTTP/1.1 200 OK\r\n", b"X-Y: " + b"z" * 995 + b"\r\n"), "not HTTP"),
        (flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "not HTTP"),
        (flood(b"HTTP/1.1 500 \r\n\r\n", b"x" * 1024), "^HTTP 500$"),
        (drip, "no answer within"),
        (lambda connection: time.sleep(3), "no answer within"),
    ],
)
def test_a_hostile_answer_is_a_failed_try_in_bounded_time_and_memory(
    act: Callable[[socket.socket], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_request, "SECONDS", 1.0)
    with answering(act) as port, pytest.raises(NotDelivered, match=said) as failed:
        send(port)
    assert str(failed.value).isprintable()


def test_a_long_answer_that_says_ok_is_no_failure() -> None:
    with answering(flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1024)) as port:
        send(port)


def test_no_one_listening_is_a_failed_try() -> None:
    with receiving() as receiver:
        port = receiver.port
    with pytest.raises(NotDelivered, match="refused"):
        send(port)


def test_a_name_that_changes_its_address_is_connected_to_what_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the first answer is allowed, every later one is another address."""
    asked: list[str] = []
    reached: list[str] = []

    def answer(where: str) -> Callable[[socket.socket], None]:
        def act(connection: socket.socket) -> None:
            reached.append(where)
            connection.sendall(b"HTTP/1.1 204 \r\n\r\n")

        return act

    def resolve(host: str, port: int, **how: Any) -> Any:
        asked.append(host)
        where = "127.0.0.2" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where, port))]

    with (
        answering(answer("good"), "127.0.0.2") as port,
        socket.create_server(("127.0.0.1", port)),
    ):
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        address = hook(f"http://localhost:{port}/x").address
        deliver(address, "id", b"{}", SECRET, networks_of(["127.0.0.2"]))
        with pytest.raises(NotDelivered, match="not public"):
            deliver(address, "id", b"{}", SECRET, networks_of(["127.0.0.2"]))
    assert asked == ["localhost"] * 2
    assert reached == ["good"]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:9")
    with receiving() as receiver:
        send(receiver.port)
        assert len(receiver.all) == 1
