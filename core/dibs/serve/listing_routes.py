"""The routes that show tasks, claims and what is kept of them, to every role."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dibs.model import names
from dibs.model.errors import BadName, DibsError, UnknownId
from dibs.model.filters import parse, states, uses
from dibs.model.reasons import last_reasons
from dibs.model.task import DONE, FAILED, FREE, STATES
from dibs.serve.bodies import NAMES, NUMBER, TEXT, WHOLE, Field
from dibs.serve.call_rights import Answer, covered, named_task
from dibs.serve.problems import Refusal
from dibs.serve.route_table import READ, RouteCall, route
from dibs.serve.task_routes import PAYLOAD_BYTES
from dibs.serve.tokens import Role
from dibs.serve.values import content, plain, task_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.board import Board
    from dibs.model.entries import Entry
    from dibs.model.task import Task
    from dibs.serve.service import Service

PAYLOAD_END = 1 << 26
"""What follows in a payload is not sent."""
_DAY = 86_400
_HISTORY = 1000
APART = (DONE, FAILED, FREE)
"""The states that a listing without conditions leaves out."""


def _list(service: Service, call: RouteCall) -> Answer:
    """The rows that match, as `dibs ls` lists them, in pages."""
    given, board = call.given, service.reads
    terms = [*given["filter"], *([f"state={given['state']}"] if given["state"] else [])]
    test, wanted = parse(terms), states(terms, STATES)
    apart = not wanted.isdisjoint(APART) and bool(terms)
    if not terms:
        wanted -= set(APART)
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
    board, ident = service.reads, call.path["id"]
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
    found = service.reads.output(call.path["name"], call.given["since"], call.given["last"])
    return {"output": plain(found)}


_ID = Field(TEXT, "the id", 1, 256)
LISTING_ROUTES = (
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
        "GET /v1/claims/{name}/output",
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
)
