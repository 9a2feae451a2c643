"""The server: from a request to its route and back."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import re
import resource
import signal
import ssl
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from dibs.model.errors import DibsError, StorageError
from dibs.model.safe_text import shown
from dibs.serve.answers import (
    encoded_answer,
    headers_of,
    json_answer,
    new_request_id,
    problem_response,
    response,
)
from dibs.serve.board_streams import DeltaFeed, EventTail, check_watches
from dibs.serve.bodies import read_body, read_query
from dibs.serve.browser import Browser, Browsing
from dibs.serve.call_rights import whole
from dibs.serve.connections import BODY_BYTES, HEAD_SECONDS, ConnectionServer
from dibs.serve.lock_names import check_lock_name
from dibs.serve.problems import Refusal, problem_of
from dibs.serve.request_keys import RequestKeys, with_nonce
from dibs.serve.route_table import OPEN, READ, STREAM, WAIT, Made, Route, RouteCall, RouteTable
from dibs.serve.routes import ROUTES
from dibs.serve.service import TICK, Service, Wording
from dibs.serve.streams import Hub, Stream, encoded, send_feed
from dibs.serve.tokens import Principal, hash_of
from dibs.serve.waiting import WaitingRequests

if TYPE_CHECKING:
    from dibs.model.delta import Delta
    from dibs.model.location import Location
    from dibs.serve.hook_sender import HookSenders

_BODY_SECONDS = 10.0
"""How long a client may take to send its body."""
_LARGE = 1 << 16
_LARGE_AT_ONCE = 32
"""So many bodies above 64 KiB are read at a time, so that their memory is bounded."""
_GRACE = 1.0
"""Seconds that requests may take to end after SIGTERM."""
_LAST = 3.5
"""Seconds after SIGTERM in which the process has ended."""
_FETCHED = 30.0
"""Seconds in which a lost answer can be asked for again before its claim is released."""
_match_id = re.compile(r"[\x21-\x7e]{1,128}").fullmatch
_AGAIN = re.compile(rb',\s*"again"\s*:\s*true\s*(?=}\s*$)')
"""What a client adds to a request whose answer was lost; it is the same request."""
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,512})").fullmatch


class Address(NamedTuple):
    """Where to listen, and how."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """The address as clients give it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class BoardHttp:
    """Answers the requests about one board."""

    def __init__(self, service: Service, browser: Browser | None) -> None:
        self.service = service
        self.browser = browser
        self.table = RouteTable(ROUTES)
        self.keys = RequestKeys()
        self.locks = Hub()
        self.log = Hub()
        self.tail = EventTail(service, self._event)
        self._feeds: set[DeltaFeed] = set()
        self.waiting = WaitingRequests(service)
        self.closing = False
        self.starting = 0
        """How many watches of locks begin just now."""
        self._loop = asyncio.get_running_loop()
        self._principals: dict[str, Principal] = {}
        """The tokens by their hashes, as they were seen last; each use is checked again."""
        self._unread: dict[tuple[str, str], Made] = {}
        """New claims whose clients had gone, which may ask for them again with the same key."""
        self._trouble = ""
        """What was reported last of the tokens' files."""
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        service.waiting = lambda: self.waiting.count
        service.on_lock = self._lock_event
        service.heard = self._heard
        service.on_delta = self._delta

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to one request."""
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _match_id(given) else new_request_id()
        try:
            return await self._answer(request, request_id)
        except Refusal as problem:
            return problem_response(problem, request_id)
        except DibsError as error:
            refused = problem_of(error, self.service.wording.refusal)
            return problem_response(refused, request_id)
        except ConnectionError:
            raise
        except Exception as error:
            _complain(f"request {request_id}: a fault of the server", error)
            fault = Refusal("internal", "this is a fault of the server: see its log")
            return problem_response(fault, request_id)

    async def _answer(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refusal("encoded_body", "send the body as it is, without Content-Encoding")
        raw, _, query = request.raw_path.partition("?")
        page = self.browser.find(request.method, raw) if self.browser is not None else None
        if page is None:
            route, path = self.table.find(request.method, raw)
        if self.closing:
            raise Refusal("shutting_down", "the server ends", retry_after_ms=1000)
        if page is not None:
            return await page(request, request_id)
        if route.kind == OPEN:
            return await self._open(route, request_id)
        digest, who = await self._principal(request)
        if who.role < route.role:
            raise Refusal(
                "forbidden", f"this needs the role {route.role.word}, and {who.name} is not one"
            )
        agent = _agent(request)
        if route.method in ("GET", "DELETE"):
            call = RouteCall(who, agent, path, read_query(query, route.query))
        else:
            if query:
                raise Refusal("invalid_query", "this request takes a body, and no query")
            body = await self._body(request)
            if key := request.headers.get("X-Request-Key"):
                return await self._keyed(request, request_id, route, digest, key, body, who, path)
            call = RouteCall(who, agent, path, read_body(body, route.body))
        if route.kind == STREAM:
            return await self._stream(request, request_id, route, digest, call)
        status, data = await self._done(request, route, digest, call)
        if route.path == "/metrics":
            return response(data, request_id, status, "text/plain; version=0.0.4")
        return json_answer(request, data, request_id, status)

    async def _done(
        self, request: web.BaseRequest, route: Route, digest: str, call: RouteCall, key: str = ""
    ) -> tuple[int, bytes]:
        """Do what a request asks for; a claim that its client cannot learn of is released."""
        if route.kind == WAIT and self.waiting.concerns(call):
            given = [call, call._replace(given={**call.given, "again": False})]

            def attempt() -> Awaitable[Any]:
                # Only the first one has to look for a claim that an earlier request made.
                return self._run(route, digest, given.pop(0) if len(given) > 1 else given[0])

            found = await self.waiting.until(route, call, attempt, partial(_gone, request))
        else:
            found = await self._run(route, digest, call)
        made = found if isinstance(found, Made) else None
        if made is not None and _gone(request):
            if not key:
                self.service.verbs.post(partial(_undo, made))
            else:
                self._unread[digest, key] = made
                self._loop.call_later(_FETCHED, self._take_back, digest, key)
        if isinstance(found, str):
            return route.status, found.encode()
        return route.status, encoded_answer(made.answer if made is not None else found)

    def _take_back(self, digest: str, key: str) -> None:
        """Release a claim whose answer was lost, and that no one has asked for again."""
        made = self._unread.pop((digest, key), None)
        if made is not None:
            self.keys.drop(digest, key)
            self.service.verbs.post(partial(_undo, made))

    async def _run(self, route: Route, digest: str, call: RouteCall) -> Any:
        """Do it once in its thread, where the token is looked up again."""
        run, service = route.run, self.service
        assert run is not None
        if route.kind == READ:
            thread, tokens = service.reading, service.read_tokens
        else:
            thread, tokens = service.verbs, service.tokens

        def work() -> Any:
            if not tokens.still_valid(digest):
                raise _unauthorized()
            found = run(service, call)
            if route.path.startswith("/v1/") and route.method == "POST":
                _look_at_lock(service, found)
            return found

        found = await thread.run(work)
        if route.method != "GET":
            self._acted(route)
        return found

    def _acted(self, route: Route) -> None:
        """Something may have changed: those who follow and wait hear of it at once."""
        if self.log.streams or self._feeds:
            self._poll_log()
        if route.frees:
            self.waiting.try_each()

    async def _keyed(
        self,
        request: web.BaseRequest,
        request_id: str,
        route: Route,
        digest: str,
        key: str,
        body: bytes,
        who: Principal,
        path: dict[str, str],
    ) -> web.StreamResponse:
        """The same with a key: the same request again gets the same answer."""
        if _match_id(key) is None:
            raise Refusal(
                "invalid_header", "X-Request-Key must have 1 to 128 printable ASCII characters"
            )
        agent = _agent(request)
        parts = (request.method, request.raw_path, agent or "")
        meant = _AGAIN.sub(b"", body) if "again" in route.body else body
        fingerprint = hashlib.sha256("\0".join(parts).encode() + b"\0" + meant).digest()
        kept = self.keys.find(digest, key, fingerprint)
        self._unread.pop((digest, key), None)
        if kept is None:
            call = RouteCall(who, agent, path, read_body(body, route.body))
            call = with_nonce(call, digest, key, fingerprint)
            kept = self.keys.begin(digest, key, fingerprint)
            try:
                kept.set_result(await self._done(request, route, digest, call, key))
            except BaseException as error:
                if kept.done():
                    raise
                problem = error if isinstance(error, Refusal) else None
                if isinstance(error, DibsError):
                    problem = problem_of(error, self.service.wording.refusal)
                if problem is None or problem.status >= 500:
                    self.keys.drop(digest, key)
                    raise
                kept.set_result((problem.status, encoded_answer(problem.fields(request_id))))
        status, data = await asyncio.shield(kept)
        return json_answer(request, data, request_id, status)

    async def _principal(self, request: web.BaseRequest) -> tuple[str, Principal]:
        """Who asks, by the token; the body is not read before."""
        m = _BEARER(request.headers.get("Authorization", ""))
        if m is None:
            raise _unauthorized()
        digest = hash_of(m[1])
        who = self._principals.get(digest)
        if who is None:
            tokens = self.service.tokens
            who = await self.service.verbs.run(lambda: tokens.find(digest))
            if who is None:
                raise _unauthorized()
            if len(self._principals) > 10_000:
                self._principals.clear()
            self._principals[digest] = who
        return digest, who

    async def _body(self, request: web.BaseRequest) -> bytes:
        """The body, if it arrives in time and is not too long."""
        length = request.content_length
        if not request.can_read_body:
            return b""
        if length is not None and length > BODY_BYTES:
            raise Refusal("body_too_large", f"a body has at most {BODY_BYTES:,} bytes")
        try:
            if length is not None and request.content.is_eof():
                return request.content.read_nowait()  # all of it is here, so no timer is needed
            async with asyncio.timeout(_BODY_SECONDS):
                if length is not None and length <= _LARGE:
                    return await request.read()
                async with self._large:
                    return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise Refusal("body_too_large", f"a body has at most {BODY_BYTES:,} bytes") from None
        except TimeoutError:
            raise Refusal("timeout", "the body did not arrive in time") from None
        except (web.RequestPayloadError, ValueError):
            raise Refusal("bad_request", "the body cannot be read") from None

    # What has no thread of its own

    async def _open(self, route: Route, request_id: str) -> web.StreamResponse:
        """What anyone may ask for without a token."""
        if route.path == "/health":
            return await self._health(request_id)
        from dibs.serve.openapi import document

        return response(encoded_answer(document(ROUTES)), request_id)

    async def _health(self, request_id: str) -> web.StreamResponse:
        """Whether the storage answers now."""
        service = self.service
        try:
            async with asyncio.timeout(2.0):
                await service.verbs.run(service.try_storage)
        except (DibsError, TimeoutError, Refusal) as error:
            why = str(error) or "the storage did not answer within 2 s"
            found = {"healthy": False, "storage": why}
            return response(encoded_answer(found), request_id, 503)
        return response(encoded_answer({"healthy": True, "storage": "ok"}), request_id)

    async def _stream(
        self, request: web.BaseRequest, request_id: str, route: Route, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        if route.path == "/v1/events":
            return await self._follow_log(request, request_id, digest, call)
        if route.path == "/v1/watch":
            return await self._follow_board(request, request_id, digest, call)
        return await self._watch_locks(request, request_id, digest, call)

    async def _follow_log(
        self, request: web.BaseRequest, request_id: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """The events of the log, after a cursor or a snapshot."""
        service, prefix = self.service, call.given["prefix"]
        cursor = call.given["cursor"] or request.headers.get("Last-Event-ID")
        first = not cursor

        def covers(ident: str) -> bool:
            return ident.startswith(prefix) and call.who.covers(ident)

        stream = Stream(digest, lambda event: covers(event["id"]))

        def look() -> None:
            nonlocal cursor, first
            if service.read_tokens.find(digest) is None:
                raise _unauthorized()
            if first and not call.given["snapshot"]:
                after, data = self.tail.now(), b""
            elif cursor:
                after, rows = self.tail.since(cursor, covers)
                data = b"".join(encoded(row["verb"], row, after) for row in rows)
            else:
                after, picture = self.tail.begin(covers)
                data = encoded("snapshot", picture, after)
            first, cursor = False, None  # a stream that lags begins again with a snapshot
            service.reading.to_loop(begin, data or b":\n\n")

        def begin(data: bytes) -> None:
            stream.snapshot(data)
            self.log.streams.add(stream)

        start = partial(service.reading.run, look)
        await start()
        return await self.log.serve(request, headers_of(request_id), stream, start)

    async def _follow_board(
        self, request: web.BaseRequest, request_id: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """The reports of a watch of its own."""
        service = self.service
        whole(call)
        check_watches(len(self._feeds))
        feed = DeltaFeed(service, digest, partial(encoded, "delta"))

        def begin() -> None:
            if service.read_tokens.find(digest) is None:
                raise _unauthorized()
            self.tail.now()  # from here on it has hints
            feed.begin(self.tail, call.given["since"])

        self._feeds.add(feed)
        try:
            await service.reading.run(begin)
            return await send_feed(request, headers_of(request_id), feed)
        finally:
            self._feeds.discard(feed)
            feed.end()

    async def _watch_locks(
        self, request: web.BaseRequest, request_id: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """One lock, or those with a prefix; the snapshot is in order with the events."""
        service, name = self.service, call.path.get("name")
        prefix = call.given.get("prefix", "")
        if name is not None:
            check_lock_name(name)

        def covers(each: str) -> bool:
            fits = each == name if name is not None else each.startswith(prefix)
            return fits and call.who.covers(each)

        stream = Stream(digest, lambda event: covers(event["name"]))

        def look() -> None:
            if service.tokens.find(digest) is None:
                raise _unauthorized()
            if name is not None:
                locks = [service.desk.status(name)]
                found: dict[str, Any] = {"event": "snapshot", "name": name, "locks": locks}
            else:
                locks = service.desk.shown(covers)
                found = {"event": "snapshot", "prefix": prefix or None, "locks": locks}
            service.verbs.to_loop(begin, found)

        def begin(found: dict[str, Any]) -> None:
            stream.snapshot(encoded("snapshot", found))
            self.locks.streams.add(stream)

        async def start() -> None:
            self.starting += 1  # an event between the look and the beginning must be heard
            try:
                await service.verbs.run(look)
            finally:
                self.starting -= 1

        await start()
        return await self.locks.serve(request, headers_of(request_id), stream, start)

    # What the board reports

    def _lock_event(self, event: dict[str, Any]) -> None:
        self.locks.publish(event["event"], event)
        if event["event"] in ("released", "expired"):
            self.waiting.lock_freed(event["name"])

    def _heard(self) -> bool:
        """Whether an event of a lock would be sent, or would wake anyone."""
        return self.starting > 0 or bool(self.locks.streams) or self.waiting.count > 0

    def _event(self, cursor: str, row: dict[str, Any]) -> None:
        self.log.publish(row["verb"], row, cursor)

    def _delta(self, delta: Delta) -> None:
        self.waiting.seen(delta)

    async def look_after(self, server: ConnectionServer) -> None:
        """Look again and again at what expires, at the tokens and at silent connections."""
        n = 0
        while True:
            await asyncio.sleep(TICK)
            self.service.tick()
            self.waiting.tick()
            n += 1
            if self._feeds or (self.log.streams and n % 2 == 0):
                self._poll_log()
            if n % 10 == 0:
                server.end_silent()
                with suppress(Refusal):
                    await self._revoke()

    async def _revoke(self) -> None:
        """End the streams and dashboards of tokens that were removed."""
        valid = self._principals = await self.service.verbs.run(self._valid)
        trouble = self.service.tokens.trouble
        if trouble != self._trouble:
            self._trouble = trouble
            _complain(trouble or "all tokens are accepted again")
        self.locks.keep(valid)
        self.log.keep(valid)
        for feed in self._feeds:
            if feed.digest not in valid:
                feed.end()
        if self.browser is not None:
            self.browser.keep(valid)

    def _poll_log(self) -> None:
        """Look for new events, unless such a look waits already."""
        if self.service.reading.waiting < 2:
            self.service.reading.post(self.tail.poll)

    def _valid(self) -> dict[str, Principal]:
        return {one.hash: one for one in self.service.tokens.all()}

    def close(self) -> None:
        """End every stream and every wait."""
        self.closing = True
        self.locks.close()
        self.log.close()
        for feed in self._feeds:
            feed.end()
        if self.browser is not None:
            self.browser.close()
        self.waiting.close()


def _look_at_lock(service: Service, found: Any) -> None:
    """Show those who follow locks what a request of `/v1` has done to one."""
    answer = found.answer if isinstance(found, Made) else found
    task = answer.get("task") if isinstance(answer, dict) else None
    if isinstance(task, dict) and task["kind"] == "lock":
        service.desk.look(task["id"])


def _unauthorized() -> Refusal:
    return Refusal("unauthorized", "give a valid token: Authorization: Bearer TOKEN")


def _agent(request: web.BaseRequest) -> str | None:
    """Which agent asks, of those that share a token."""
    agent = request.headers.get("X-Agent")
    if agent is None:
        return None
    if not 1 <= len(agent) <= 128 or not agent.isprintable():
        raise Refusal("invalid_header", "X-Agent must have 1 to 128 printable characters")
    return agent


def _gone(request: web.BaseRequest) -> bool:
    """Whether the client has closed its connection."""
    transport = request.transport
    return transport is None or transport.is_closing()


def _undo(made: Made) -> None:
    with suppress(DibsError, Refusal):
        made.undo()


def _complain(text: str, error: BaseException | None = None) -> None:
    """Write to the log, which is standard error; texts of clients are made safe."""
    lines = traceback.format_exception(error) if error is not None else []
    with suppress(OSError):
        for line in (f"dibs: {text}", *"".join(lines).splitlines()):
            print(shown(line), file=sys.stderr, flush=True)


def _raise_limit() -> None:
    """Allow as many open files as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(
    location: Location,
    tokens: str,
    address: Address,
    clients: int,
    wording: Wording,
    listening: Callable[[str], object],
    senders: HookSenders,
    browsing: Browsing | None,
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.set_exception_handler(_loop_trouble)
    service = Service(location, tokens, wording, senders.place)
    browser = Browser(service, browsing, _complain) if browsing is not None else None
    board = BoardHttp(service, browser)
    await service.begin()
    _raise_limit()
    server = ConnectionServer(board.handle, clients, _complain)
    try:
        sockets = await loop.create_server(
            server,
            address.host,
            address.port,
            ssl=address.tls,
            backlog=1024,
            ssl_handshake_timeout=HEAD_SECONDS if address.tls else None,
        )
    except OSError as error:
        raise StorageError(f"{address.host}:{address.port}: {error.strerror or error}") from None
    looking = loop.create_task(board.look_after(server))
    bound = _bound(sockets, address.tls)
    inner = await loop.create_server(server, "127.0.0.1", 0) if browser and address.tls else None
    if browser is not None:
        browser.begin(_near(_bound(inner) if inner else bound).url, bound.port)
    gc.collect()
    gc.freeze()  # else a full collection looks at all modules: 20 ms in which no one is answered
    gc.set_threshold(10_000)
    listening(bound.url)
    senders.begin()
    await stop.wait()
    last = threading.Timer(_LAST, os._exit, (0,))
    last.daemon = True
    last.start()  # whatever hangs or takes long: what was acknowledged is on the board
    looking.cancel()
    senders.stop()
    sockets.close()
    if inner is not None:
        inner.close()
    board.close()
    server.pre_shutdown()
    with suppress(TimeoutError):
        async with asyncio.timeout(2 * _GRACE):
            await server.shutdown(_GRACE)
    service.end(_GRACE)
    await loop.run_in_executor(None, senders.end, _GRACE / 2)
    if browser is not None:
        browser.end()
    return 0


def _bound(sockets: asyncio.Server, tls: ssl.SSLContext | None = None) -> Address:
    """Where a server listens."""
    host, port = sockets.sockets[0].getsockname()[:2]
    return Address(host, port, tls)


def _near(address: Address) -> Address:
    """The same as this machine reaches it."""
    return address._replace(
        host={"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    )


def _loop_trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, ConnectionError | ssl.SSLError | OSError):
        _complain(str(context.get("message", "a fault of the server")), error)


def serve(
    location: Location,
    tokens: str,
    address: Address,
    clients: int,
    wording: Wording,
    listening: Callable[[str], object],
    senders: HookSenders,
    browsing: Browsing | None = None,
) -> int:
    """Serve a board until SIGTERM; `listening` receives the address.

    There are pages for browsers if `browsing` is given.
    """
    return asyncio.run(
        _serve(location, tokens, address, clients, wording, listening, senders, browsing)
    )
