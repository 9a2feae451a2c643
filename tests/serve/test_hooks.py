"""Hooks: `dibs serve` as a real process, and receivers that are real servers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import dibs
from dibs.model.hooks import EVENTS, LOCK, MOST, RETRY, Hook
from dibs.serve import hook_sender
from dibs.serve.deliveries import (
    FAILED,
    WAITING,
    Deliveries,
    HookPlace,
    place_of,
)
from dibs.serve.delivery_access import findings
from dibs.serve.hook_request import SECONDS, networks_of
from dibs.serve.hook_sender import TTL, HookSenders, HookTarget
from dibs.serve.values import cursor_text
from tests.patience import PATIENCE
from tests.serve.hook_receiver import SECRET, HookReceiver, Received, receiving
from tests.serve.http_client import until
from tests.serve.server_process import ENV, ServerProcess, run_dibs
from tests.serve.test_safety import resident

PAGE = (Path(__file__).parents[2] / "docs/hooks.md").read_text()
KEYS = {"DIBS_HOOK_CI": SECRET, "DIBS_HOOK_OTHER": SECRET}
LOOPBACK = ("--hook-network", "127.0.0.0/8")
QUICK = ["0s", "0s", "0s", "0s"]


def with_hook(
    board: Path,
    url: str,
    events: Sequence[str] = ("add",),
    *,
    name: str = "ci",
    retry: Sequence[str] = QUICK,
    ids: Sequence[str] = ("*",),
) -> dibs.Board:
    """The board, with one hook more."""
    found = dibs.open(board, create=True)
    table = {"name": name, "url": url, "events": events, "retry": retry, "ids": ids}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
    with (board / ".dibs/board.toml").open("a") as file:
        file.write(f"\n[[hooks]]\n{lines}")
    return found


@contextlib.contextmanager
def serving(board: Path, *words: str) -> Iterator[ServerProcess]:
    server = ServerProcess(board, *(words or LOOPBACK), more=KEYS)
    try:
        yield server
    finally:
        server.stop()


def started(board: Path, name: str = "ci") -> None:
    """Wait until the hook has a cursor, so that what happens from now on is sent."""
    until(lambda: kept(board, name).state().cursor)


def kept(board: Path, name: str = "ci") -> Deliveries:
    return Deliveries(place_of(dibs.open(board).location, None), name)


@pytest.fixture
def receiver() -> Iterator[HookReceiver]:
    with receiving() as found:
        yield found


def python_example() -> dict[str, object]:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    exec(block, names)
    return names


def test_an_event_is_sent_signed_as_both_examples_of_the_page_verify(
    scratch: Path, receiver: HookReceiver
) -> None:
    board = with_hook(scratch / "board", f"{receiver.url}/dibs?x=1", ["add"], ids=["deploy-*"])
    with serving(scratch / "board"):
        started(scratch / "board")
        board.add("build-1")
        task = board.add("deploy-1")
        until(lambda: receiver.all)
    (got,) = receiver.all
    assert got.path == "/dibs?x=1"
    assert got.event == {**got.event, "verb": "add", "id": "deploy-1", "dst": task.name}
    assert got.data["hook"] == "ci"
    assert got.data["delivery"] == got.headers["X-Dibs-Delivery"]
    header = got.headers["X-Dibs-Signature"]
    genuine = python_example()["is_genuine"]
    assert callable(genuine)
    assert genuine(SECRET.encode(), header, got.body)
    assert not genuine(b"another secret here", header, got.body)
    assert not genuine(SECRET.encode(), header, got.body + b" ")
    (script,) = re.findall(r"^```sh\n(t=.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for body, code in ((got.body, 0), (got.body.replace(b"deploy-1", b"deploy-2"), 1)):
        (scratch / "body").write_bytes(body)
        env = os.environ | {"SIGNATURE": header, "SECRET": SECRET}
        done = subprocess.run(["sh", "-c", script], cwd=scratch, env=env, timeout=PATIENCE)
        assert done.returncode == code
    assert not kept(scratch / "board").queued()


def test_a_task_at_its_limit_of_attempts_is_the_event_failed(
    scratch: Path, receiver: HookReceiver
) -> None:
    board = with_hook(scratch / "board", receiver.url, ["failed"])
    with serving(scratch / "board"):
        started(scratch / "board")
        board.add("a")
        for _ in range(board.settings.max_attempts):
            claim = board.resume("a") if board.find("a")[0].claim else board.claim("a")
            assert claim is not None
            claim.fail("boom", retry_in=0)
        until(lambda: receiver.all)
    assert [(one.event["verb"], one.event["reason"]) for one in receiver.all] == [("fail", "boom")]


def test_five_tries_have_one_id_and_one_body_then_it_is_listed_and_sent_again(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    receiver.answer = lambda received: 500
    board = with_hook(place, f"{receiver.url}/a-secret-path")
    with serving(place):
        started(place)
        board.add("a")
        until(lambda: kept(place).failed_count())
        assert len(receiver.all) == 5
        assert len({one.headers["X-Dibs-Delivery"] for one in receiver.all}) == 1
        assert len({one.body for one in receiver.all}) == 1
        listed = run_dibs(place, "deliveries")
        ident = receiver.all[0].headers["X-Dibs-Delivery"]
        assert f"ci: 0 waiting, 1 failed  {receiver.url}\n" in listed
        assert f"  {ident}  " in listed
        assert "5 tries  add a: HTTP 500" in listed
        assert "secret" not in listed
        receiver.answer = lambda received: 200
        assert run_dibs(place, "deliveries", "send", ident) == f"queued {ident}\n"
        until(lambda: len(receiver.all) == 6)
        until(lambda: not kept(place).queued())
    assert receiver.all[5].body == receiver.all[0].body
    assert "hook" in [event.verb for event in board.log.newest_first()]


def test_a_redirect_is_a_failure_and_is_not_followed(scratch: Path, receiver: HookReceiver) -> None:
    receiver.answer = lambda received: 302
    board = with_hook(scratch / "board", f"{receiver.url}/first", retry=[])
    with serving(scratch / "board"):
        started(scratch / "board")
        board.add("a")
        until(lambda: kept(scratch / "board").failed_count())
    assert [one.path for one in receiver.all] == ["/first"]
    assert "redirects are not followed" in kept(scratch / "board").failed()[0].reason


def test_nothing_is_missed_while_the_server_is_away(scratch: Path, receiver: HookReceiver) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    board.add("before the first start")
    with serving(place):
        started(place)
        board.add("a")
        until(lambda: receiver.all)
    for n in range(20):
        board.add(f"away-{n}")
    with serving(place):
        until(lambda: len(receiver.all) == 21)
        board.add("z")
        until(lambda: len(receiver.all) == 22)
    assert receiver.ids == ["a", *(f"away-{n}" for n in range(20)), "z"]


def test_a_server_killed_between_sending_and_marking_sends_it_again_with_the_same_id(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    server = ServerProcess(place, *LOOPBACK, more=KEYS)
    started(place)

    def kill(received: Received) -> int:
        if received.event["id"] == "b" and receiver.ids.count("b") == 1:
            server.kill()
        return 204

    receiver.answer = kill
    for ident in ("a", "b", "c"):
        board.add(ident)
    until(lambda: server.process.poll() is not None)
    server.stop()
    with serving(place):
        until(lambda: "c" in receiver.ids)
        until(lambda: not kept(place).queued())
    assert Counter(receiver.ids) == {"a": 1, "b": 2, "c": 1}
    twice = [one for one in receiver.all if one.event["id"] == "b"]
    assert twice[0].body == twice[1].body
    assert twice[0].headers["X-Dibs-Delivery"] == twice[1].headers["X-Dibs-Delivery"]


def test_a_server_killed_before_its_cursor_was_kept_sends_each_event_once(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    receiver.answer = lambda received: 204 if received.event["id"] == "a" else 500
    board = with_hook(place, receiver.url, retry=["1d"])
    with serving(place):
        started(place)
        board.add("a")
        until(lambda: receiver.all and not kept(place).queued())
        before = (place / ".dibs/hooks/ci/state").read_bytes()
        for ident in ("b", "c"):
            board.add(ident)
        until(lambda: len(receiver.all) == 3)
    (place / ".dibs/hooks/ci/state").write_bytes(before)
    receiver.answer = lambda received: 204
    with serving(place):
        started(place)
        board.add("d")
        until(lambda: "d" in receiver.ids)
    assert receiver.ids == ["a", "b", "c", "d"]
    assert len(kept(place).queued()) == 2


def test_a_sender_whose_lock_was_taken_stops_and_another_goes_on(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    with serving(place):
        started(place)
        (held,) = board.find(f"{LOCK}ci")
        board.force_release(held.name, "test")
        mine = board.acquire(f"{LOCK}ci", owner="me", ttl=600)
        time.sleep(1)  # the sender notices it within half a second
        board.add("a")
        time.sleep(1)  # in which it must not be sent
        assert not receiver.all
        mine.release()
        until(lambda: receiver.all)


def test_several_servers_send_each_delivery_once_and_one_goes_on_when_the_sender_is_killed(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    servers = [ServerProcess(place, *LOOPBACK, more=KEYS) for _ in range(3)]
    started(place)
    for n in range(60):
        board.add(f"a{n}")
    until(lambda: len(receiver.all) == 60)
    assert Counter(receiver.ids) == {f"a{n}": 1 for n in range(60)}
    holder = board.holder(board.find(f"{LOCK}ci")[0])
    assert holder is not None
    assert holder.process is not None
    (sender,) = [one for one in servers if one.process.pid == holder.process.pid]
    sender.kill()
    board.add("after")
    until(lambda: "after" in receiver.ids)
    assert len(receiver.all) == 61
    for server in servers:
        server.stop()


def test_a_sender_that_falls_silent_is_succeeded_from_where_it_said_all_was_received(
    scratch: Path, receiver: HookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The silent twin of a sender that is killed: it lives and does nothing."""
    monkeypatch.setattr(hook_sender, "_AGAIN", 0.1)
    board = with_hook(scratch / "board", receiver.url)
    (hook,) = dibs.open(scratch / "board").settings.hooks
    silent = board.acquire(
        f"{LOCK}ci", owner="serve-web-1", ttl=2, metadata=f"hook=ci folder={'f' * 16}"
    )
    silent.note(f"all received up to {cursor_text(board.log.end())}")
    board.add("gap")
    place, said = HookPlace(str(scratch / "other")), list[str]()
    targets = [HookTarget(hook, SECRET.encode())]
    senders = HookSenders(
        str(scratch / "board"), place, targets, networks_of(["127.0.0.1"]), said.append
    )

    def is_followed() -> bool:
        silent.beat()
        return bool(Deliveries(place, "ci").state().cursor)

    senders.begin()
    try:
        until(is_followed)
        until(lambda: receiver.ids == ["gap"])
        assert Deliveries(place, "ci").state().missed == 0
        assert said == []
    finally:
        senders.stop()
        senders.end(PATIENCE)


def test_a_receiver_that_hangs_holds_up_neither_claims_nor_other_hooks(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    with receiving() as hanging:
        over = contextlib.ExitStack()
        hanging.answer = lambda received: until(lambda: closed) and 204
        closed: list[bool] = []
        over.callback(closed.append, True)
        with over:
            with_hook(place, hanging.url, name="other")
            board = with_hook(place, receiver.url)
            with serving(place) as server:
                started(place)
                started(place, "other")
                board.add("a")
                until(lambda: hanging.all and receiver.all)
                client = server.client("w")
                claimed = client.post("/v1/claims", {"ttl": 30})
                assert claimed["status"] == "claimed"
                board.add("b")
                until(lambda: "b" in receiver.ids)
                assert hanging.ids == ["a"]


def test_ten_thousand_events_while_the_receiver_is_down_are_bounded_and_sent_in_the_end(
    scratch: Path,
) -> None:
    place = scratch / "board"
    with receiving() as first:
        port = first.port
    board = with_hook(place, f"http://127.0.0.1:{port}", ["ledger"])
    settings = place / ".dibs/board.toml"  # without 10,000 flushes to a disk
    settings.write_text(settings.read_text().replace('"normal"', '"off"'))
    with serving(place) as server:
        started(place)
        before = resident(server.process.pid)
        for n in range(WAITING + 5_000):
            board.log.note("ledger", f"event {n}")
        until(lambda: len(kept(place).queued()) >= WAITING)
        time.sleep(2)  # time in which too many could come
        assert len(kept(place).queued()) < WAITING + 2_600
        assert resident(server.process.pid) - before < 60 << 20
        with receiving(port=port) as receiver:
            until(lambda: len(receiver.all) >= 50)
            texts = [one.event["reason"] for one in receiver.all]
    assert len(texts) == len(set(texts))


def test_tls_is_checked_and_another_authority_can_be_named(scratch: Path) -> None:
    place, pem = scratch / "board", scratch / "cert.pem"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = subprocess.run(
        ["openssl", "req", "-x509", *curve, *name, "-keyout", pem.with_suffix(".key"), "-out", pem],
        capture_output=True,
        timeout=PATIENCE,
    )
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, pem.with_suffix(".key"))
    with receiving(context) as receiver:
        board = with_hook(place, receiver.url, retry=[])
        words = (*LOOPBACK, "--hook-network", "::1")
        with serving(place, *words):
            started(place)
            board.add("a")
            until(lambda: kept(place).failed_count())
        assert not receiver.all
        assert "certificate is not trusted" in kept(place).failed()[0].reason
        server = ServerProcess(place, *words, more={**KEYS, "SSL_CERT_FILE": str(pem)})
        board.add("b")
        until(lambda: receiver.all)
        server.stop()
        assert receiver.ids == ["b"]


def test_a_private_address_is_not_reached_unless_it_is_allowed(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url, retry=[])
    with serving(place, "--hook-network", "10.0.0.0/8"):
        started(place)
        board.add("a")
        until(lambda: kept(place).failed_count())
    assert not receiver.all
    assert "not public: allow it with `dibs serve --hook-network" in kept(place).failed()[0].reason


def test_events_that_the_log_lost_before_they_were_read_are_counted(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    with serving(place):
        started(place)
        board.add("a")
        until(lambda: receiver.all)
    board.add("lost")
    (current,) = (place / ".dibs/journal").iterdir()
    current.rename(current.with_suffix(".2.jsonl"))
    (current.with_suffix(".2.jsonl")).write_text("")
    board = dibs.open(place)
    board.add("b")
    with serving(place) as server:
        until(lambda: "b" in receiver.ids)
        until(lambda: kept(place).state().missed)
        assert "removed from the log unread" in server.log.read_text()
    assert receiver.ids == ["a", "b"]
    assert "log not read in time: 1 times" in run_dibs(place, "deliveries")


def test_the_page_has_the_keys_events_and_limits_of_the_code() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE) == list(Hook._fields)
    (row,) = re.findall(r"^\| `events` \| (.*) \|$", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`([a-z-]+)`", row)) == sorted(EVENTS)
    retry = ", ".join(f'"{text}"' for text in ("10s", "1m", "10m", "50m"))
    assert f"[{retry}]" in PAGE
    assert RETRY == (10, 60, 600, 3000)
    for number, what in ((WAITING, "deliveries of a hook wait"), (FAILED, "deliveries of a hook")):
        assert f"| {number:,} {what}" in PAGE
    assert f"has at most {MOST} hooks" in PAGE
    assert f"within {SECONDS:.0f} seconds" in PAGE
    assert f"lease of {TTL:.0f} s" in PAGE


def test_invalid_hooks_are_refused_by_check_and_serve_in_one_line(scratch: Path) -> None:
    place = scratch / "board"
    with_hook(place, "https://bob:hunter2@ci.example.com/\x1b[2J")
    for words in (["check"], ["serve", "--listen", "127.0.0.1:0"]):
        line = [sys.executable, "-m", "dibs", "-d", str(place), *words]
        done = subprocess.run(line, env=ENV, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert "board.toml line 9: hooks: url must be https://" in done.stderr
        assert "hunter2" not in done.stderr
        assert "\x1b" not in done.stderr


def test_clients_of_the_server_do_not_see_the_urls_of_hooks(scratch: Path) -> None:
    with_hook(scratch / "board", "http://127.0.0.1:9/a-secret-path")
    with serving(scratch / "board") as server:
        assert server.client("r", "reader").get("/v1/board")["settings"]["hooks"] == []


def test_failed_deliveries_above_the_limit_make_room_and_are_counted(tmp_path: Path) -> None:
    found = Deliveries(HookPlace(str(tmp_path)), "ci", durable=False)
    found.begin()
    for n in range(FAILED + 3):
        ident = f"{n:014d}-{hashlib.sha256(str(n).encode()).hexdigest()[:16]}"
        found.add(ident, n, b"{}")
        (one,) = found.queued()
        taken = found.take(one, 7)
        assert taken is not None
        assert found.give_up(taken, "HTTP 500") == (n >= FAILED)
    assert found.failed_count() == FAILED
    assert found.failed()[0].id.startswith(f"{3:014d}")
    assert len(list((tmp_path / "ci/why").iterdir())) == FAILED


def test_a_sender_that_was_stopped_changes_nothing_that_its_successor_has(tmp_path: Path) -> None:
    found = Deliveries(HookPlace(str(tmp_path)), "ci")
    found.begin()
    found.add("00000000000001-0123456789abcdef", 1, b"{}")
    (one,) = found.queued()
    stopped = found.take(one, 3)
    assert stopped is not None
    (left,) = found.queued()
    assert left == stopped
    taken = found.take(left, 4)
    assert taken is not None
    assert (taken.tries, taken.fence) == (2, 4)
    assert found.take(one, 3) is None
    assert not found.sent(stopped)
    assert not found.retry(stopped, 0, "late")
    assert found.give_up(stopped, "late") == 0
    assert found.queued() == [taken]
    assert found.sent(taken)
    assert not found.queued()


def test_links_in_the_folder_of_deliveries_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    draft = outside / f".{'0' * 16}"
    draft.write_text("precious")
    folder = tmp_path / "hooks/ci"
    folder.mkdir(parents=True)
    (folder / "queue").symlink_to(outside)
    (folder / "state").symlink_to(draft)
    found = Deliveries(HookPlace(str(tmp_path / "hooks")), "ci")
    for act in (found.begin, found.queued, found.tidy, lambda: found.add("x", 1, b"{}")):
        with pytest.raises(dibs.StorageError):
            act()
    with pytest.raises(dibs.StorageError):
        found.state()
    assert [path.read_text() for path in outside.iterdir()] == ["precious"]


def test_a_lock_that_no_sender_holds_is_complained_of_until_it_is_free(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    claim = board.acquire(f"{LOCK}ci", owner="mallory", ttl=3600)
    with serving(place) as server:
        wanted = "nothing is sent: mallory has its lock"
        until(lambda: wanted in server.log.read_text())
        until(lambda: kept(place).trouble())
        assert wanted in run_dibs(place, "deliveries")
        assert json.loads(run_dibs(place, "--json", "deliveries"))["trouble"].startswith(wanted)
        (finding,) = findings(board)
        assert (finding.kind, finding.name) == ("hook", "ci")
        assert wanted in finding.text
        assert f"dibs force-release {claim.name} --reason" in finding.text
        claim.release()
        started(place)
        board.add("a")
        until(lambda: receiver.ids == ["a"])
        until(lambda: not kept(place).trouble())
    assert findings(board) == []


def test_a_second_server_says_nothing_of_the_first_one_that_sends(
    scratch: Path, receiver: HookReceiver
) -> None:
    place = scratch / "board"
    with_hook(place, receiver.url)
    with serving(place):
        started(place)
        with serving(place) as other:
            other.client("ci").get("/status")
        assert not kept(place).trouble()


def test_a_pause_that_stops_a_hook_is_reported(scratch: Path, receiver: HookReceiver) -> None:
    place = scratch / "board"
    board = with_hook(place, receiver.url)
    pause, _ = board.pause_claims("upkeep", locks=True)
    with serving(place) as server:
        until(lambda: "upkeep" in kept(place).trouble())
        assert "hook ci: no lock can be acquired" in server.log.read_text()
        board.resume_claims([pause.name])
        started(place)
        until(lambda: not kept(place).trouble())


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://127.0.0.1:1/x", "allow it with `dibs serve --hook-network 127.0.0.1`"),
        ("https://10.0.0.1/x", "allow it with `dibs serve --hook-network 10.0.0.1`"),
    ],
)
def test_an_address_that_will_be_refused_is_reported_at_the_start(
    scratch: Path, url: str, wanted: str
) -> None:
    place = scratch / "board"
    board = with_hook(place, "http://127.0.0.1:1/x")
    settings = place / ".dibs/board.toml"
    settings.write_text(settings.read_text().replace("http://127.0.0.1:1/x", url))
    with serving(place, "--hook-network", "192.0.2.0/24") as server:
        until(lambda: wanted in server.log.read_text())
        until(lambda: kept(place).trouble())
    assert wanted in run_dibs(place, "deliveries")
    assert wanted in findings(board)[0].text
