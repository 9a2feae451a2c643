"""The routes that read the log."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dibs.serve.bodies import NAMES, TEXT, WHOLE, Field
from dibs.serve.call_rights import (
    Answer,
    covered,
)
from dibs.serve.route_table import READ, RouteCall, route
from dibs.serve.tokens import Role
from dibs.serve.values import cursor_of, plain

if TYPE_CHECKING:
    from dibs.model.events import Event
    from dibs.serve.service import Service


def _log(service: Service, call: RouteCall) -> Answer:
    """Events, newest or oldest first, in pages."""
    given, log = call.given, service.reads.log
    ident = given["id"]
    if ident:
        covered(call, ident)
    until = cursor_of(given["until"]) if given["until"] else log.end()
    if given["order"] == "newest":
        events = log.newest_first(ident, given["verb"], until)
    else:
        events = (
            e
            for e in log.oldest_first(ident, until)
            if not given["verb"] or e.verb in given["verb"]
        )
    skip, limit = given["skip"], given["limit"]
    seen = (event for event in events if call.who.covers(event.id))
    found: list[Event] = list(islice(seen, skip, skip + limit + 1))
    return {
        "events": [plain(event) for event in found[:limit]],
        "until": plain(until),
        "next": skip + limit if len(found) > limit else None,
    }


def _log_since(service: Service, call: RouteCall) -> Answer:
    """Events after a cursor, as `Log.since`."""
    log, text = service.reads.log, call.given["cursor"]
    before = cursor_of(text) if text else None
    missed = before is not None and log.missed(before)
    events, cursor = log.since(before, call.given["most"] or None)
    shown = [plain(event) for event in events if call.who.covers(event.id)]
    return {"events": shown, "cursor": plain(cursor), "missed": missed}


LOG_ROUTES = (
    route(
        "GET /v1/log",
        Role.READER,
        "What happened, on all ids or one, in pages",
        _log,
        kind=READ,
        query={
            "id": Field(TEXT, "the id", 1, 256),
            "order": Field(TEXT, "which first", words=("newest", "oldest"), default="newest"),
            "verb": Field(NAMES, "only these verbs", 0, 50, default=()),
            "until": Field(TEXT, "only before this cursor: `until` of the first page", 1, 65_536),
            "skip": Field(WHOLE, "`next` of the page before", 0, 10**12, default=0),
            "limit": Field(WHOLE, "events of a page", 1, 5000, default=100),
        },
        answer={"events": "list", "until": "text", "next": "whole?"},
    ),
    route(
        "GET /v1/log/since",
        Role.READER,
        "What happened after a cursor",
        _log_since,
        kind=READ,
        query={
            "cursor": Field(TEXT, "`cursor` of the answer before", 1, 65_536),
            "most": Field(WHOLE, "about how many events; 0 is all", 0, 10**9, default=0),
        },
        answer={"events": "list", "cursor": "text", "missed": "flag"},
    ),
)
