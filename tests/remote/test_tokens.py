"""What stands between a client and a server is said in one line that says what to do."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from queue import SimpleQueue

import pytest

import dibs
from dibs.remote.engine import RemoteEngine
from dibs.serve.tokens import FOLDER, Tokens
from tests.contract.command import Command
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient
from tests.serve.server_process import ServerProcess, add_token


def said(url: str, *words: str, code: int = 1, **env: str | None) -> str:
    """The line with which a command fails."""
    command = Command(url)
    given = command.env | {key: value for key, value in env.items() if value is not None}
    command.env = {key: value for key, value in given.items() if env.get(key, "") is not None}
    return command(*(words or ("ls",)), code=code)


def test_no_token_is_said_with_where_to_put_it(served: ServerProcess) -> None:
    found = said(served.url, code=2, DIBS_TOKEN=None, DIBS_TOKEN_FILE=None)
    assert "there is no token" in found
    assert "DIBS_TOKEN_FILE" in found


def test_a_wrong_and_a_revoked_token_are_refused(served: ServerProcess) -> None:
    assert "wrong or was revoked" in said(served.url, code=3, DIBS_TOKEN="dibs_wrong")
    token = add_token(served.board, "gone")
    board = dibs.open(served.url)
    assert said(served.url, "add", "x", code=0, DIBS_TOKEN=token) == "x.available"
    Tokens(str(served.board / FOLDER)).remove("gone")
    assert "wrong or was revoked" in said(served.url, "claim", code=3, DIBS_TOKEN=token)
    assert [task.state for task in board.find("x")] == ["available"]


def test_a_token_is_no_header_and_no_two_words(served: ServerProcess) -> None:
    for wrong in ("dibs_a b", "dibs_a\r\nX-Agent: root", "dibs_\u00e9"):
        assert "no valid token" in said(served.url, code=2, DIBS_TOKEN=wrong)


def test_a_token_is_taken_from_a_file_that_only_its_user_can_read(
    served: ServerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(os.environ["DIBS_TOKEN"] + "\n")
    for mode in (0o644, 0o640, 0o604):
        file.chmod(mode)
        found = said(served.url, code=2, DIBS_TOKEN=None, DIBS_TOKEN_FILE=str(file))
        assert f"{file}: others can read the token: run `chmod 600`" in found
    file.chmod(0o600)
    assert said(served.url, "add", "x", code=0, DIBS_TOKEN=None, DIBS_TOKEN_FILE=str(file))
    missing = said(served.url, code=2, DIBS_TOKEN=None, DIBS_TOKEN_FILE=str(tmp_path / "none"))
    assert "No such file" in missing
    folder = said(served.url, code=2, DIBS_TOKEN=None, DIBS_TOKEN_FILE=str(tmp_path))
    assert "must be a plain file" in folder


def test_a_role_and_a_prefix_are_kept(served: ServerProcess) -> None:
    reader = add_token(served.board, "look", "reader")
    worker = add_token(served.board, "ci", "worker", "ci-")
    assert "needs the role worker" in said(served.url, "add", "x", code=3, DIBS_TOKEN=reader)
    found = said(served.url, "add", "x", code=3, DIBS_TOKEN=worker)
    assert "only for ids that begin with ci-" in found
    said(served.url, "add", "ci-1", code=0, DIBS_TOKEN=worker)
    claim = said(served.url, "claim", "--owner", "a", code=0, DIBS_TOKEN=worker)
    board = dibs.open(served.url)
    assert board.attach(claim).record.owner == "ci/a"
    said(served.url, "add", "ci-2", code=0, DIBS_TOKEN=worker)
    other = said(served.url, "claim", code=0, DIBS_TOKEN=worker)
    assert board.attach(other).record.owner == f"ci/{board.host.name}"
    assert "needs the role operator" in said(served.url, "park", claim, code=3, DIBS_TOKEN=worker)
    said(served.url, "done", claim, code=0, DIBS_TOKEN=worker)


def test_a_prefix_shows_its_own_part_of_the_board(served: ServerProcess) -> None:
    board = dibs.open(served.board)
    for ident in ("other-1", "other-2", "other-3"):
        board.add(ident)
    board.acquire("other-lock")
    taken = board.claim("other-1")
    assert taken is not None
    taken.done()
    session = {"DIBS_TOKEN": add_token(served.board, "ci", "worker", "ci-"), "DIBS_SESSION": "s1"}
    for ident in ("ci-1", "ci-2", "ci-3"):
        said(served.url, "add", ident, code=0, **session)
    assert said(served.url, "claim", "ci-1", "--owner", "me", code=0, **session)
    said(served.url, "claim", "ci-2", code=0, **session)
    listed = said(served.url, "ls", code=0, **session)
    assert "ci-1" in listed
    assert "other" not in listed
    assert len(listed.splitlines()) == 3
    assert "ci-1" in said(served.url, "ls", "id~1", code=0, **session)
    assert "ci-1" in said(served.url, "ls", "--mine", code=0, **session)
    assert "ci-1" in said(served.url, "prime", code=0, **session)
    assert "claim" in said(served.url, "log", "ci-1", code=0, **session)
    client = HttpClient(served.url, session["DIBS_TOKEN"])
    assert [client.get(f"/v1/room?most={n}")["room"] for n in (0, 1)] == [False, True]
    assert client.get("/status")["locks_held"] == 0
    said(served.url, "release", "--mine", code=0, **session)
    assert "the complete board" in said(served.url, "stats", code=3, **session)


def test_a_finished_task_is_found_by_the_owner_that_its_claim_had(served: ServerProcess) -> None:
    worker = {"DIBS_TOKEN": add_token(served.board, "w"), "DIBS_SESSION": ""}
    said(served.url, "add", "a", code=0, **worker)
    claim = said(served.url, "claim", "--owner", "me", code=0, **worker)
    assert claim in said(served.url, "ls", "owner=w/me", code=0, **worker)
    said(served.url, "done", claim, code=0, **worker)
    assert claim in said(served.url, "ls", "owner=w/me", code=0, **worker)
    assert not said(served.url, "ls", "owner=w/m", code=0, **worker)


@pytest.mark.parametrize("verb", ["done", "beat", "fail", "release", "ask", "note"])
def test_the_claim_of_another_token_is_not_allowed(served: ServerProcess, verb: str) -> None:
    board = dibs.open(served.url)
    board.add("x")
    claim = board.claim()
    assert claim is not None
    other = add_token(served.board, "other")
    words = {"ask": ["ask", claim.name, "why"], "note": ["note", "n"]}.get(verb, [verb, claim.name])
    found = said(served.url, *words, code=3, DIBS_TOKEN=other, DIBS_CLAIM=claim.name)
    assert "was not made with the token of other: ask its operator" in found
    claim.verify()


def test_a_claim_of_another_token_is_not_verified(served: ServerProcess) -> None:
    board = dibs.open(served.url)
    board.add("x")
    claim = board.claim()
    assert claim is not None
    other = add_token(served.board, "other")
    found = said(served.url, "verify", claim.name, code=5, DIBS_TOKEN=other)
    assert f"{claim.name} is not yours: " in found
    assert "was not made with the token of other" in found


def test_the_claims_of_a_token_are_found_by_the_owner_that_it_gave(served: ServerProcess) -> None:
    board = dibs.open(served.url)
    worker = {"DIBS_TOKEN": add_token(served.board, "t"), "DIBS_SESSION": ""}
    other = {"DIBS_TOKEN": add_token(served.board, "u")}
    names = []
    for number, token in enumerate((worker, worker, other)):
        board.add(f"x{number}")
        agent = "web-9" if number != 1 else "web-8"
        names.append(said(served.url, "claim", "--owner", agent, code=0, **token))
    mine = ("--mine", "--owner", "web-9")
    assert names[0] in said(served.url, "ls", *mine, code=0, **worker)
    for owner in ("web-9", "t/web-9"):
        found = said(served.url, "prime", "--owner", owner, code=0, **worker)
        assert f"Yours: {names[0]} " in found
        assert names[1] not in found
    listed = said(served.url, "ls", "owner=web-9", code=0, **worker)
    assert [name in listed for name in names] == [True, False, True]
    assert said(served.url, "release", *mine, code=0, **worker) == "x0.f1.available"
    assert all(board.find(each)[0].live for each in ("x1", "x2"))
    operator = said(served.url, "claim", "--owner", "web-9", code=0)
    assert board.attach(operator).record.owner == "web-9"
    assert operator in said(served.url, "ls", *mine, code=0)


@pytest.mark.parametrize("role", ["reader", "worker", "operator"])
def test_a_watch_says_that_a_token_does_no_operators_act(
    served: ServerProcess, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_TOKEN", add_token(served.board, "look", role))
    first: SimpleQueue[dibs.Health] = SimpleQueue()
    watch = dibs.watch(served.url, lambda delta: first.put(watch.health))
    health = first.get(timeout=PATIENCE)
    assert health.writable is (role == "operator")
    if role != "operator":
        assert health.why_read_only == f"look is the token of a {role}: ask for that of an operator"
    assert watch.stop(PATIENCE)


def test_a_hint_names_no_command_that_works_only_where_the_board_is(served: ServerProcess) -> None:
    missing = said(served.url, code=2, DIBS_TOKEN=None, DIBS_TOKEN_FILE=None)
    assert "ask its operator" in missing
    assert "token add" not in missing
    for words in (["ls"], ["add", "x", "--role", "worker", "--tokens", str(served.board)]):
        assert "ask its operator" in said(served.url, "token", *words, code=2)
    with pytest.raises(dibs.BadName, match="on the server's machine"):
        RemoteEngine().make_roles(served.url)


def test_a_run_whose_token_is_revoked_stops_its_work(served: ServerProcess) -> None:
    token = add_token(served.board, "gone")
    dibs.open(served.url).add("x")
    remove = f"rm {served.board / FOLDER / 'gone'}; exec sleep 600"
    words = ("run", "--ttl", "3", "--", "sh", "-c", remove)
    command = Command(served.url)
    command.env |= {"DIBS_TOKEN": token}
    done = command.run(*words)
    assert done.returncode == 5
    assert b"wrong or was revoked" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_token_is_in_no_message_and_in_no_command_line(served: ServerProcess) -> None:
    token = os.environ["DIBS_TOKEN"]
    board = dibs.open(served.url)
    board.add("x")
    with pytest.raises(dibs.Refused) as caught:
        board.add("x")
    seen = [repr(board), str(caught.value), *board.location, *board.location.command_line_args]
    assert not any(token in text for text in seen)
    with pytest.raises(dibs.BadName, match="has no user, password or options") as refused:
        dibs.open("http://me:secret@127.0.0.1:1")
    assert "secret" not in str(refused.value)


def test_no_server_and_what_is_no_address(served: ServerProcess) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "Connection refused: start the server" in said(f"http://127.0.0.1:{port}")
    for wrong in ("http://", "http://a:0", "http://a:99999", "http://a b", "https://[::1"):
        with pytest.raises(dibs.BadName, match="is no address of a server"):
            dibs.open(wrong)


def test_a_board_that_is_opened_read_only_changes_nothing(served: ServerProcess) -> None:
    board = dibs.open(served.url, read_only=True)
    for change in (
        lambda: board.add("x"),
        board.claim,
        lambda: board.acquire("x"),
        board.reap,
        lambda: board.park("x.available", "no"),
        lambda: board.purge(0),
    ):
        with pytest.raises(dibs.ReadOnly, match="opened read-only"):
            change()
    assert board.snapshot().counts() == dict.fromkeys(board.snapshot().counts(), 0)


def test_tls_is_used_only_with_an_authority_that_is_trusted(scratch: Path) -> None:
    key, cert = scratch / "key.pem", scratch / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", str(key), "-out", str(cert), "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    server = ServerProcess(scratch / "board", "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        token = add_token(server.board, "op", "operator")
        url = server.url
        assert url.startswith("https://")
        found = said(url, DIBS_TOKEN=token)
        assert "its certificate is not trusted" in found
        assert "SSL_CERT_FILE" in found
        trusted = {"DIBS_TOKEN": token, "SSL_CERT_FILE": str(cert)}
        assert said(url, "add", "x", code=0, **trusted) == "x.available"
        assert said(url, "claim", code=0, **trusted).startswith("x.f1.")
        plain = "http" + url.removeprefix("https")
        assert said(plain, DIBS_TOKEN=token)
    finally:
        server.stop()
