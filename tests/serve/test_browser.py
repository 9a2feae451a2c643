"""The board in a browser: who gets in, what a dashboard gets of the server, and what ends it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

import dibs
from dibs.serve.logins import Logins
from dibs.serve.tokens import FOLDER, Principal, Role, Tokens
from tests.core.holders import ends, held, worker
from tests.patience import PATIENCE
from tests.serve import server_process
from tests.serve.http_client import until
from tests.serve.server_process import ServerProcess, add_token, certificate
from tests.serve.web_terminal import Visitor, visit


@pytest.fixture
def serving(scratch: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts a server on a board with a task."""
    found: list[ServerProcess] = []

    def start(*words: str) -> ServerProcess:
        board = dibs.open(scratch / "board", create=True)
        if not found:
            board.add("paint-7", b"the hull")
        found.append(ServerProcess(scratch / "board", *words))
        return found[-1]

    yield start
    for server in found:
        server.stop()
        assert "Traceback" not in server.log.read_text()


def dashboards(server: ServerProcess) -> list[int]:
    """The processes of its dashboards."""
    pid = server.process.pid
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for path in found for word in path.read_text().split()]


def of_process(pid: int, name: str) -> str:
    """A file in /proc."""
    return Path(f"/proc/{pid}/{name}").read_text()


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return of_process(pid, "stat").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_wrong_token_is_answered_late_and_gets_no_cookie(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()

    async def steps(visitor: Visitor) -> None:
        began = time.monotonic()
        answer = await visitor.log_in("dibs_secret-but-wrong")
        assert answer.status == 401
        assert time.monotonic() - began >= 1
        assert "not valid" in await answer.text()
        assert "Set-Cookie" not in answer.headers
        answers = await asyncio.gather(*(visitor.log_in("wrong") for _ in range(12)))
        assert sorted(answer.status for answer in answers) == [401] * 4 + [429] * 8
        assert "Log in" in await (await visitor.get()).text()

    visit(server, steps)
    log = server.log.read_text()
    assert "a login from 127.0.0.1 failed" in log
    assert "wrong" not in log


def test_the_cookie_is_no_token_and_stays_with_this_site(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        answer = await visitor.log_in(token)
        assert answer.status == 303
        cookie = answer.headers["Set-Cookie"]
        assert "; HttpOnly; SameSite=Strict" in cookie
        assert token not in str(answer.headers)
        page = await visitor.get()
        text = await page.text()
        assert "olga · operator" in text
        assert token not in text
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]

    visit(server, steps)


def test_by_tls_the_cookie_goes_no_other_way(serving: Callable[..., ServerProcess]) -> None:
    server = serving("--behind-proxy")
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        assert (await visitor.log_in(token)).headers["Set-Cookie"].endswith("; Secure")

    visit(server, steps)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="NO TLS: openssl is not installed")
def test_a_dashboard_of_a_server_with_tls_needs_no_certificate(
    serving: Callable[..., ServerProcess], scratch: Path
) -> None:
    cert, key = certificate(scratch)
    server = serving("--tls-cert", str(cert), "--tls-key", str(key))
    token = add_token(server.board, "olga", "operator")
    trusts = ssl.create_default_context(cafile=str(cert))

    async def steps(visitor: Visitor) -> None:
        answer = await visitor.log_in(token)
        assert answer.headers["Set-Cookie"].endswith("; Secure")
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")

    visit(server, steps, trusts)


@pytest.mark.parametrize("origin", [None, "null", "https://elsewhere.example", "http://127.0.0.1"])
def test_a_page_of_another_site_can_do_nothing(
    serving: Callable[..., ServerProcess], origin: str | None
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        visitor.headers = {} if origin is None else {"Origin": origin}
        for path in ("/login", "/logout"):
            assert (await visitor.post(path, data={"token": token})).status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await visitor.terminal()
        assert "olga" in await (await visitor.get()).text(), "it is still logged in"

    visit(server, steps)


def test_without_a_login_there_is_no_dashboard(serving: Callable[..., ServerProcess]) -> None:
    server = serving()

    async def steps(visitor: Visitor) -> None:
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await visitor.terminal()
        refused = await visitor.session.get(f"{visitor.url}/login")
        assert refused.status == 405

    visit(server, steps)
    assert not dashboards(server)


def test_a_token_with_a_prefix_cannot_see_the_board(serving: Callable[..., ServerProcess]) -> None:
    server = serving()
    token = add_token(server.board, "pia", "operator", "paint-")

    async def steps(visitor: Visitor) -> None:
        answer = await visitor.log_in(token)
        assert answer.status == 403
        assert "without a prefix" in await answer.text()

    visit(server, steps)


def test_the_pages_ask_no_other_host(serving: Callable[..., ServerProcess]) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        pages = [await (await visitor.get()).text()]
        await visitor.log_in(token)
        pages.append(await (await visitor.get()).text())
        for name in ("board.js", "textual.js", "page.css", "xterm.css"):
            pages.append(await (await visitor.get(f"/static/{name}")).text())
        for page in pages:
            used = re.findall(r"(?:src|href|url|import|fetch)\W{1,3}(?:https?:)?//[^\"')]+", page)
            assert not used

    visit(server, steps)


def test_a_file_of_the_page_is_sent_once(serving: Callable[..., ServerProcess]) -> None:
    server = serving()

    async def steps(visitor: Visitor) -> None:
        url = f"{visitor.url}/static/textual.js"
        first = await visitor.session.get(url)
        assert first.status == 200
        again = await visitor.session.get(url, headers={"If-None-Match": first.headers["ETag"]})
        assert again.status == 304
        plain = await visitor.session.get(url, headers={"Accept-Encoding": "identity"})
        assert await plain.read() == await first.read()

    visit(server, steps)


def test_a_dashboard_gets_nothing_of_the_server_but_its_own_token(
    serving: Callable[..., ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(server_process.ENV, "PGPASSWORD", "of-the-server")
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        (pid,) = dashboards(server)
        env = dict(pair.split("=", 1) for pair in of_process(pid, "environ").split("\0") if pair)
        assert env["DIBS_TOKEN"] == token
        assert "PGPASSWORD" not in env
        home = env["HOME"]
        assert os.stat(home).st_mode & 0o777 == 0o700
        assert os.readlink(f"/proc/{pid}/cwd") == home == env["XDG_STATE_HOME"]
        assert token not in of_process(pid, "cmdline")
        await terminal.press("q")
        assert await terminal.ended() == "The dashboard was closed."
        until(lambda: not os.path.exists(home), "its folder is removed")

    visit(server, steps)


def test_no_file_or_program_of_the_server_is_reached_from_a_dashboard(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        await terminal.press("e")
        await terminal.shows("export: locked")
        await terminal.press("\x1a")
        await terminal.shows("suspend: locked")
        await terminal.press("2", "\r")
        await terminal.shows("the hull")
        assert "$PAGER" not in terminal.drawn.text
        await terminal.press("v")
        await terminal.shows("locked: this dashboard")

    visit(server, steps)


@pytest.mark.parametrize("role", ["reader", "worker"])
def test_a_role_that_may_not_act_has_a_dashboard_that_cannot_be_unlocked(
    serving: Callable[..., ServerProcess], role: str
) -> None:
    server = serving()
    token = add_token(server.board, "rita", role)
    board = dibs.open(server.board)
    with worker() as mortal:
        name = held(board, "paint-8", mortal.pid).name
        ends(mortal)

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("READ-ONLY", "DEAD")
        await terminal.press("8", "X")
        await terminal.shows("read-only")
        await terminal.press(":")
        await terminal.shows("Search")
        await terminal.press(*"unlock", "\r")
        await terminal.shows(f"rita is the token of a {role}")
        assert "READ-ONLY" in terminal.drawn.text

    visit(server, steps)
    assert [task.name for task in board.find("paint-8")] == [name]


def test_a_dashboard_follows_the_size_of_its_page(serving: Callable[..., ServerProcess]) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal(100, 30)
        await terminal.shows("paint-7", "? help")
        terminal.drawn.screen.resize(50, 140)
        await terminal.send(["resize", {"width": 140, "height": 50}])
        await terminal.until(lambda: "? help" in terminal.drawn.screen.display[-1])

    visit(server, steps)


def test_what_no_page_sends_harms_nothing(serving: Callable[..., ServerProcess]) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        messages: list[object] = [
            [], {}, None, ["stdin"], ["stdin", 7], ["resize", {"width": "x", "height": 1}],
            ["resize", {"width": -5, "height": 10**30}], ["resize", {"width": 0, "height": True}],
            ["quit"], ["stdin", "\ud800"], ["resize", {"width": 120, "height": 40}],
        ]  # fmt: skip
        for message in messages:
            await terminal.send(message)
        await terminal.send(["ping", "12345"])
        await terminal.until(lambda: '["pong", "12345"]' in terminal.pongs)
        for text in ("{", "[" * 100_000):
            other = await visitor.terminal()
            await other.socket.send_str(text)
            assert await other.ended() == "The dashboard was closed."
        huge = await visitor.terminal()
        await huge.socket.send_str("x" * (1 << 20) + "yz")
        await huge.ended()
        await terminal.press("?")
        await terminal.shows("every key")

    visit(server, steps)


def test_no_more_dashboards_than_are_allowed(serving: Callable[..., ServerProcess]) -> None:
    server = serving("--dashboards", "1")
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        first = await visitor.terminal()
        await first.shows("paint-7")
        second = await visitor.terminal()
        assert await second.ended() == "All 1 dashboards are in use. Try again later."
        await first.socket.close()
        until(lambda: not dashboards(server), "the first one has ended")
        third = await visitor.terminal()
        await third.shows("paint-7")

    visit(server, steps)


def test_one_token_leaves_room_for_another(serving: Callable[..., ServerProcess]) -> None:
    server = serving("--dashboards", "2")
    olga, rita = (add_token(server.board, name, "operator") for name in ("olga", "rita"))

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(olga)
        first = await visitor.terminal()
        await first.shows("paint-7")
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            other = Visitor(session, server)
            await other.log_in(olga)  # another login of the same token
            second = await other.terminal()
            wanted = "olga may have 1 at a time. Close another one first."
            assert await second.ended() == wanted
            await other.log_in(rita)
            await (await other.terminal()).shows("paint-7")
        await first.socket.close()
        until(lambda: not dashboards(server), "both have ended")
        await (await visitor.terminal()).shows("paint-7")

    visit(server, steps)


def test_a_right_token_gets_in_while_wrong_ones_wait(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        wrong = [asyncio.ensure_future(visitor.log_in("wrong")) for _ in range(8)]
        await asyncio.wait(wrong, return_when=asyncio.FIRST_COMPLETED)  # one was refused at once
        began = time.monotonic()
        assert (await visitor.log_in(token)).status == 303
        assert time.monotonic() - began < 1.5
        statuses = sorted(answer.status for answer in await asyncio.gather(*wrong))
        assert statuses == [401] * 4 + [429] * 4

    visit(server, steps)


def test_the_folders_of_a_killed_server_are_removed_by_the_next(
    serving: Callable[..., ServerProcess], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = scratch / "tmp"
    temporary.mkdir()
    monkeypatch.setitem(server_process.ENV, "TMPDIR", str(temporary))
    killed, alive = serving(), serving()
    token = add_token(alive.board, "olga", "operator")

    async def see(visitor: Visitor) -> None:
        await visitor.log_in(token)
        await (await visitor.terminal()).shows("paint-7")
        if visitor.url == killed.url:
            killed.kill()

    visit(killed, see)

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        before = set(temporary.iterdir())
        assert len(before) == 2
        third = serving()
        until(lambda: len(set(temporary.iterdir()) & before) == 1, "that of the killed one")
        await terminal.press("?")
        await terminal.shows("every key")
        assert third.stop() == 0

    visit(alive, steps)
    assert alive.stop() == 0
    assert list(temporary.iterdir()) == []


def test_no_dashboards_means_no_pages(serving: Callable[..., ServerProcess]) -> None:
    server = serving("--dashboards", "0")

    async def steps(visitor: Visitor) -> None:
        assert (await visitor.get()).status == 404

    visit(server, steps)


def test_a_dashboard_without_a_key_ends_although_it_draws_and_its_terminal_answers(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving("--dashboard-idle", "8s")  # on a busy machine it draws late
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        assert await terminal.ended() == "No key was pressed for a long time."

    visit(server, steps)
    assert not dashboards(server)


def test_logging_out_ends_the_dashboards_of_this_login_only(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        mine = await visitor.terminal()
        await mine.shows("paint-7")
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            other = Visitor(session, server)
            await other.log_in(token)
            others = await other.terminal()
            await others.shows("paint-7")
            assert (await visitor.post("/logout")).status == 303
            assert await mine.ended() == "You have logged out."
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                await visitor.terminal()
            await others.press("?")
            await others.shows("every key")

    visit(server, steps)


def test_a_dashboard_that_waits_for_room_is_not_opened_after_a_logout(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving("--dashboards", "1")
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            other = Visitor(session, server)
            await other.log_in(token)
            first = await other.terminal()
            await first.shows("paint-7")
            waits = await visitor.terminal()
            await visitor.post("/logout")
            await first.press("q")
            assert await waits.ended() == "You have logged out."

    visit(server, steps)


def test_a_revoked_token_ends_its_dashboards_and_its_login(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        Tokens(str(server.board / FOLDER)).remove("olga")
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await visitor.terminal()
        assert await terminal.ended() == "The token was revoked."
        assert "Log in" in await (await visitor.get()).text()

    visit(server, steps)
    assert not dashboards(server)


def test_sigterm_ends_every_dashboard_in_time_also_those_that_are_stopped(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminals = [await visitor.terminal() for _ in range(3)]
        for terminal in terminals:
            await terminal.shows("paint-7")
        pids = dashboards(server)
        assert len(pids) == 3
        os.kill(pids[0], signal.SIGSTOP)
        began = time.monotonic()
        server.process.terminate()
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
        assert time.monotonic() - began < 5
        assert [await terminal.ended() for terminal in terminals] == ["The server has ended."] * 3
        until(lambda: all(gone(pid) for pid in pids), "the dashboards have ended")

    visit(server, steps)


def test_a_server_that_is_killed_leaves_no_dashboard(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        await (await visitor.terminal()).shows("paint-7")
        (pid,) = dashboards(server)
        server.kill()
        until(lambda: gone(pid), "the dashboard has ended")

    visit(server, steps)


def test_a_dashboard_that_takes_no_keys_is_killed_when_its_page_goes(
    serving: Callable[..., ServerProcess],
) -> None:
    server = serving()
    token = add_token(server.board, "olga", "operator")

    async def steps(visitor: Visitor) -> None:
        await visitor.log_in(token)
        terminal = await visitor.terminal()
        await terminal.shows("paint-7")
        (pid,) = dashboards(server)
        os.kill(pid, signal.SIGSTOP)
        for _ in range(100):
            await terminal.send(["stdin", "x" * 1000])
        await terminal.socket.close()
        until(lambda: gone(pid), "the dashboard has ended")

    visit(server, steps)


def test_a_login_that_no_one_uses_ends_and_their_number_is_bounded() -> None:
    ann = Principal("ann", Role.OPERATOR, "", "hash")
    logins = Logins()
    cookie = logins.begin("t", ann, 0.0)
    logins.keep({"hash"}, 11 * 3600.0)
    assert logins.find(cookie, 11 * 3600.0) is not None
    logins.keep({"hash"}, 22 * 3600.0)
    assert logins.find(cookie, 22 * 3600.0) is not None
    logins.keep({"hash"}, 35 * 3600.0)
    assert logins.find(cookie, 35 * 3600.0) is None
    cookies = [logins.begin("t", ann, float(n)) for n in range(1005)]
    assert [logins.find(each, 0.0) is None for each in cookies[:6]] == [True] * 5 + [False]
    logins.keep(set(), 0.0)
    assert logins.find(cookies[-1], 0.0) is None


def test_a_failed_login_of_one_address_keeps_no_other_away() -> None:
    logins = Logins()
    with logins.failing("a"), logins.failing("a"), logins.failing("a"), logins.failing("a"):
        assert not logins.may_fail("a")
        assert logins.may_fail("b")
    assert logins.may_fail("a")
