"""The way of a request: to its route and back."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dibs.model.errors import DibsError, Lost
from dibs.serve.answers import (
    encoded_answer,
    json_answer,
    new_request_id,
    problem_response,
    response,
)
from dibs.serve.bodies import read_body, read_query
from dibs.serve.browser import Browser
from dibs.serve.call_rights import about, check_rights
from dibs.serve.connections import (
    BODY_BYTES,
    ConnectionServer,
    end_with_client,
    is_half_closed,
)
from dibs.serve.problems import Refusal, problem_of, unauthorized
from dibs.serve.request_keys import RequestKeys, Sent, with_nonce
from dibs.serve.route_table import OPEN, READ, STREAM, WAIT, Made, Route, RouteCall, RouteTable
from dibs.serve.routes import ROUTES
from dibs.serve.service import LONG, TICK, Service
from dibs.serve.streams import head_of_stream
from dibs.serve.tokens import Principal, hash_of
from dibs.serve.waiting import WaitingRequests
from dibs.serve.watchers import Watchers

if TYPE_CHECKING:
    from dibs.model.delta import Delta

_BODY_SECONDS = 10.0
"""How long a client may take to send its body."""
_LARGE = 1 << 16
_LARGE_AT_ONCE = 32
"""So many bodies above 64 KiB are read at a time, so that their memory is bounded."""
_FETCHED = 30.0
"""Seconds in which a lost answer can be asked for again before its claim is released."""
_match_id = re.compile(r"[\x21-\x7e]{1,128}").fullmatch
_AGAIN = re.compile(rb',\s*"again"\s*:\s*true\s*(?=}\s*$)')
"""What a client adds to a request whose answer was lost; it is the same request."""
_BEARER = re.compile(r"[Bb]earer +([\x21-\x7e]{1,512})").fullmatch


class BoardHttp:
    """Answers the requests about one board."""

    def __init__(
        self, service: Service, browser: Browser | None, complain: Callable[..., object]
    ) -> None:
        """`complain` writes a text, and an error if there is one, to the log of the server."""
        self.service = service
        self.browser = browser
        self._complain = complain
        self.table = RouteTable(ROUTES)
        self.keys = RequestKeys()
        self.watchers = Watchers(service)
        self.waiting = WaitingRequests(service)
        self.closing = False
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
            self._complain(f"request {request_id}: a fault of the server", error)
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
        check_rights(route, who, path)
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
            if request.method == "HEAD":
                return head_of_stream(request_id)
            end_with_client(request)
            return await self.watchers.serve(request, request_id, route.path, digest, call)
        sent = await self._done(request, route, digest, call)
        if route.path == "/metrics":
            return response(sent.data, request_id, sent.status, "text/plain; version=0.0.4")
        return json_answer(request, sent.data, request_id, sent.status)

    async def _done(
        self, request: web.BaseRequest, route: Route, digest: str, call: RouteCall, key: str = ""
    ) -> Sent:
        """Do what a request asks for; a claim that its client cannot learn of is released."""
        if route.kind == WAIT and self.waiting.concerns(call):
            given = [call, call._replace(given={**call.given, "again": False})]

            def attempt() -> Awaitable[Any]:
                # Only the first one has to look for a claim that an earlier request made.
                return self._run(route, digest, given.pop(0) if len(given) > 1 else given[0], key)

            try:
                found = await self.waiting.until(route, call, attempt, partial(_gone, request))
            except ConnectionResetError:
                _refuse_half_closed(request, key)
                raise
        else:
            found = await self._run(route, digest, call, key)
        made = found if isinstance(found, Made) else None
        if made is not None and _gone(request):
            self._not_read(digest, key, made)
            _refuse_half_closed(request, key)
        if made is not None:
            return Sent(route.status, encoded_answer(made.answer), made.claim)
        data = found.encode() if isinstance(found, str) else encoded_answer(found)
        return Sent(route.status, data)

    async def _confirm(self, digest: str, key: str, claim: str) -> None:
        """Confirm on the board a claim that an answer gives away once more.

        The one that asked first may have gone, and then this claim is about to be released.
        """
        self._unread.pop((digest, key), None)
        service = self.service

        def work() -> None:
            with suppress(Lost):  # it has ended since, and the answer is still the same
                service.board.attach(claim).confirm()

        await service.verbs.run(work, lambda: claim)

    def _not_read(self, digest: str, key: str, found: Any) -> None:
        """See to a claim whose client has no answer; it may ask for it again with its key."""
        if not isinstance(found, Made):
            return
        if not key:
            self.service.verbs.post(partial(_undo, found))
        else:
            self._unread[digest, key] = found
            self._loop.call_later(_FETCHED, self._take_back, digest, key)

    def _take_back(self, digest: str, key: str) -> None:
        """Release a claim whose answer was lost, and that no one has asked for again."""
        made = self._unread.pop((digest, key), None)
        if made is not None:
            self.keys.drop(digest, key)
            self.service.verbs.post(partial(_undo, made))

    async def _run(self, route: Route, digest: str, call: RouteCall, key: str) -> Any:
        """Do it once in a thread, where the token is looked up again."""
        run, service = route.run, self.service
        assert run is not None
        if route.kind == READ:
            threads, tokens = service.reading, service.read_tokens
        else:
            threads, tokens = service.verbs, service.tokens

        def work() -> Any:
            if not tokens.still_valid(digest):
                raise unauthorized()
            found = run(service, call)
            if route.path.startswith("/v1/") and route.method == "POST":
                _look_at_lock(service, found)
            return found

        late, seconds = partial(self._not_read, digest, key), LONG if route.long else 0.0
        found = await threads.run(work, partial(about, call), late, seconds)
        if route.method != "GET":
            self._acted(route)
        return found

    def _acted(self, route: Route) -> None:
        """Something may have changed: those who follow and wait hear of it at once."""
        if self.watchers.hear_log:
            self.watchers.poll_log()
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
        shared = kept is not None
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
                kept.set_result(Sent(problem.status, encoded_answer(problem.fields(request_id))))
        sent = await asyncio.shield(kept)
        if shared and sent.claim:
            await self._confirm(digest, key, sent.claim)
        return json_answer(request, sent.data, request_id, sent.status)

    async def _principal(self, request: web.BaseRequest) -> tuple[str, Principal]:
        """Who asks, by the token; the body is not read before."""
        m = _BEARER(request.headers.get("Authorization", ""))
        if m is None:
            raise unauthorized()
        digest = hash_of(m[1])
        who = self._principals.get(digest)
        if who is None:
            tokens = self.service.tokens
            who = await self.service.verbs.run(lambda: tokens.find(digest), lambda: "tokens")
            if who is None:
                raise unauthorized()
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
                await service.verbs.run(service.try_storage, lambda: "health")
        except (DibsError, TimeoutError, Refusal) as error:
            why = str(error) or "the storage did not answer within 2 s"
            found = {"healthy": False, "storage": why}
            return response(encoded_answer(found), request_id, 503)
        return response(encoded_answer({"healthy": True, "storage": "ok"}), request_id)

    # What the board reports

    def _lock_event(self, event: dict[str, Any]) -> None:
        self.watchers.lock_event(event)
        if event["event"] in ("released", "expired"):
            self.waiting.lock_freed(event["name"])

    def _heard(self) -> bool:
        """Whether an event of a lock would be sent, or would wake anyone."""
        return self.watchers.hear_locks or self.waiting.count > 0

    def _delta(self, delta: Delta) -> None:
        self.waiting.seen(delta)

    async def look_after(self, server: ConnectionServer) -> None:
        """Look again and again at what expires, at the tokens and at silent connections."""
        n, revoking = 0, None
        while True:
            await asyncio.sleep(TICK)
            self.service.tick()
            self.waiting.tick()
            n += 1
            if self.watchers.follow_board or (self.watchers.hear_log and n % 2 == 0):
                self.watchers.poll_log()
            if n % 10 == 0:
                server.end_silent()
                if revoking is None or revoking.done():  # the tokens may be where nothing answers
                    revoking = self._loop.create_task(self._revoke())

    async def _revoke(self) -> None:
        """End the streams and dashboards of tokens that were removed."""
        try:
            valid = self._principals = await self.service.verbs.run(self._valid, lambda: "tokens")
        except Refusal:
            return
        trouble = self.service.tokens.trouble
        if trouble != self._trouble:
            self._trouble = trouble
            self._complain(trouble or "all tokens are accepted again")
        self.watchers.keep(valid)
        if self.browser is not None:
            self.browser.keep(valid)

    def _valid(self) -> dict[str, Principal]:
        return {one.hash: one for one in self.service.tokens.all()}

    def close(self) -> None:
        """End every stream and every wait."""
        self.closing = True
        self.watchers.close()
        if self.browser is not None:
            self.browser.close()
        self.waiting.close()


def _look_at_lock(service: Service, found: Any) -> None:
    """Show those who follow locks what a request of `/v1` has done to one."""
    answer = found.answer if isinstance(found, Made) else found
    task = answer.get("task") if isinstance(answer, dict) else None
    if isinstance(task, dict) and task["kind"] == "lock":
        service.desk.look(task["id"])


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
    return transport is None or transport.is_closing() or is_half_closed(request)


def _refuse_half_closed(request: web.BaseRequest, key: str) -> None:
    """Say to a client that perhaps reads on that it was given no claim; with a key it may ask."""
    if not key and is_half_closed(request):
        raise Refusal(
            "bad_request",
            "this connection was closed on your side before the answer, so no claim was given to "
            "it: keep it open until the answer",
        )


def _undo(made: Made) -> None:
    with suppress(DibsError, Refusal):
        made.undo()
