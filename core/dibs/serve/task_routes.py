"""The routes of tasks and claims: what workers and producers do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dibs.model import names
from dibs.model.errors import BadName, Changed, DibsError, Lost, UnknownId
from dibs.model.task import AVAILABLE
from dibs.model.waiters import WAITER_STATES
from dibs.serve.bodies import BYTES, FLAG, NUMBER, TABLE, TEXT, WHOLE, Field
from dibs.serve.call_rights import (
    NONCE,
    Answer,
    ended_before,
    exact_name,
    named_owner,
    own_claim,
    own_made,
    owner_of,
    usable,
)
from dibs.serve.problems import Refusal
from dibs.serve.route_table import WAIT, Made, RouteCall, route
from dibs.serve.tokens import Role
from dibs.serve.values import bytes_of, content, plain, process_of, task_fields

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.serve.service import Service

WAIT_MOST = 60
PAYLOAD_BYTES = 1 << 20
_YEARS = 36_500 * 86_400
_DAY = 86_400
_PREFIXED_TRIES = 20
_OWNER = Field(TEXT, "the worker: its name is kept below the token's, as NAME/owner", 1, 256)
_TTL = Field(NUMBER, "the lease in seconds (default: the board's)", 1, _DAY, code="invalid_ttl")
_METADATA = Field(TEXT, "for operators", 0, 1024, code="invalid_metadata")
_PROCESS = Field(TABLE, "the process that holds it: host, boot, pidns, pid, start")
_WAIT = Field(NUMBER, "how long to wait in line, in seconds", 0, WAIT_MOST, default=0)
_ID = Field(TEXT, "the id", 1, 256)
_REASON = Field(TEXT, "why", 0, 4096, default="")
_TERMS = {
    "owner": _OWNER,
    "ttl": _TTL,
    "metadata": _METADATA,
    "process": _PROCESS,
    "host": Field(TEXT, "the worker's host, whose pauses stop it (default: the server's)", 1, 255),
    "nonce": Field(TEXT, "the end of the claim's name: ten digits or letters A to F", 10, 10),
}
_AGAIN = Field(FLAG, "whether an earlier request with this nonce may have succeeded", default=False)
_TASK = {"status": "text", "task": "object"}
_CLAIM = {
    "status": "text",
    "claim?": "text",
    "task?": "object",
    "record?": "object",
    "fence?": "whole",
    "slot?": "whole",
    "ttl?": "number",
    "beat_within?": "number",
    "remaining?": "number",
    "payload?": "text?",
    "payload_base64?": "text",
    "truncated?": "flag",
    "answers?": "list",
}
_CLAIM_CODES = ("lost", "not_exact", "invalid_field", "reserved_id")


def _taken(claim: Claim, status: str) -> Answer:
    """A new claim with what its worker needs."""
    data = claim.payload(PAYLOAD_BYTES + 1) if claim.task.kind == "task" else None
    found = _held(claim, status)
    if data is not None:
        found |= content("payload", data[:PAYLOAD_BYTES])
        found |= {"truncated": len(data) > PAYLOAD_BYTES}
    return found


def _held(claim: Claim, status: str) -> Answer:
    return {
        "status": status,
        "claim": claim.name,
        "task": task_fields(claim.task),
        "record": plain(claim.record),
        "fence": claim.fence,
        "slot": claim.slot,
        "ttl": claim.ttl,
        "beat_within": round(claim.ttl / 3, 3),
        "answers": [plain(question) for question in claim.answers],
    }


def _made(service: Service, claim: Claim, status: str) -> Made:
    why = "the client has gone"

    def undo() -> None:  # perhaps in another thread: that of the claim may hang
        service.board.attach(claim.name).release_unconfirmed(why)

    try:
        return Made(_taken(claim, status), claim.name, undo)
    except DibsError:
        claim.release_unconfirmed("its payload could not be read")
        raise


def _became(status: str, task: Task) -> Answer:
    return {"status": status, "task": task_fields(task)}


# Producers


def _add(service: Service, call: RouteCall) -> Answer:
    given = call.given
    payload = bytes_of(given, "payload") or b""
    task = service.board.add(
        usable(call, given["id"]),
        payload,
        priority=given["priority"],
        start_in=given["start_in"],
        start_at=given["start_at"],
        by=call.who.owner(call.agent),
        nonce=given["nonce"] or "",
    )
    return _became("added", task)


def _room(service: Service, call: RouteCall) -> Answer:
    board, most = service.board, call.given["most"]
    if not call.who.prefix:
        return {"room": board.room(most)}
    waiting = ("available", "later")
    tasks = board.snapshot(ended=False).tasks.values()
    return {"room": sum(t.state in waiting and call.who.covers(t.id) for t in tasks) <= most}


# Workers


def _claim(service: Service, call: RouteCall) -> Answer | Made:
    given, board = call.given, service.board_for(call.given["host"])
    if (mine := _made_before(service, call)) is not None:
        return mine
    terms = {
        "owner": named_owner(call),
        "ttl": given["ttl"],
        "metadata": given["metadata"] or "",
        "process": process_of(given["process"]),
        "nonce": given["nonce"] or "",
    }
    ident = given["id"]
    if ident is None and call.who.prefix:
        claim = _claim_below(board, call, terms)
    else:
        claim = board.claim(None if ident is None else usable(call, ident), **terms)
    return {"status": "empty"} if claim is None else _made(service, claim, "claimed")


def _made_before(service: Service, call: RouteCall) -> Answer | None:
    """The claim that an earlier request with the same nonce made, if its answer was lost.

    It is confirmed on the board first: the server that made it may be about to undo it.
    """
    nonce = call.given["nonce"]
    if not nonce or not call.given["again"]:
        return None
    for task in service.board.snapshot(ended=False).tasks.values():
        if task.live and task.claim.endswith(f"-{names.check_nonce(nonce)}"):
            claim = service.board.attach(task.stem)
            own = call.who.role >= Role.OPERATOR or own_made(call, claim)
            if call.who.covers(task.id) and own:
                try:
                    if claim.record.host:
                        claim.confirm()
                    else:  # its server died before it wrote more than the name
                        claim = _recorded(service, call, task)
                except (Changed, Lost):
                    return None  # it was undone, or has ended
                return _taken(claim, "claimed" if task.kind == "task" else "acquired")
    return None


def _recorded(service: Service, call: RouteCall, task: Task) -> Claim:
    """The claim again under a new name, with all that was asked for."""
    given = call.given
    return service.board_for(given["host"]).resume(
        task.id,
        name=task.stem,
        owner=named_owner(call),
        ttl=given["ttl"],
        metadata=given["metadata"],
        process=process_of(given["process"]),
        nonce=given["nonce"],
    )


def _claim_below(board: Board, call: RouteCall, terms: dict[str, Any]) -> Claim | None:
    """The next task that a token with a prefix may have."""
    snapshot = board.snapshot(ended=False)
    tasks = [t for t in snapshot.tasks.values() if t.state == AVAILABLE and call.who.covers(t.id)]
    tasks.sort(key=lambda task: (-task.priority, task.id))
    for task in tasks[:_PREFIXED_TRIES]:
        try:
            claim = board.claim(task.id, **terms)
        except (BadName, UnknownId):
            continue
        if claim is not None:
            return claim
    return None


def _resume(service: Service, call: RouteCall) -> Answer | Made:
    given = call.given
    if (mine := _made_before(service, call)) is not None:
        return mine
    if given["name"]:
        exact_name(call, given["name"])
        old = service.board.attach(given["name"])
        if old.task.kind == "lock":
            usable(call, old.task.id)
        if call.who.role < Role.OPERATOR and not own_made(call, old):
            raise Refusal("forbidden", "this claim was not made with this token")
    owner = None if given["name"] and given["owner"] is None else named_owner(call)
    claim = service.board_for(given["host"]).resume(
        usable(call, given["id"]) if given["id"] else "",
        owner=owner,
        name=given["name"],
        ttl=given["ttl"],
        metadata=given["metadata"],
        process=process_of(given["process"]),
        nonce=given["nonce"] or "",
    )
    return _made(service, claim, "resumed")


def _acquire(service: Service, call: RouteCall) -> Answer | Made:
    given = call.given
    lease = given["lease"]
    if not lease and (mine := _made_before(service, call)) is not None:
        return mine
    if lease:
        exact_name(call, lease)
        old = service.board.attach(lease)
        if call.who.role < Role.OPERATOR and not own_made(call, old):
            raise Refusal("forbidden", "this lease was not made with this token")
    owner = None if lease and given["owner"] is None else named_owner(call)
    claim = service.board_for(given["host"]).acquire(
        usable(call, given["id"]),
        slots=given["slots"],
        lease=lease,
        owner=owner,
        ttl=given["ttl"],
        metadata=given["metadata"] or "",
        process=process_of(given["process"]),
        nonce=given["nonce"] or "",
    )
    made = _made(service, claim, "acquired")
    return made.answer if lease else made


def _lock(service: Service, call: RouteCall) -> Answer:
    return {"lock": plain(service.board.status(call.path["id"]))}


def _attach(service: Service, call: RouteCall) -> Answer:
    claim = service.board.attach(call.path["name"])
    holder = service.board.holder(claim.task)
    if holder is None:
        claim.verify()
    found = _held(claim, "claimed")
    if holder is not None:
        snapshot = service.board.entries_of([claim.task])
        ages = [entry.age for entry in snapshot if entry.age is not None]
        found["remaining"] = max(0.0, holder.ttl - ages[0]) if ages else 0.0
    return found


def _beat(service: Service, call: RouteCall) -> Answer:
    claim, given = own_claim(service, call), call.given
    if given["confirm"]:
        claim.confirm(ttl=given["ttl"], metadata=given["metadata"])
    if given["note"] is not None or not given["confirm"]:
        claim.beat(ttl=given["ttl"], metadata=given["metadata"], note=given["note"])
    return {
        "status": "renewed",
        "claim": claim.name,
        "ttl": claim.ttl,
        "beat_within": round(claim.ttl / 3, 3),
    }


def _note(service: Service, call: RouteCall) -> Answer:
    own_claim(service, call).note(call.given["text"])
    return {"status": "noted"}


def _verify(service: Service, call: RouteCall) -> Answer:
    own_claim(service, call).verify()
    return {"status": "yours"}


def _done(service: Service, call: RouteCall) -> Answer:
    result = bytes_of(call.given, "result")
    return _became("done", own_claim(service, call).done(result))


def _fail(service: Service, call: RouteCall) -> Answer:
    claim, given = own_claim(service, call), call.given
    before = ended_before(service, call, claim, "fail")
    return _became("failed", before or claim.fail(given["reason"], retry_in=given["retry_in"]))


def _release(service: Service, call: RouteCall) -> Answer:
    claim, given = own_claim(service, call), call.given
    before = ended_before(service, call, claim, "release")
    ended = before or claim.release(given["reason"], start_in=given["start_in"])
    return _became("released", ended)


def _release_unconfirmed(service: Service, call: RouteCall) -> Answer:
    done = own_claim(service, call).release_unconfirmed(call.given["reason"])
    return {"status": "released" if done else "kept"}


def _ask(service: Service, call: RouteCall) -> Answer:
    return _became("asked", own_claim(service, call).ask(call.given["question"]))


def _keep_output(service: Service, call: RouteCall) -> Answer:
    given = call.given
    claim = own_claim(service, call)
    keeper = service.keeper(claim, given["limit"])
    keeper.keep(given["data_base64"], given["at"])
    return {"status": "kept"}


def _presence(service: Service, call: RouteCall) -> Answer:
    """Show a worker that waits, or that it does not wait any more."""
    given = call.given
    service.waits(call.who.name, given["key"], owner_of(call), given["host"], given["state"])
    return {"status": "shown" if given["state"] else "ended"}


_NAME = Field(TEXT, "an exact name", 0, 512, default="")
_PAYLOAD = {
    "payload": Field(TEXT, "what to do, as text", 0, PAYLOAD_BYTES),
    "payload_base64": Field(BYTES, "what to do, if it is not text", 0, PAYLOAD_BYTES * 2),
}
_CLAIMED = "/v1/claims/{name}"
TASK_ROUTES = (
    route(
        "POST /v1/tasks",
        Role.WORKER,
        "Add a task",
        _add,
        frees=True,
        status=201,
        body={
            "id": _ID._replace(needed=True),
            **_PAYLOAD,
            "priority": Field(WHOLE, "9 is first", 0, 9, default=5),
            "start_in": Field(
                NUMBER, "no worker gets it before so many seconds", 0, _YEARS, default=0
            ),
            "start_at": Field(NUMBER, "the same as unix seconds of the board's clock", 0, 2**36),
            "nonce": NONCE,
        },
        answer=_TASK,
        codes=("exists", "invalid_field", "missing_field", "reserved_id"),
    ),
    route(
        "GET /v1/room",
        Role.WORKER,
        "Whether at most so many tasks wait",
        _room,
        query={
            "most": Field(WHOLE, "how many", 0, 10**9, needed=True),
        },
        answer={"room": "flag"},
    ),
    route(
        "POST /v1/claims",
        Role.WORKER,
        "Claim the next task, or the one named; with `wait` stay in line for it",
        _claim,
        kind=WAIT,
        body={"id": _ID, **_TERMS, "again": _AGAIN, "wait": _WAIT},
        answer=_CLAIM,
        codes=(
            *("held", "not_due", "asked", "paused", "unclaimable", "unknown_id"),
            *("invalid_ttl", "invalid_metadata", "invalid_field", "lost", "exists", "reserved_id"),
        ),
    ),
    route(
        "POST /v1/resume",
        Role.WORKER,
        "Claim your own task or lock again after a restart; the old claim is revoked",
        _resume,
        body={"id": _ID, "name": _NAME, **_TERMS, "again": _AGAIN},
        answer=_CLAIM,
        codes=(
            *("held", "changed", "not_exact", "unknown_id", "lost", "paused", "exists"),
            *("invalid_ttl", "invalid_metadata", "invalid_field", "reserved_id"),
        ),
    ),
    route(
        "POST /v1/acquire",
        Role.WORKER,
        "Acquire a lock, perhaps one of several slots; with `wait` stay in line for it",
        _acquire,
        kind=WAIT,
        body={
            "id": _ID._replace(needed=True),
            "slots": Field(WHOLE, "how many may have it at a time", 1, 999, default=1),
            "lease": _NAME,
            **_TERMS,
            "again": _AGAIN,
            "wait": _WAIT,
        },
        answer=_CLAIM,
        codes=(
            *("held", "paused", "lost", "not_exact", "unclaimable", "exists", "reserved_id"),
            *("invalid_ttl", "invalid_metadata", "invalid_field", "missing_field"),
        ),
    ),
    route(
        "GET /v1/locks/{id}",
        Role.READER,
        "Show a lock with its slots, as `Board.status`",
        _lock,
        answer={"lock": "object"},
        codes=("exists",),
    ),
    route(
        f"GET {_CLAIMED}",
        Role.READER,
        "Show a claim by its exact name",
        _attach,
        answer=_CLAIM,
        codes=_CLAIM_CODES,
    ),
    route(
        f"POST {_CLAIMED}/beat",
        Role.WORKER,
        "Renew the lease; a note says what the work is doing",
        _beat,
        body={
            "ttl": _TTL,
            "metadata": _METADATA,
            "note": Field(TEXT, "what the work does now", 0, 1000),
            "confirm": Field(
                FLAG, "whether `release-unconfirmed` does nothing from now on", default=False
            ),
        },
        answer={"status": "text", "claim": "text", "ttl": "number", "beat_within": "number"},
        codes=(*_CLAIM_CODES, "invalid_ttl", "invalid_metadata"),
    ),
    route(
        f"POST {_CLAIMED}/note",
        Role.WORKER,
        "Say what the work is doing; the lease is not renewed",
        _note,
        body={"text": Field(TEXT, "one line; empty removes the note", 0, 1000, needed=True)},
        answer={"status": "text"},
        codes=(*_CLAIM_CODES, "missing_field"),
    ),
    route(
        f"POST {_CLAIMED}/verify",
        Role.WORKER,
        "Check that the claim is still yours",
        _verify,
        answer={"status": "text"},
        codes=_CLAIM_CODES,
    ),
    route(
        f"POST {_CLAIMED}/done",
        Role.WORKER,
        "Commit the finished task, perhaps with a result; a repeat keeps the first result",
        _done,
        body={
            "result": Field(TEXT, "the result as text", 0, 65_536),
            "result_base64": Field(BYTES, "the result, if it is not text", 0, 90_000),
        },
        answer=_TASK,
        codes=(*_CLAIM_CODES, "changed", "exists"),
    ),
    route(
        f"POST {_CLAIMED}/fail",
        Role.WORKER,
        "Report a failed attempt",
        _fail,
        frees=True,
        body={
            "reason": _REASON,
            "retry_in": Field(NUMBER, "start again in so many seconds", 0, _DAY),
        },
        answer=_TASK,
        codes=(*_CLAIM_CODES, "exists"),
    ),
    route(
        f"POST {_CLAIMED}/release",
        Role.WORKER,
        "Give a task or lock back, unchanged",
        _release,
        frees=True,
        body={
            "reason": _REASON,
            "start_in": Field(NUMBER, "start again in so many seconds", 0, _DAY, default=0),
        },
        answer=_TASK,
        codes=(*_CLAIM_CODES, "exists"),
    ),
    route(
        f"POST {_CLAIMED}/release-unconfirmed",
        Role.WORKER,
        "Release a claim whose answer was lost, unless someone has confirmed or beaten it",
        _release_unconfirmed,
        frees=True,
        body={"reason": _REASON},
        answer={"status": "text"},
        codes=_CLAIM_CODES,
    ),
    route(
        f"POST {_CLAIMED}/ask",
        Role.WORKER,
        "End the claim with a question to a person",
        _ask,
        body={"question": Field(TEXT, "the question", 1, 4096, needed=True)},
        answer=_TASK,
        codes=(*_CLAIM_CODES, "missing_field", "exists"),
    ),
    route(
        f"POST {_CLAIMED}/output",
        Role.WORKER,
        "Keep a part of what the work prints",
        _keep_output,
        body={
            "data_base64": Field(BYTES, "the bytes", 0, 1_000_000, needed=True),
            "at": Field(WHOLE, "the offset of the first of them", 0, 2**50, needed=True),
            "limit": Field(WHOLE, "how many bytes are kept in all", 4096, 1 << 30, needed=True),
        },
        answer={"status": "text"},
        codes=(*_CLAIM_CODES, "missing_field"),
    ),
    route(
        "POST /v1/presence",
        Role.WORKER,
        "Show a worker that waits by its own means: each 10 s; without a state it waits no more",
        _presence,
        body={
            "key": Field(TEXT, "by which this wait is known", 1, 64, needed=True),
            "owner": _OWNER,
            "host": _TERMS["host"],
            "state": Field(TEXT, "why it waits", words=WAITER_STATES),
        },
        answer={"status": "text"},
        codes=("missing_field", "invalid_field"),
    ),
)
