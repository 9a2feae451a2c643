"""The routes of locks and sessions, in OctoStore's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.serve import lock_desk, sessions
from dibs.serve.bodies import FLAG, TEXT, WHOLE, Field
from dibs.serve.lease_terms import LeaseTerms
from dibs.serve.lock_desk import Answer, listed
from dibs.serve.problems import Refusal
from dibs.serve.route_table import READ, STREAM, WAIT, Made, RouteCall, route
from dibs.serve.tokens import Role

if TYPE_CHECKING:
    from dibs.serve.service import Service

WAIT_MOST = 60
"""The longest wait of one request, in seconds."""
TTL = Field(
    WHOLE,
    "the lease in seconds",
    1,
    lock_desk.TTL_MOST,
    default=lock_desk.DEFAULT_TTL,
    code="invalid_ttl",
)
_LEASE = Field(TEXT, "the `lease_id` that `acquire` gave", 1, 512, needed=True)
_ACQUIRE = {
    "ttl_seconds": TTL,
    "metadata": Field(TEXT, "for operators", 0, 1024, default="", code="invalid_metadata"),
    "session_id": Field(TEXT, "the session that the lock belongs to", 1, 512),
    "ephemeral": Field(FLAG, "whether the lock is released when the session ends", default=False),
    "lock_delay_seconds": Field(
        WHOLE,
        "how long no one gets the lock after the lease has expired",
        0,
        lock_desk.DELAY_MOST,
        default=0,
        code="invalid_lock_delay",
    ),
    "wait_seconds": Field(
        WHOLE, "how long to wait in line while another has it", 0, WAIT_MOST, default=0
    ),
}
_PREFIX = {"prefix": Field(TEXT, "only names that begin with this", 0, 256, default="")}
_SHOWN = {
    "holder_id": "text?",
    "fencing_token": "whole?",
    "expires_at": "text?",
    "metadata": "text?",
}
_SESSION = {"session_id": "text", "expires_at": "text"}
_SESSION_TTL = Field(
    WHOLE,
    "how long it lives without a keepalive, in seconds",
    sessions.LEAST,
    sessions.MOST,
    default=sessions.DEFAULT,
    code="invalid_ttl",
)


def _acquire(service: Service, call: RouteCall) -> Answer | Made:
    given, name = call.given, call.path["name"]
    session = given["session_id"] or ""
    if given["ephemeral"] and not session:
        raise Refusal("missing_field", "ephemeral needs session_id", {"field": "session_id"})
    if session:
        service.sessions.find(call.who, session)
    terms = LeaseTerms(given["lock_delay_seconds"], session, given["ephemeral"])
    return service.desk.acquire(
        call.who,
        call.agent,
        name,
        ttl=given["ttl_seconds"],
        metadata=given["metadata"],
        terms=terms,
        mark=call.mark,
    )


def _renew(service: Service, call: RouteCall) -> Answer:
    lease, ttl = call.given["lease_id"], call.given["ttl_seconds"]
    return service.desk.renew(call.who, call.agent, call.path["name"], lease, ttl)


def _release(service: Service, call: RouteCall) -> Answer:
    return service.desk.release(call.who, call.agent, call.path["name"], call.given["lease_id"])


def _status(service: Service, call: RouteCall) -> Answer:
    return service.desk.status(call.path["name"])


def _list(service: Service, call: RouteCall) -> Answer:
    prefix = call.given["prefix"]
    board = service.reads
    rows = board.entries(board.snapshot(ended=False), {"held", "stale"})
    found = listed(rows, lambda name: name.startswith(prefix) and call.who.covers(name))
    return {"locks": found, "total": len(found), "prefix": prefix or None}


def _begin(service: Service, call: RouteCall) -> Answer:
    return service.sessions.begin(call.who, call.agent, call.given["ttl_seconds"], call.mark)


def _keep(service: Service, call: RouteCall) -> Answer:
    return service.sessions.keep(call.who, call.path["id"])


def _show(service: Service, call: RouteCall) -> Answer:
    return service.sessions.show(call.who, call.path["id"])


def _finish(service: Service, call: RouteCall) -> None:
    service.sessions.finish(call.who, call.path["id"])


_NAMED = ("invalid_lock_name", "name_in_use")
LOCK_ROUTES = (
    route(
        "POST /locks/{name}/acquire",
        Role.WORKER,
        "Acquire a lock, or learn who holds it",
        _acquire,
        body=_ACQUIRE,
        many="name",
        kind=WAIT,
        codes=(
            *_NAMED,
            *("invalid_ttl", "invalid_metadata", "invalid_lock_delay", "invalid_field"),
            *("missing_field", "delayed", "paused", "session_not_found"),
        ),
        answer={
            "status": "text",
            "name?": "text",
            "lease_id?": "text",
            "again?": "flag",
            "fencing_token?": "whole",
            "holder_id?": "text",
            "expires_at": "text",
            "renew_after_ms?": "whole",
            "retry_after_ms?": "whole",
            "metadata": "text?",
        },
    ),
    route(
        "POST /locks/{name}/renew",
        Role.WORKER,
        "Renew a lease; without a ttl it keeps its own",
        _renew,
        body={"lease_id": _LEASE, "ttl_seconds": TTL._replace(default=None)},
        many="name",
        codes=(*_NAMED, "invalid_ttl", "invalid_field", "missing_field", "lease_not_current"),
        answer={
            "lease_id": "text",
            "fencing_token": "whole",
            "expires_at": "text",
            "renew_after_ms": "whole",
        },
    ),
    route(
        "POST /locks/{name}/release",
        Role.WORKER,
        "Release a lock",
        _release,
        body={"lease_id": _LEASE},
        many="name",
        codes=(*_NAMED, "invalid_field", "missing_field", "lease_not_current"),
        answer={"status": "text", "name": "text", "lease_id": "text"},
    ),
    route(
        "GET /locks/{name}",
        Role.READER,
        "Show who holds a lock; a name that was never used is free",
        _status,
        many="name",
        codes=_NAMED,
        answer={"name": "text", "status": "text", **_SHOWN, "available_at?": "text"},
    ),
    route(
        "GET /locks",
        Role.READER,
        "List the locks that are held",
        _list,
        query=_PREFIX,
        kind=READ,
        answer={"locks": "list", "total": "whole", "prefix": "text?"},
    ),
    route(
        "GET /locks/watch",
        Role.READER,
        "Follow all locks as server-sent events, a snapshot first",
        query=_PREFIX,
        kind=STREAM,
    ),
    route(
        "GET /locks/{name}/watch",
        Role.READER,
        "Follow one lock as server-sent events, a snapshot first",
        many="name",
        kind=STREAM,
        codes=_NAMED,
    ),
    route(
        "POST /sessions",
        Role.WORKER,
        "Begin a session",
        _begin,
        body={"ttl_seconds": _SESSION_TTL},
        status=201,
        codes=("invalid_ttl",),
        answer={**_SESSION, "keepalive_interval_secs": "whole"},
    ),
    route(
        "POST /sessions/{id}/keepalive",
        Role.WORKER,
        "Keep a session alive for its ttl",
        _keep,
        codes=("session_not_found",),
        answer=_SESSION,
    ),
    route(
        "GET /sessions/{id}",
        Role.WORKER,
        "Show a session",
        _show,
        codes=("session_not_found",),
        answer={
            **_SESSION,
            "user_id": "text",
            "lock_count": "whole",
            "active": "flag",
            "ttl_seconds": "whole",
        },
    ),
    route(
        "DELETE /sessions/{id}",
        Role.WORKER,
        "End a session, and release its ephemeral locks",
        _finish,
        status=204,
        codes=("session_not_found",),
    ),
)
