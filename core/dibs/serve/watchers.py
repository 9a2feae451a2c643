"""Who follows the locks, the log or the complete board in a stream of its own."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs.serve.answers import headers_of
from dibs.serve.board_streams import DeltaFeed, EventTail, check_watches
from dibs.serve.problems import unauthorized
from dibs.serve.streams import Hub, Stream, encoded, send_feed

if TYPE_CHECKING:
    from aiohttp import web

    from dibs.serve.route_table import RouteCall
    from dibs.serve.service import Service


class Watchers:
    """The streams of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._locks = Hub()
        self._log = Hub()
        self._tail = EventTail(service, self._event)
        self._feeds: set[DeltaFeed] = set()
        self._sent = self._logged = 0
        """How many events of locks, and of the log, were published."""
        self._starting = 0
        """How many watches of locks begin just now."""

    @property
    def hear_locks(self) -> bool:
        """Whether an event of a lock would be sent."""
        return self._starting > 0 or bool(self._locks.streams)

    @property
    def hear_log(self) -> bool:
        """Whether new events of the log are wanted."""
        return bool(self._log.streams or self._feeds)

    @property
    def follow_board(self) -> bool:
        """Whether anyone follows the complete board."""
        return bool(self._feeds)

    async def serve(
        self, request: web.BaseRequest, request_id: str, path: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """Send the stream of that route until its reader leaves or the server ends."""
        if path == "/v1/events":
            return await self._follow_log(request, request_id, digest, call)
        if path == "/v1/watch":
            return await self._follow_board(request, request_id, digest, call)
        return await self._watch_locks(request, request_id, digest, call)

    async def _follow_log(
        self, request: web.BaseRequest, request_id: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """The events of the log, after a cursor or a snapshot."""
        service, prefix = self._service, call.given["prefix"]
        cursor = call.given["cursor"] or request.headers.get("Last-Event-ID")
        first = not cursor

        def covers(ident: str) -> bool:
            return ident.startswith(prefix) and call.who.covers(ident)

        stream = Stream(digest, lambda event: covers(event["id"]))

        def look() -> None:
            nonlocal cursor, first
            if service.read_tokens.find(digest) is None:
                raise unauthorized()
            if first and not call.given["snapshot"]:
                (_, reported), data = self._tail.now(), b""
            elif cursor:
                after, reported, rows = self._tail.since(cursor, covers)
                data = b"".join(encoded(row["verb"], row, after) for row in rows)
            else:
                after, reported, picture = self._tail.begin(covers, whole=not call.who.prefix)
                data = encoded("snapshot", picture, after)
            first, cursor = False, None  # a stream that lags begins again with a snapshot
            service.reading.to_loop(begin, data or b":\n\n", reported)

        def begin(data: bytes, reported: int) -> None:
            stream.snapshot(data)
            self._log.streams.add(stream)
            if self._logged > reported:
                stream.lag()

        start = partial(service.reading.run, look)
        await start()
        return await self._log.serve(request, headers_of(request_id), stream, start)

    async def _follow_board(
        self, request: web.BaseRequest, request_id: str, digest: str, call: RouteCall
    ) -> web.StreamResponse:
        """The reports of a watch of its own."""
        service = self._service
        check_watches(len(self._feeds))
        feed = DeltaFeed(service, digest, partial(encoded, "delta"))

        def begin() -> None:
            if service.read_tokens.find(digest) is None:
                raise unauthorized()
            self._tail.now()  # from here on it has hints
            feed.begin(self._tail, call.given["since"])

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
        service, name = self._service, call.path.get("name")
        prefix = call.given.get("prefix", "")

        def covers(each: str) -> bool:
            fits = each == name if name is not None else each.startswith(prefix)
            return fits and call.who.covers(each)

        stream = Stream(digest, lambda event: covers(event["name"]))

        def look() -> None:
            if service.tokens.find(digest) is None:
                raise unauthorized()
            reported = service.reported
            if name is not None:
                locks = [service.desk.status(name)]
                found: dict[str, Any] = {"event": "snapshot", "name": name, "locks": locks}
            else:
                locks = service.desk.shown(covers)
                found = {"event": "snapshot", "prefix": prefix or None, "locks": locks}
            service.verbs.to_loop(begin, found, reported)

        def begin(found: dict[str, Any], reported: int) -> None:
            stream.snapshot(encoded("snapshot", found))
            self._locks.streams.add(stream)
            if self._sent > reported:  # the look hung, and another thread has gone on meanwhile
                stream.lag()

        async def start() -> None:
            self._starting += 1  # an event between the look and the beginning must be heard
            try:
                await service.verbs.run(look)
            finally:
                self._starting -= 1

        await start()
        return await self._locks.serve(request, headers_of(request_id), stream, start)

    def lock_event(self, event: dict[str, Any]) -> None:
        """Report it to those who follow locks."""
        self._sent += 1
        self._locks.publish(event["event"], event)

    def _event(self, cursor: str, row: dict[str, Any]) -> None:
        self._logged += 1
        self._log.publish(row["verb"], row, cursor)

    def poll_log(self) -> None:
        """Look for new events, unless such a look waits or runs already."""
        self._service.reading.post(self._tail.poll, once="poll")

    def keep(self, valid: Container[str]) -> None:
        """End the streams whose tokens are revoked."""
        self._locks.keep(valid)
        self._log.keep(valid)
        for feed in self._feeds:
            if feed.digest not in valid:
                feed.end()

    def close(self) -> None:
        """End every stream."""
        self._locks.close()
        self._log.close()
        for feed in self._feeds:
            feed.end()
