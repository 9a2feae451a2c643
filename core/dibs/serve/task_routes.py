"""The routes of tasks and claims: what workers and producers do, and what everyone may see."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from dibs.blocks import ClaimBase
from dibs.model import names
from dibs.model.errors import BadName, DibsError, UnknownId, short
from dibs.model.filters import parse, states, uses
from dibs.model.reasons import last_reasons
from dibs.model.task import AVAILABLE, DONE, FAILED, FREE, STATES
from dibs.model.waiters import WAITER_STATES
from dibs.serve.bodies import BYTES, FLAG, NAMES, NUMBER, TABLE, TEXT, WHOLE, Field
from dibs.serve.lock_names import RESERVED
from dibs.serve.problems import CODES, Refusal
from dibs.serve.route_table import READ, WAIT, Made, RouteCall, route
from dibs.serve.tokens import Role
from dibs.serve.values import bytes_of, content, cursor_of, plain, process_of, task_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board import Board
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.task import Task
    from dibs.protocols import Claim
    from dibs.serve.service import Service

Answer = dict[str, Any]
WAIT_MOST = 60
PAYLOAD_BYTES = 1 << 20
PAYLOAD_END = 1 << 26
"""What follows in a payload is not sent."""
_YEARS = 36_500 * 86_400
_DAY = 86_400
_HISTORY = 1000
_APART = (DONE, FAILED, FREE)
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


# Helpers


def covered(call: RouteCall, ident: str) -> str:
    """The id, if the token's prefix covers it."""
    if not call.who.covers(ident):
        raise Refusal("forbidden", f"the token is only for ids that begin with {call.who.prefix}")
    return ident


def usable(call: RouteCall, ident: str) -> str:
    """The same for an id that is to be made, claimed or locked: none of the server's own."""
    if ident.startswith(RESERVED):
        raise Refusal("reserved_id", f"{short(ident)}: {CODES['reserved_id'].text}")
    return covered(call, ident)


def whole(call: RouteCall) -> None:
    """Refuse a token with a prefix where the whole board is concerned."""
    if call.who.prefix:
        raise Refusal("forbidden", f"this is for the whole board, not only {call.who.prefix}")


def exact_name(call: RouteCall, name: str) -> str:
    """The exact name, if the token's prefix covers its id."""
    for candidate in names.exact(name.partition("/")[0] if _has_rename(name) else name):
        task = names.read_any(candidate)
        if task is not None:
            covered(call, task.id)
    return name


def _has_rename(name: str) -> bool:
    """Whether it names a claim made with `mv`, which has the time of its rename after a slash."""
    head, slash, _ = name.partition("/")
    return bool(slash) and head not in (DONE, FAILED, ".dibs")


def owner_of(call: RouteCall) -> str:
    """The owner of a claim; only an operator's token may give any name."""
    given = call.given.get("owner")
    if given is not None and call.who.role >= Role.OPERATOR:
        return str(given)
    return call.who.owner(given if given is not None else call.agent)


def named_owner(call: RouteCall) -> str | None:
    """The same; a worker without a name has that of its host, for which an operator's has None."""
    given = call.given
    if given["owner"] is not None or not given["host"]:
        return owner_of(call)
    return None if call.who.role >= Role.OPERATOR else call.who.owner(given["host"])


def own_claim(service: Service, call: RouteCall) -> Claim:
    """The claim of that exact name; a worker's token must have made it."""
    claim = service.board.attach(exact_name(call, call.path["name"]))
    if claim.task.kind == "lock":
        usable(call, claim.task.id)
    if call.who.role < Role.OPERATOR and not _is_own(call, claim):
        raise Refusal("forbidden", f"this claim was not made with the token of {call.who.name}")
    _restore_owner(call, claim)
    return claim


def _restore_owner(call: RouteCall, claim: Claim) -> None:
    """Name the owner of a claim that is gone as its record did, for the log's line about it."""
    record, folded = claim.record, names.fold_owner(call.who.name)
    if isinstance(claim, ClaimBase) and not record.host and record.owner.startswith(f"{folded}-"):
        agent = record.owner[len(folded) + 1 :]
        exact = call.who.owner(call.agent)
        whose = exact if names.fold_owner(exact) == record.owner else f"{call.who.name}/{agent}"
        claim.record = record._replace(owner=whose)


def _is_own(call: RouteCall, claim: Claim) -> bool:
    """Whether a claim was made with this token; one that has ended has only its exact name left."""
    record, folded = claim.record, names.fold_owner(call.who.name)
    if record.host:
        return call.who.owns(record.owner)
    return record.owner == folded or record.owner.startswith(f"{folded}-")


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


def _made(claim: Claim, status: str) -> Made:
    undo = partial(claim.release, "the client has gone")
    try:
        return Made(_taken(claim, status), undo)
    except DibsError:
        undo()
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
    )
    return _became("added", task)


def _room(service: Service, call: RouteCall) -> Answer:
    return {"room": service.board.room(call.given["most"])}


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
    return {"status": "empty"} if claim is None else _made(claim, "claimed")


def _made_before(service: Service, call: RouteCall) -> Answer | None:
    """The claim that an earlier request with the same nonce made, if its answer was lost."""
    nonce = call.given["nonce"]
    if not nonce or not call.given["again"]:
        return None
    for task in service.board.snapshot(ended=False).tasks.values():
        if task.live and task.claim.endswith(f"-{names.check_nonce(nonce)}"):
            claim = service.board.attach(task.stem)
            own = call.who.role >= Role.OPERATOR or _is_own(call, claim)
            if call.who.covers(task.id) and own:
                return _taken(claim, "claimed" if task.kind == "task" else "acquired")
    return None


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
        if call.who.role < Role.OPERATOR and not _is_own(call, old):
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
    return _made(claim, "resumed")


def _acquire(service: Service, call: RouteCall) -> Answer | Made:
    given = call.given
    lease = given["lease"]
    if not lease and (mine := _made_before(service, call)) is not None:
        return mine
    if lease:
        exact_name(call, lease)
        old = service.board.attach(lease)
        if call.who.role < Role.OPERATOR and not _is_own(call, old):
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
    made = _made(claim, "acquired")
    return made.answer if lease else made


def _lock(service: Service, call: RouteCall) -> Answer:
    return {"lock": plain(service.board.status(covered(call, call.path["id"])))}


def _attach(service: Service, call: RouteCall) -> Answer:
    claim = service.board.attach(exact_name(call, call.path["name"]))
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
    return _became("failed", claim.fail(given["reason"], retry_in=given["retry_in"]))


def _release(service: Service, call: RouteCall) -> Answer:
    claim, given = own_claim(service, call), call.given
    return _became("released", claim.release(given["reason"], start_in=given["start_in"]))


def _ask(service: Service, call: RouteCall) -> Answer:
    return _became("asked", own_claim(service, call).ask(call.given["question"]))


def _keep_output(service: Service, call: RouteCall) -> Answer:
    given = call.given
    claim = own_claim(service, call)
    keeper = service.keeper(claim, given["limit"])
    keeper.keep(given["data_base64"], given["at"])
    return {"status": "kept"}


# Everyone


def _list(service: Service, call: RouteCall) -> Answer:
    """The rows that match, as `dibs ls` lists them, in pages."""
    given, board = call.given, service.reads
    terms = [*given["filter"], *([f"state={given['state']}"] if given["state"] else [])]
    test, wanted = parse(terms), states(terms, STATES)
    apart = not wanted.isdisjoint(_APART) and bool(terms)
    if not terms:
        wanted -= set(_APART)
    snapshot = board.snapshot(ended=apart)
    totals = snapshot.counts()
    if not apart:
        for state, count in board.count_apart().items():
            totals[state] += count
    rows = [row for row in board.entries(snapshot, wanted) if call.who.covers(row.id)]
    if uses(terms, "reason"):
        rows = with_reasons(board, rows)
    rows = [row for row in rows if test(row)]
    rows.sort(key=_order)
    total = len(rows)
    if given["after"]:
        after = _order_of(given["after"])
        rows = [row for row in rows if _order(row) > after]
    page, more = rows[: given["limit"]], len(rows) > given["limit"]
    if not uses(terms, "reason"):
        page = with_reasons(board, page)
    return {
        "tasks": [service.wording.entry(row) for row in page],
        "total": total,
        "counts": {} if call.who.prefix else totals,
        "next": _order_text(page[-1]) if more else None,
        "exact": snapshot.exact,
    }


def with_reasons(board: Board, rows: Iterable[Entry]) -> list[Entry]:
    """The rows, those that failed or wait after a failure with the reason."""
    rows = list(rows)
    wanted = [row.id for row in rows if row.state in (FAILED, "later")]
    found = last_reasons(board.log, wanted) if wanted else {}
    return [row._replace(reason=found.get(row.id, row.reason)) for row in rows]


def _order(row: Entry) -> tuple[int, int, str]:
    return STATES.index(row.state), -row.priority, row.claim


def _order_text(row: Entry) -> str:
    return base64.urlsafe_b64encode(json.dumps(_order(row)).encode()).decode()


def _order_of(text: str) -> tuple[int, int, str]:
    try:
        found: Any = json.loads(base64.urlsafe_b64decode(text))
    except (ValueError, RecursionError):
        found = None
    match found:
        case [int(state), int(priority), str(name)]:
            return state, priority, name
        case _:
            raise Refusal("invalid_query", "this is no `next` of a page", {"field": "after"})


def _show(service: Service, call: RouteCall) -> Answer:
    """Everything about one id."""
    board, ident = service.reads, covered(call, call.path["id"])
    tasks = board.find(ident)
    if not tasks:
        raise UnknownId(board.why_missing(ident))
    history = board.log.of(ident, _HISTORY)
    found = []
    for task, row in zip(tasks, with_reasons(board, board.entries_of(tasks)), strict=True):
        fields = service.wording.entry(row) | {"name": task.name}
        fields["evidence"] = _evidence(board, task)
        fields["questions"] = [plain(question) for question in board.questions(task)]
        if task.kind == "task":
            payload = board.payload(task, PAYLOAD_BYTES)
            fields |= content("payload", payload)
        if task.state == DONE:
            fields |= content("result", board.result(task))
        found.append(fields)
    return {
        "id": ident,
        "tasks": found,
        "history": [plain(event) for event in history],
        "outputs": [plain(kept) for kept in board.outputs(ident)],
    }


def _evidence(board: Board, task: Task) -> Answer | None:
    """The evidence on the holder; None without one, or if the storage fails."""
    if not task.live:
        return None
    try:
        evidence = board.evidence(task)
    except DibsError:
        return None
    return {"verdict": str(evidence.verdict), "proofs": [plain(one) for one in evidence.proofs]}


def named_task(call: RouteCall) -> Task:
    """The task of the exact name in the path, by its name alone."""
    for candidate in names.exact(exact_name(call, call.path["name"])):
        task = names.read_any(candidate)
        if task is not None:
            return task
    raise BadName(f"{short(call.path['name'])} is not the exact name of a task")


def _find(service: Service, call: RouteCall) -> Answer:
    """What has these ids now; a text that is no id has nothing."""
    found: list[list[Answer]] = []
    for ident in call.given["ids"]:
        tasks: tuple[Task, ...] = ()
        with suppress(BadName):
            tasks = service.board.find(covered(call, ident))
        found.append([task_fields(task) for task in tasks])
    return {"found": found}


def _outputs(service: Service, call: RouteCall) -> Answer:
    kept = service.reads.outputs(covered(call, call.given["id"]))
    return {"outputs": [plain(one) for one in kept]}


def _presence(service: Service, call: RouteCall) -> Answer:
    """Show a worker that waits, or that it does not wait any more."""
    given = call.given
    service.waits(call.who.name, given["key"], owner_of(call), given["host"], given["state"])
    return {"status": "shown" if given["state"] else "ended"}


def _payload(service: Service, call: RouteCall) -> Answer:
    since, limit = call.given["since"], call.given["limit"]
    data = service.board.payload(named_task(call), since + limit)
    return content("payload", data[since:])


def _result(service: Service, call: RouteCall) -> Answer:
    return content("result", service.board.result(named_task(call)))


def _holder(service: Service, call: RouteCall) -> Answer:
    return {"holder": plain(service.board.holder(named_task(call)))}


def _evidence_of(service: Service, call: RouteCall) -> Answer:
    board, others = service.board, []
    for name in call.given["others"]:
        task = names.read_any(name)
        if task is not None and task.live and call.who.covers(task.id):
            others.append(board.holder(task))
    beside = [holder for holder in others if holder is not None]
    found = board.evidence(named_task(call), beside, call.given["cadence"])
    return {"evidence": plain(found)}


def _questions(service: Service, call: RouteCall) -> Answer:
    return {"questions": [plain(one) for one in service.board.questions(named_task(call))]}


def _output(service: Service, call: RouteCall) -> Answer:
    name = exact_name(call, call.path["name"])
    found = service.reads.output(name, call.given["since"], call.given["last"])
    return {"output": plain(found)}


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
        },
        answer=_TASK,
        codes=("exists", "invalid_field", "missing_field", "reserved_id"),
    ),
    route(
        "GET /v1/tasks",
        Role.READER,
        "List tasks and locks, as `dibs ls` does, the most urgent first",
        _list,
        kind=READ,
        query={
            "filter": Field(NAMES, "conditions as on the command line", 0, 50, default=()),
            "state": Field(TEXT, "only this state", words=STATES),
            "limit": Field(WHOLE, "rows of a page", 1, 1000, default=100),
            "after": Field(TEXT, "`next` of the page before", 1, 1024),
        },
        answer={
            "tasks": "list",
            "total": "whole",
            "counts": "object",
            "next": "text?",
            "exact": "flag",
        },
    ),
    route(
        "GET /v1/tasks/{id}",
        Role.READER,
        "Show one id: its names, payload, questions, evidence, history and outputs",
        _show,
        kind=READ,
        answer={"id": "text", "tasks": "list", "history": "list", "outputs": "list"},
        codes=("unknown_id",),
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
        "Commit the finished task, perhaps with a result; doing it again succeeds",
        _done,
        body={
            "result": Field(TEXT, "the result as text", 0, 65_536),
            "result_base64": Field(BYTES, "the result, if it is not text", 0, 90_000),
        },
        answer=_TASK,
        codes=(*_CLAIM_CODES, "exists"),
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
    route(
        "POST /v1/find",
        Role.READER,
        "What has each of these ids now, as `Board.find`",
        _find,
        body={"ids": Field(NAMES, "ids", 0, 1000, needed=True)},
        answer={"found": "list"},
        codes=("missing_field", "invalid_field"),
    ),
    route(
        "GET /v1/outputs",
        Role.READER,
        "The claims of an id whose output was kept",
        _outputs,
        kind=READ,
        query={"id": _ID._replace(needed=True)},
        answer={"outputs": "list"},
    ),
    route(
        f"GET {_CLAIMED}/output",
        Role.READER,
        "What was kept of the output of a claim",
        _output,
        kind=READ,
        query={
            "since": Field(WHOLE, "the offset to begin at", 0, 2**50, default=0),
            "last": Field(WHOLE, "at most so many bytes, the last", 0, 1 << 24, default=1 << 18),
        },
        answer={"output": "object?"},
        codes=("not_exact",),
    ),
    route(
        "GET /v1/names/{name}/payload",
        Role.READER,
        "The beginning of a payload",
        _payload,
        query={
            "limit": Field(WHOLE, "at most so many bytes", 0, 1 << 20, default=1 << 20),
            "since": Field(WHOLE, "the offset of the first", 0, PAYLOAD_END, default=0),
        },
        answer={"payload": "text?", "payload_base64?": "text"},
        codes=("not_exact", "changed", "lost"),
    ),
    route(
        "GET /v1/names/{name}/result",
        Role.READER,
        "The result with which a task was done",
        _result,
        answer={"result": "text?", "result_base64?": "text"},
        codes=("not_exact",),
    ),
    route(
        "GET /v1/names/{name}/holder",
        Role.READER,
        "The holder of a claim",
        _holder,
        answer={"holder": "object?"},
        codes=("not_exact",),
    ),
    route(
        "GET /v1/names/{name}/evidence",
        Role.READER,
        "The evidence on the holder of a claim",
        _evidence_of,
        query={
            "cadence": Field(NUMBER, "the usual time between its heartbeats", 0, _DAY),
            "others": Field(NAMES, "claims that may share its host", 0, 50, default=()),
        },
        answer={"evidence": "object"},
        codes=("not_exact", "changed"),
    ),
    route(
        "GET /v1/names/{name}/questions",
        Role.READER,
        "The questions that were asked about a task",
        _questions,
        answer={"questions": "list"},
        codes=("not_exact",),
    ),
    route(
        "GET /v1/log",
        Role.READER,
        "What happened, on all ids or one, in pages",
        _log,
        kind=READ,
        query={
            "id": _ID,
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
