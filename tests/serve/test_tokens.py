"""Tokens on the command line, and where the server listens."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.serve.tokens import Principal, Role, Tokens, hash_of
from tests.patience import PATIENCE
from tests.serve.http_client import HttpClient, until
from tests.serve.server_process import ENV, ServerProcess, add_token, certificate, run_dibs


@pytest.fixture
def board(scratch: Path) -> Path:
    path = scratch / "board"
    dibs.open(path, create=True)
    return path


def refused(board: Path, *words: str) -> str:
    """What a command line that is refused says."""
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(board), *words],
        env=ENV,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode in (2, 3), done
    return done.stderr


def test_add_prints_the_token_alone_on_its_last_line(board: Path) -> None:
    lines = run_dibs(board, "token", "add", "ci", "--role", "worker").splitlines()
    assert len(lines) == 1
    assert lines[-1].startswith("dibs_")
    assert len(lines[-1]) >= 48
    fields = json.loads(run_dibs(board, "--json", "token", "add", "b", "--role", "reader"))
    assert fields["token"].startswith("dibs_")


def test_only_the_hash_is_kept_anywhere_on_the_board(board: Path) -> None:
    token = add_token(board, "ci")
    secret = token.removeprefix("dibs_")
    found = [path for path in board.rglob("*") if path.is_file()]
    assert any(hash_of(token) in path.read_text(errors="replace") for path in found)
    assert not [path for path in found if secret in path.read_text(errors="replace")]
    file = board / ".dibs/tokens/ci"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [finding.text for finding in dibs.open(board).check()] == []


def test_a_name_has_one_token_until_it_is_removed(board: Path) -> None:
    add_token(board, "ci")
    assert "already" in refused(board, "token", "add", "ci", "--role", "reader")
    assert run_dibs(board, "token", "ls").split()[:2] == ["ci", "worker"]
    run_dibs(board, "token", "rm", "ci")
    assert run_dibs(board, "token", "ls") == ""
    assert "no token" in refused(board, "token", "rm", "ci")
    run_dibs(board, "token", "add", "ci", "--role", "reader")


def test_the_log_says_who_was_added_and_removed_and_never_the_token(board: Path) -> None:
    token = run_dibs(board, "token", "add", "ci", "--role", "worker").strip()
    run_dibs(board, "token", "rm", "ci")
    log = run_dibs(board, "log")
    assert "added ci: worker" in log
    assert "removed ci" in log
    assert token not in log


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 41, ".hidden", "ä"])
def test_a_bad_name_is_refused(board: Path, name: str) -> None:
    assert "token's name" in refused(board, "token", "add", name, "--role", "reader")
    assert not (board / ".dibs/tokens").exists()


def test_hostile_files_among_the_tokens_are_no_tokens(scratch: Path) -> None:
    tokens = Tokens(str(scratch / "tokens"))
    good = tokens.add("good", Role.READER)
    folder = scratch / "tokens"
    (folder / "empty").write_text("")
    (folder / "list").write_text("[]")
    (folder / "deep").write_text("[" * 4000)
    (folder / "role").write_text('{"v":1,"role":"root","prefix":"","sha256":"' + "0" * 64 + '"}')
    (folder / "hash").write_text('{"v":1,"role":"worker","prefix":"","sha256":"x"}')
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "good")
    assert [one.name for one in tokens.all()] == ["good"]
    assert tokens.find(hash_of(good)) is not None
    assert tokens.find(hash_of("")) is None


def test_a_principal_names_its_agents_below_itself() -> None:
    ann = Principal("ann", Role.WORKER, "", "")
    assert ann.owner(None) == "ann"
    assert ann.owner("w1") == "ann/w1"
    assert ann.owner("ann/w1") == "ann/w1"
    assert ann.owner("annette") == "ann/annette"
    assert ann.owns("ann/w1")
    assert not ann.owns("annette")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_an_address_that_others_can_reach_wants_tls_or_a_proxy_and_tokens(
    board: Path, listen: str
) -> None:
    assert "--tls-cert" in refused(board, "serve", "--listen", listen)
    said = refused(board, "serve", "--listen", listen, "--behind-proxy")
    assert "add a token first" in said


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", ":1"])
def test_what_is_no_address_is_refused(board: Path, listen: str) -> None:
    assert "no address" in refused(board, "serve", "--listen", listen)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="NO TLS: openssl is not installed")
def test_tls_with_a_certificate(board: Path, scratch: Path) -> None:
    cert, key = certificate(scratch)
    token = add_token(board, "ci")
    server = ServerProcess(board, "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(cert))
        client = HttpClient(server.url, token, tls=context)
        assert client.post("/locks/a/acquire")["status"] == "acquired"
    finally:
        assert server.stop() == 0


def test_a_folder_for_tokens_can_be_named(board: Path, scratch: Path) -> None:
    where = str(scratch / "elsewhere")
    token = run_dibs(board, "token", "add", "x", "--role", "reader", "--tokens", where).strip()
    assert not (board / ".dibs/tokens").exists()
    server = ServerProcess(board, "--tokens", where)
    try:
        assert HttpClient(server.url, token).get("/status")["name"] == "x"
    finally:
        server.stop()


def test_the_server_never_writes_a_token_anywhere(board: Path) -> None:
    server = ServerProcess(board)
    token = add_token(board, "ci")
    client = HttpClient(server.url, token)
    client.post("/locks/a/acquire", {"metadata": "m"})
    client.ask("GET", f"/locks/{token}", headers={"Authorization": "Bearer wrong-wrong"})
    server.stop()
    assert token not in server.log.read_text()
    assert "wrong-wrong" not in server.log.read_text()
    assert token not in Path(f"/proc/{os.getpid()}/cmdline").read_text()
    for path in board.rglob("*"):
        if path.is_file():
            assert token not in path.read_text(errors="replace")


def test_the_log_says_which_name_acted(board: Path) -> None:
    server = ServerProcess(board)
    try:
        client = HttpClient(server.url, add_token(board, "ci"), "agent-7")
        held = client.post("/locks/a/acquire", {"metadata": "m"})
        client.post("/locks/a/release", {"lease_id": held["lease_id"]})
    finally:
        server.stop()
    acted = [(event.verb, event.by) for event in dibs.open(board).log.of("a")]
    assert acted[-2:] == [("claim", "ci/agent-7"), ("release", "ci/agent-7")]


def test_a_python_without_aiohttp_is_told_what_to_install(board: Path, scratch: Path) -> None:
    (scratch / "aiohttp.py").write_text("raise ModuleNotFoundError('no', name='aiohttp')\n")
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(board), "serve"],
        env=ENV | {"PYTHONPATH": f"{scratch}:{ENV['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert "[serve]'`" in done.stderr


@pytest.mark.parametrize(
    ("name", "mode", "wanted"),
    [
        ("", 0o777, "changed by other users"),
        ("", 0o720, "changed by other users"),
        ("ci", 0o666, "read or changed by other users"),
        ("ci", 0o640, "read or changed by other users"),
    ],
)
def test_a_token_that_others_could_have_written_is_refused(
    board: Path, name: str, mode: int, wanted: str
) -> None:
    add_token(board, "ci")
    folder = board / ".dibs/tokens"
    path = folder / name if name else folder
    path.chmod(mode)
    for words in (("serve",), ("token", "ls"), ("token", "add", "x", "--role", "reader")):
        (line,) = refused(board, *words).splitlines()
        assert str(path) in line
        assert wanted in line
        assert "chmod go-rwx" in line
    path.chmod(mode & 0o700)
    assert run_dibs(board, "token", "ls").startswith("ci")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_a_token_of_another_user_is_refused(board: Path) -> None:
    add_token(board, "ci")
    for path in (board / ".dibs/tokens/ci", board / ".dibs/tokens"):
        os.chown(path, 12_345, -1)
        assert f"{path} belongs to another user (uid 12345)" in refused(board, "serve")
        os.chown(path, os.geteuid(), -1)


def test_a_token_that_becomes_unsafe_is_refused_while_the_server_runs(
    server: ServerProcess,
) -> None:
    good, bad = server.client("good"), server.client("bad")
    assert bad.ask("GET", "/status").status == 200
    folder = server.board / ".dibs/tokens"
    (folder / "bad").chmod(0o666)
    (folder / "evil").write_text("{}")  # so that the folder is read again
    until(lambda: bad.ask("GET", "/status").status == 401)
    until(lambda: "bad can be read or changed by other users" in server.log.read_text())
    assert good.ask("GET", "/status").status == 200
    folder.chmod(0o777)
    until(lambda: good.ask("GET", "/status").status == 401)
    folder.chmod(0o700)
    until(lambda: good.ask("GET", "/status").status == 200)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("serve", "--clients", "0"), "1 or more"),
        (("serve", "--tokens", "/etc/passwd"), "/etc/passwd is no folder"),
        (("token", "ls", "--tokens", "/etc/passwd"), "/etc/passwd is no folder"),
        (("token", "add", "x", "--role", "reader", "--tokens", "/etc/passwd"), "is no folder"),
        (("deliveries", "--hooks", "/etc/passwd"), "/etc/passwd is no folder"),
        (("serve", "--hooks", "/etc/passwd"), "/etc/passwd is no folder"),
    ],
)
def test_what_cannot_be_served_is_one_clear_line(
    board: Path, words: tuple[str, ...], wanted: str
) -> None:
    (line,) = refused(board, *words).splitlines()
    assert wanted in line
