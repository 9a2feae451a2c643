"""The board in a browser: a login with a token, then the dashboard in a terminal on the page.

Each page has a process of its own, which asks this server with the token of its user. So whatever
is typed there, the server refuses what that token may not do.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web

from dibs.serve.answers import headers_of
from dibs.serve.connections import end_with_client
from dibs.serve.dashboard_folders import DashboardFolders
from dibs.serve.logins import Login, Logins
from dibs.serve.problems import Refusal
from dibs.serve.pseudo_terminal import TerminalProgram
from dibs.serve.tokens import Role, hash_of
from dibs.shipped import data, text

if TYPE_CHECKING:
    from dibs.serve.service import Service
    from dibs.serve.tokens import Principal

_FORM_BYTES = 4096
_SLOW = 2.0
"""Seconds after which a failed login is answered."""
_INPUT_BYTES = 1 << 20
"""The longest message of a page, which is a text that is pasted."""
_END = 1.5
"""Seconds in which a dashboard ends by itself; then it is killed."""
_SEAT = 2.5
"""Seconds for which a page waits until another dashboard ends, if there are too many."""
_ALIVE = 15.0
"""Seconds after which a page has to show that it is still there."""
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What the pages may load: nothing of another host. The terminal writes its own styles."""
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",  # with none at all, forms have no `Origin`
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_TERMINAL = {
    "textual.js": ("js/textual.js", "text/javascript"),
    "xterm.css": ("css/xterm.css", "text/css"),
    "mono.ttf": ("fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "mono-italic.ttf": ("fonts/RobotoMono-Italic-VariableFont_wght.ttf", "font/ttf"),
}
"""The files of textual-serve: the terminal, with its font."""
_OWN = {"board.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
_KEPT = ("PATH", "PYTHONPATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DIBS_HOST")
"""The variables of the server that its dashboards get; no other, as some are secrets."""
_BEGIN = (
    "import os, sys; os.login_tty(0); from dibs_tui.cli import main; sys.argv[0] = 'dibs'; "
    "sys.exit(main())"
)
_is_answer = re.compile(r"(?:\x1b\[[?\d;]*(?:\$y|[RcnIO]))+").fullmatch
"""What a terminal sends by itself: it is no sign of a person."""


class Browsing(NamedTuple):
    """The terms on which dashboards are shown in browsers."""

    most: int
    """How many at a time, of all tokens."""
    idle: float
    """Seconds without a key or click after which one ends."""
    secure: bool
    """Whether browsers come by TLS, so that the cookie may go no other way."""

    @property
    def most_of_one(self) -> int:
        """How many one token may have at a time: half of all, so that another user gets in."""
        return max(1, self.most // 2)


class StaticFile(NamedTuple):
    """A file of the page, as it is sent."""

    body: bytes
    kind: str
    tag: str


class Sitting:
    """One dashboard on one page, until something ends it."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self.key_at = time.monotonic()
        """When its user did something last."""
        self.why = ""
        """Why it ends; shown on its page."""
        self._over = asyncio.Event()

    def end(self, why: str) -> None:
        """End it."""
        self.why = self.why or why
        self._over.set()

    async def over(self) -> None:
        """Wait until something ends it."""
        await self._over.wait()


class Browser:
    """The pages for browsers, and the dashboards behind them."""

    def __init__(self, service: Service, terms: Browsing, log: Callable[[str], object]) -> None:
        self.terms = terms
        self._url = ""
        self._cookie = ""
        self._service = service
        self._log = log
        self._logins = Logins()
        self._sittings: set[Sitting] = set()
        self._seats = asyncio.Semaphore(terms.most)
        self._seats_of: dict[str, asyncio.Semaphore] = {}
        """Those of each token, by its hash."""
        self._folders: DashboardFolders
        self._files = _static_files()
        self._pages = {
            "/": {"GET": self._first},
            "/login": {"POST": self._log_in},
            "/logout": {"POST": self._log_out},
            "/terminal": {"GET": self._terminal},
            **{f"/static/{name}": {"GET": self._static} for name in self._files},
        }

    def begin(self, url: str, port: int) -> None:
        """The server listens; its dashboards reach it at `url`."""
        self._folders = DashboardFolders()
        self._url = url
        self._cookie = f"dibs-{port}"  # browsers share cookies between ports

    def find(
        self, method: str, path: str
    ) -> Callable[[web.BaseRequest, str], Awaitable[web.StreamResponse]] | None:
        """What answers a request; None if its path is not one of the pages."""
        found = self._pages.get(path)
        if found is None:
            return None
        answer = found.get("GET" if method == "HEAD" else method)
        if answer is None:
            allowed = sorted(found)
            message = f"this path takes {', '.join(allowed)}"
            raise Refusal("method_not_allowed", message, {"allow": allowed})
        return answer

    def keep(self, valid: Container[str]) -> None:
        """End what belongs to tokens that are not valid any more, and what no one uses."""
        now = time.monotonic()
        for one in self._sittings:
            one.login.used = now
            if one.login.who.hash not in valid:
                one.end("The token was revoked.")
            elif now - one.key_at > self.terms.idle:
                one.end("No key was pressed for a long time.")
        self._logins.keep(valid, now)
        self._seats_of = {key: own for key, own in self._seats_of.items() if key in valid}

    def close(self) -> None:
        """End every dashboard."""
        for one in self._sittings:
            one.end("The server has ended.")

    def end(self) -> None:
        """Leave nothing behind."""
        self._folders.close()

    # The pages

    async def _first(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        """The board, or the login."""
        login = self._login_of(request)
        if login is None:
            return self._login_page(request_id)
        if not self._files:
            why = "The server lacks textual-serve: install dibs there with the extra serve."
            return self._login_page(request_id, 501, why)
        who = login.who
        board = self._service.location.label
        page = _page("board.html", board=board, name=who.name, role=who.role.word)
        return _html(page, request_id)

    async def _log_in(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        """Check a token that was typed; the answer to a wrong one is slow."""
        _check_origin(request)
        address = request.remote or ""
        token = (await _form(request)).get("token", "").strip()
        who = await self._find(hash_of(token))
        if who is None:
            if not self._logins.may_fail(address):
                why = "Too many wrong tokens. Try again in a while."
                return self._login_page(request_id, 429, why)
            with self._logins.failing(address):
                self._log(f"a login from {address} failed")
                await asyncio.sleep(_SLOW)
            return self._login_page(request_id, 401, "This token is not valid.")
        if who.prefix:
            why = (
                f"{who.name} may only see {who.prefix!r}: the board needs a token without a prefix."
            )
            return self._login_page(request_id, 403, why)
        cookie = self._logins.begin(token, who, time.monotonic())
        return self._home(request_id, f"{self._cookie}={cookie}")

    async def _log_out(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        """End a login with all its dashboards."""
        _check_origin(request)
        login = self._logins.end(request.cookies.get(self._cookie, ""))
        for one in self._sittings:
            if one.login is login:
                one.end("You have logged out.")
        return self._home(request_id, f"{self._cookie}=; Max-Age=0")

    async def _static(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        """A file of the page; browsers keep it and ask whether it has changed."""
        file = self._files[request.path.rpartition("/")[2]]
        headers = headers_of(request_id) | _HEADERS | {"ETag": file.tag}
        headers |= {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers=headers)
        headers |= {"Content-Type": file.kind}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=file.body, headers=headers | {"Content-Encoding": "gzip"})
        return web.Response(body=gzip.decompress(file.body), headers=headers)

    def _login_page(self, request_id: str, status: int = 200, why: str = "") -> web.Response:
        page = _page("login.html", why=why)
        return _html(page, request_id, status)

    def _home(self, request_id: str, cookie: str) -> web.Response:
        """Go to the first page, with a cookie for the pages, which a proxy may have in a folder."""
        cookie += "; HttpOnly; SameSite=Strict" + ("; Secure" if self.terms.secure else "")
        headers = headers_of(request_id) | _HEADERS | {"Location": "./", "Set-Cookie": cookie}
        return web.Response(status=303, headers=headers)

    async def _find(self, digest: str) -> Principal | None:
        """The token with this hash as it is now; None if it is not valid."""
        tokens = self._service.tokens
        return await self._service.verbs.run(lambda: tokens.find(digest), lambda: "tokens")

    def _login_of(self, request: web.BaseRequest) -> Login | None:
        cookie = request.cookies.get(self._cookie, "")
        return self._logins.find(cookie, time.monotonic())

    # The dashboards

    async def _terminal(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        """A dashboard, over a websocket, until its page or its user goes."""
        _check_origin(request)
        login = self._login_of(request)
        if login is None:
            raise Refusal("unauthorized", "log in first")
        sitting = Sitting(login)
        self._sittings.add(sitting)  # before anything is waited for: a logout must find it
        try:
            who = await self._find(login.who.hash)
            if who is None:
                raise Refusal("unauthorized", "the token was revoked")
            socket = web.WebSocketResponse(heartbeat=_ALIVE, timeout=1.0, max_msg_size=_INPUT_BYTES)
            socket.headers.update(headers_of(request_id))
            end_with_client(request)
            await socket.prepare(request)
            await self._seat(sitting, who, socket, dict(parse_qsl(request.query_string)))
            return socket
        finally:
            self._sittings.discard(sitting)

    async def _seat(
        self,
        sitting: Sitting,
        who: Principal,
        socket: web.WebSocketResponse,
        size: dict[str, str],
    ) -> None:
        """Run a dashboard for a page, if there is room for its token, and in all."""
        most_of_one = self.terms.most_of_one
        all_used = f"All {self.terms.most} dashboards are in use. Try again later."
        own = self._seats_of.setdefault(who.hash, asyncio.Semaphore(most_of_one))
        if not await _seated(own):
            why = f"{who.name} may have {most_of_one} at a time. Close another one first."
            why = all_used if self._seats.locked() else why
            await socket.close(code=4503, message=why.encode())
            return
        try:
            if not await _seated(self._seats):
                await socket.close(code=4503, message=all_used.encode())
                return
            columns, rows = _number(size.get("width"), 80), _number(size.get("height"), 24)
            try:
                await self._sit(sitting, who, socket, columns, rows)
            finally:
                self._seats.release()
        finally:
            own.release()

    async def _sit(
        self,
        sitting: Sitting,
        who: Principal,
        socket: web.WebSocketResponse,
        columns: int,
        rows: int,
    ) -> None:
        """Run a dashboard for a page."""
        folder = ""
        try:
            read_only = "false" if who.role >= Role.OPERATOR else "true"
            folder = self._folders.make(f"local = false\nread_only = {read_only}\n")
            argv, env = _command(self._url, sitting.login, folder)
            program = await TerminalProgram.start(argv, env, folder, columns, rows)
            try:
                first = await _first_of(
                    _show(program, socket), _listen(sitting, program, socket), sitting.over()
                )
            finally:
                code = await program.end(_END)
            why = sitting.why or "The dashboard was closed."
            if code and first == 0 and not sitting.why:
                why = f"The dashboard has ended with exit code {code}."
            await socket.close(code=4000, message=why.encode())
        except OSError as error:
            self._log(f"no dashboard for {who.name}: {error}")
            await socket.close(code=4500, message=b"The dashboard could not be started.")
        finally:
            if folder:
                await asyncio.to_thread(self._folders.remove, folder)


async def _seated(seats: asyncio.Semaphore) -> bool:
    """Get a seat, perhaps that of a page that is just being loaded again; False if none is free."""
    try:
        async with asyncio.timeout(_SEAT):
            await seats.acquire()
    except TimeoutError:
        return False
    return True


async def _first_of(*works: Awaitable[None]) -> int:
    """Work at all of them until one ends; returns which."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for found in ended:
        if isinstance(found, Exception) and not isinstance(found, ConnectionError):
            raise found
    return min(tasks.index(task) for task in done)


async def _show(program: TerminalProgram, socket: web.WebSocketResponse) -> None:
    """Send what the dashboard draws, as fast as the page takes it."""
    while drawn := await program.read():
        await socket.send_bytes(drawn)


async def _listen(
    sitting: Sitting, program: TerminalProgram, socket: web.WebSocketResponse
) -> None:
    """Pass on what the page sends: keys, and the size of its terminal."""
    async for message in socket:
        if message.type != WSMsgType.TEXT:
            return
        try:
            given = json.loads(message.data)
        except (ValueError, RecursionError):
            return
        match given:
            case ["stdin", str(keys)]:
                if _is_answer(keys) is None:
                    sitting.key_at = time.monotonic()
                if not program.write(keys.encode("utf-8", "replace")):
                    return
            case ["resize", {"width": int(columns), "height": int(rows)}]:
                program.resize(columns, rows)
            case ["ping", str(sent)]:
                await socket.send_json(["pong", sent[:40]])
            case _:
                pass


def _command(url: str, login: Login, folder: str) -> tuple[list[str], dict[str, str]]:
    """How a dashboard is started, with nothing of the server but what it needs."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), folder)
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
    env |= {"DIBS_TOKEN": login.token, "DIBS_BOARD": url, "USER": login.who.name}
    # -P: nothing is imported from its folder.
    return [sys.executable, "-P", "-c", _BEGIN, "board"], env


def _static_files() -> dict[str, StaticFile]:
    """The files of the page; none if textual-serve is not installed."""
    spec = find_spec("textual_serve")
    if spec is None or not spec.submodule_search_locations or find_spec("dibs_tui") is None:
        return {}
    folder = Path(spec.submodule_search_locations[0], "static")
    found = {name: ((folder / path).read_bytes(), kind) for name, (path, kind) in _TERMINAL.items()}
    found |= {name: (data(f"serve/page/{name}"), kind) for name, kind in _OWN.items()}
    return {
        name: StaticFile(gzip.compress(body, 6), kind, f'"{sha256(body).hexdigest()[:32]}"')
        for name, (body, kind) in found.items()
    }


def _page(file: str, **words: str) -> str:
    """A page with these words, which may be anything."""
    given = {key: escape(word) for key, word in words.items()}
    return _template(file).substitute(given)


@cache
def _template(file: str) -> Template:
    return Template(text(f"serve/page/{file}"))


def _html(page: str, request_id: str, status: int = 200) -> web.Response:
    headers = headers_of(request_id) | _HEADERS | {"Content-Type": "text/html; charset=utf-8"}
    return web.Response(body=page.encode(), status=status, headers=headers)


def _check_origin(request: web.BaseRequest) -> None:
    """Refuse what a page of another site sends."""
    scheme, _, host = request.headers.get("Origin", "").partition("://")
    if scheme not in ("http", "https") or host != request.headers.get("Host", ""):
        raise Refusal("forbidden", "only a page of this server may send this")


async def _form(request: web.BaseRequest) -> dict[str, str]:
    """The fields of a form."""
    if (request.content_length or _FORM_BYTES + 1) > _FORM_BYTES:
        raise Refusal("body_too_large", f"a form has at most {_FORM_BYTES:,} bytes")
    try:
        async with asyncio.timeout(10):
            body = await request.read()
    except TimeoutError:
        raise Refusal("timeout", "the body did not arrive in time") from None
    with suppress(ValueError):
        return dict(parse_qsl(body.decode("ascii", "replace"), max_num_fields=10))
    return {}


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default
