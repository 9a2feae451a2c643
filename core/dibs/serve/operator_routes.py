"""The routes of operators, of upkeep, and of the board as a whole.

Each act takes the exact name that was seen, and the log says which token's name acted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from dibs.host import nonce
from dibs.model.errors import BadName, Changed, DibsError, Uncertain, short
from dibs.model.events import FORMER_VERBS, LEDGER, NOTHING_MOVED, ON_BOARD
from dibs.model.hooks import EVENTS
from dibs.model.names import check_bulk
from dibs.model.rates import TOTALS
from dibs.serve.bodies import FLAG, NAMES, NUMBER, TEXT, WHOLE, Field
from dibs.serve.call_rights import NONCE, Answer, covered, exact_name, named_task, whole
from dibs.serve.listing_routes import APART
from dibs.serve.problems import Refusal, code_of, problem_of
from dibs.serve.route_table import READ, STREAM, RouteCall, route
from dibs.serve.tokens import Role
from dibs.serve.values import plain, task_fields

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.model.events import Event
    from dibs.model.task import Task
    from dibs.serve.service import Service

_OWN_VERBS = {*EVENTS, *TOTALS, *NOTHING_MOVED, *ON_BOARD, *FORMER_VERBS}
"""Verbs of the log that dibs writes when it has acted, and hooks send: no client may write them."""
_OPERATORS_VERBS = {LEDGER, "hook"}
"""Verbs of summaries, which the clients of operators write after their acts."""
_is_verb = re.compile(r"[a-z][a-z0-9-]{0,39}").fullmatch
_MANY = 1000
"""The most names of one act on many."""
_NAMED = "/v1/names/{name}"
_REASON = Field(TEXT, "why, which the log keeps", 0, 4096, default="")
_NEEDED = _REASON._replace(needed=True, least=1, default=None)
_BULK = Field(TEXT, "the bulk act that it is a part of, as the log names it", 0, 32, default="")
_TASK = {"status": "text", "task": "object"}
_CODES = ("changed", "refused", "exists", "not_exact", "unknown_id", "invalid_field")
_HOST = Field(TEXT, "only workers on this host, or a pattern", 0, 255, default="")


def _by(call: RouteCall) -> str:
    """Who acts, for the log."""
    return call.who.owner(call.agent)


def _bulk(call: RouteCall) -> str:
    """The identity of the bulk act that this one is a part of; empty for none."""
    return check_bulk(call.given["bulk"])


def _did(status: str, task: Task) -> Answer:
    return {"status": status, "task": task_fields(task)}


def _force_release(service: Service, call: RouteCall) -> Answer:
    name = call.path["name"]
    task = service.board.force_release(name, call.given["reason"], by=_by(call), bulk=_bulk(call))
    return _did("released", task)


def _requeue(service: Service, call: RouteCall) -> Answer:
    name, given = call.path["name"], call.given
    task = service.board.requeue(
        name,
        given["reason"],
        by=_by(call),
        bulk=_bulk(call),
        keep_attempts=given["keep_attempts"],
    )
    return _did("requeued", task)


def _park(service: Service, call: RouteCall) -> Answer:
    name = call.path["name"]
    task = service.board.park(name, call.given["reason"], by=_by(call), bulk=_bulk(call))
    return _did("parked", task)


def _answer(service: Service, call: RouteCall) -> Answer:
    name = call.path["name"]
    task = service.board.answer(name, call.given["text"], by=_by(call), bulk=_bulk(call))
    return _did("answered", task)


def _prioritize(service: Service, call: RouteCall) -> Answer:
    name = call.path["name"]
    priority, bulk = call.given["priority"], _bulk(call)
    task = service.board.prioritize(name, priority, by=_by(call), bulk=bulk)
    return _did("prioritized", task)


def _reap_one(service: Service, call: RouteCall) -> Answer:
    name, given = call.path["name"], call.given
    task = service.board.reap_claim(
        name, given["reason"], by=_by(call), bulk=_bulk(call), asked=given["asked"]
    )
    return _did("reaped", task)


def _requeueable(service: Service, call: RouteCall) -> Answer:
    name = call.path["name"]
    return _did("requeueable", service.board.requeueable(name))


def _undo(service: Service, call: RouteCall) -> Answer:
    """Undo the act that renamed `before` to this name, if it is the last."""
    board, before = service.board, call.given["before"]
    name = call.path["name"]
    task = named_task(call)
    event = board.undoable(task.id)
    if event is None or (event.dst, event.src) != (name, before):
        raise Changed("nothing was done: that is not the last act on it", name, board.find(task.id))
    undone = board.undo(event, by=_by(call), bulk=_bulk(call))
    return {"status": "undone", "task": None if undone is None else task_fields(undone)}


def _undo_pause(service: Service, call: RouteCall) -> Answer:
    """Undo the last act on the board itself: the begin or the end of a pause."""
    event = service.board.undoable(None)
    given = call.given
    if event is None or event.id or (event.dst, event.src) != (given["name"], given["before"]):
        raise Changed("nothing was done: that is not the last act", given["name"])
    service.board.undo(event, by=_by(call))
    return {"status": "undone", "task": None}


def _undo_steps(service: Service, call: RouteCall) -> Answer:
    """The acts that can be undone, newest first, each with why it cannot."""
    ident, board = call.given["id"], service.reads
    if ident is None:
        whole(call)
    else:
        covered(call, ident)
    steps = islice(board.undo_steps(ident), call.given["limit"])
    return {"steps": [[_undo_step(board, event) for event in step] for step in steps]}


def _undo_step(board: Board, event: Event) -> Answer:
    found: Answer = plain(event)
    return found | {"why_not": board.not_undoable(event)}


# Many at once


_ACTS: dict[str, Callable[[Board, RouteCall, str, str], Task]] = {
    "requeue": lambda board, call, name, bulk: board.requeue(
        name,
        call.given["reason"],
        by=_by(call),
        bulk=bulk,
        keep_attempts=call.given["keep_attempts"],
    ),
    "park": lambda board, call, name, bulk: board.park(
        name, call.given["reason"], by=_by(call), bulk=bulk
    ),
    "force-release": lambda board, call, name, bulk: board.force_release(
        name, call.given["reason"], by=_by(call), bulk=bulk
    ),
    "reap": lambda board, call, name, bulk: board.reap_claim(
        name, call.given["reason"], by=_by(call), bulk=bulk
    ),
    "prioritize": lambda board, call, name, bulk: board.prioritize(
        name, _priority(call), by=_by(call), bulk=bulk
    ),
}
"""The acts that can be done on many names."""


def _priority(call: RouteCall) -> int:
    priority = call.given["priority"]
    if priority is None:
        raise Refusal("missing_field", "prioritize needs priority", {"field": "priority"})
    return int(priority)


def _plan(service: Service, call: RouteCall) -> Answer:
    """What an act on these names would find; nothing is changed."""
    board, given = service.reads, call.given
    rows = []
    for name in dict.fromkeys(given["names"]):
        task = named_task(call, name)
        here = [now for now in board.find(task.id) if name in (now.name, now.stem)]
        row: Answer = {"name": name, "id": task.id, "status": "ready" if here else "changed"}
        row["now"] = [task_fields(now) for now in board.find(task.id)]
        live = [now for now in here if now.live]
        if live:
            evidence = board.evidence(live[0])
            row["verdict"] = str(evidence.verdict)
        rows.append(row)
    counts = Counter(row["status"] for row in rows)
    return {"act": given["act"], "plan": rows, "counts": dict(counts)}


def _act(service: Service, call: RouteCall) -> Answer:
    """Act on each of these names; one outcome for each, and a line in the log for all."""
    board, act = service.board, call.given["act"]
    if act in ("park", "force-release") and not call.given["reason"].strip():
        raise Refusal("missing_field", f"{act} needs a reason", {"field": "reason"})
    if act == "prioritize":
        _priority(call)
    rows = []
    listed = list(dict.fromkeys(call.given["names"]))
    for name in listed:
        exact_name(call, name)
    bulk = nonce()
    for name in listed:
        rows.append(_outcome(service, call, name, bulk))
    counts = Counter(row["status"] for row in rows)
    if counts["done"] > 1:
        others = ", ".join(f"{n} {word}" for word, n in sorted(counts.items()) if word != "done")
        text = f"{act}: {counts['done']} done{', ' if others else ''}{others}"
        board.log.note(LEDGER, text, by=_by(call), bulk=bulk)
    return {"act": act, "ledger": rows, "counts": dict(counts)}


def _outcome(service: Service, call: RouteCall, name: str, bulk: str) -> Answer:
    try:
        task = _ACTS[call.given["act"]](service.board, call, name, bulk)
    except DibsError as error:
        gone = isinstance(error, Changed) and not error.now
        word = "uncertain" if isinstance(error, Uncertain) else "gone" if gone else "refused"
        details = dict(service.wording.refusal(error))
        details.pop("status", None)
        return {"name": name, "status": word, "code": code_of(error), **details}
    return {"name": name, "status": "done", "task": task_fields(task)}


def _resolve(service: Service, call: RouteCall) -> Answer:
    """The exact name that each line of a list means."""
    return {"lines": [plain(line) for line in service.reads.resolve(call.given["text"])]}


# Pauses


def _pause(service: Service, call: RouteCall) -> Answer:
    given = call.given
    pause, holders = service.board.pause_claims(
        given["reason"],
        host=given["host"],
        seconds=given["seconds"],
        locks=given["locks"],
        by=_by(call),
        nonce=given["nonce"] or "",
    )
    return {"pause": plain(pause), "holders": [task_fields(task) for task in holders]}


def _resume(service: Service, call: RouteCall) -> Answer:
    ended = service.board.resume_claims(call.given["names"], by=_by(call))
    return {"ended": [plain(pause) for pause in ended]}


def _pauses(service: Service, call: RouteCall) -> Answer:
    return {"pauses": [plain(pause) for pause in service.board.pauses()]}


# Upkeep


def _reap(service: Service, call: RouteCall) -> Answer:
    return {"reaped": plain(service.board.reap())}


def _check(service: Service, call: RouteCall) -> Answer:
    _require(service, "check")
    return {"findings": [_finding(one) for one in service.reads.check()]}


def _repair(service: Service, call: RouteCall) -> Answer:
    _require(service, "check")
    repaired: list[Answer] = []
    left = service.reads.repair(lambda one: repaired.append(_finding(one)))
    return {"repaired": repaired, "left": [_finding(one) for one in left]}


def _require(service: Service, capability: str) -> None:
    if capability not in service.reads.capabilities:
        raise Refusal("unsupported", f"this kind of board does not support {capability}")


def _finding(finding: Any) -> Answer:
    found = {key: value for key, value in finding._asdict().items() if key != "repair"}
    return {key: plain(value) for key, value in found.items()} | {
        "repairable": finding.repair is not None
    }


def _purge(service: Service, call: RouteCall) -> Answer:
    return {"purged": service.reads.purge(call.given["older_than"])}


def _forget(service: Service, call: RouteCall) -> Answer:
    idents = [covered(call, ident) for ident in call.given["ids"]]
    rows = []
    for ident, error in service.reads.forget_each(idents):
        row: Answer = {"id": ident, "status": "forgotten" if error is None else "refused"}
        if error is not None:
            refused = problem_of(error, service.wording.refusal)
            row |= {"code": refused.code, "error": str(error), "details": refused.details}
        rows.append(row)
    return {"ledger": rows}


# The board as a whole


def _board(service: Service, call: RouteCall) -> Answer:
    board = service.board
    return {
        "label": service.location.label,
        "settings": plain(board.settings._replace(hooks=())),  # a url may be a secret
        "capabilities": sorted(str(one) for one in board.capabilities),
        "host": plain(board.host),
    }


def _snapshot(service: Service, call: RouteCall) -> Answer:
    """The board, as `Board.snapshot`; of it what the token's prefix covers."""
    found = service.reads.snapshot(ended=call.given["ended"])
    names = [name for name, task in found.tasks.items() if call.who.covers(task.id)]
    if call.who.prefix:
        seen = set(names)
        found = found._replace(
            holders={name: holder for name, holder in found.holders.items() if name in seen},
            dead=found.dead & seen,
            questions={name: asked for name, asked in found.questions.items() if name in seen},
            strangers=0,
            pauses=(),
            waiters=(),
        )
    return {"snapshot": plain(found._replace(tasks={})) | {"tasks": names}}


def _ages(service: Service, call: RouteCall) -> Answer:
    """The ages of a listing, without all else that a row has."""
    board, wanted = service.reads, set(call.given["state"])
    seen = board.snapshot(ended=not wanted.isdisjoint(APART))
    rows = [row for row in board.entries(seen, wanted) if row.state in wanted]
    rows = [row for row in rows if call.who.covers(row.id)]
    return {"ages": {row.claim: plain(row.age) for row in rows}}


def _counts(service: Service, call: RouteCall) -> Answer:
    """The numbers of what a snapshot without `ended` leaves out."""
    if not call.who.prefix:
        return {"counts": service.reads.count_apart()}
    tasks = service.reads.snapshot().tasks.values()
    states = Counter(task.state for task in tasks if call.who.covers(task.id))
    return {"counts": {state: states[state] for state in APART}}


def _entries(service: Service, call: RouteCall) -> Answer:
    """The rows of exact names, as `Board.entries_of`."""
    tasks = [named_task(call, name) for name in call.given["names"]]
    return {"entries": [plain(row) for row in service.reads.entries_of(tasks)]}


def _claims_with(service: Service, call: RouteCall) -> Answer:
    rows = service.reads.claims_with(call.given["key"], call.given["value"])
    return {"entries": [plain(row) for row in rows if call.who.covers(row.id)]}


def _waiters(service: Service, call: RouteCall) -> Answer:
    return {"waiters": [plain(one) for one in service.reads.waiters()]}


def _rates(service: Service, call: RouteCall) -> Answer:
    found = service.reads.log.rates(call.given["since"], owners=call.given["owners"])
    return {"rates": plain(found)}


def _totals(service: Service, call: RouteCall) -> Answer:
    log = service.reads.log
    totals = log.totals() if not call.who.prefix else {}
    return {"totals": totals, "omitted": log.omitted(), "end": plain(log.end())}


def _note(service: Service, call: RouteCall) -> Answer:
    verb, operator = call.given["verb"], call.who.role >= Role.OPERATOR
    if _is_verb(verb) is None:
        raise BadName(f"a verb has small letters, digits and -, got {short(verb)}")
    if verb in _OPERATORS_VERBS and not operator:
        raise Refusal("forbidden", f"only an operator may write {verb}")
    if verb in _OWN_VERBS - _OPERATORS_VERBS:
        raise BadName(f"{verb} is what dibs itself writes: use another word")
    service.board.log.note(verb, call.given["text"], by=_by(call), bulk=_bulk(call))
    return {"status": "noted"}


OPERATOR_ROUTES = (
    route(
        f"POST {_NAMED}/force-release",
        Role.OPERATOR,
        "Take a claim or lock from its holder",
        _force_release,
        frees=True,
        body={"reason": _NEEDED, "bulk": _BULK},
        answer=_TASK,
        codes=(*_CODES, "missing_field"),
    ),
    route(
        f"POST {_NAMED}/requeue",
        Role.OPERATOR,
        "Make a failed or done task available again, or a later or asked one at once",
        _requeue,
        frees=True,
        body={
            "reason": _REASON,
            "keep_attempts": Field(FLAG, "count its earlier attempts", default=False),
            "bulk": _BULK,
        },
        answer=_TASK,
        codes=_CODES,
    ),
    route(
        f"GET {_NAMED}/requeueable",
        Role.READER,
        "Whether `requeue` may take it now; refused with what that would be refused with",
        _requeueable,
        answer=_TASK,
        codes=_CODES,
    ),
    route(
        f"POST {_NAMED}/park",
        Role.OPERATOR,
        "Park a task, so that no worker claims it",
        _park,
        body={"reason": _REASON, "bulk": _BULK},
        answer=_TASK,
        codes=_CODES,
    ),
    route(
        f"POST {_NAMED}/answer",
        Role.OPERATOR,
        "Answer the question of an asked task",
        _answer,
        frees=True,
        body={"text": Field(TEXT, "the answer", 1, 4096, needed=True), "bulk": _BULK},
        answer=_TASK,
        codes=(*_CODES, "missing_field"),
    ),
    route(
        f"POST {_NAMED}/prioritize",
        Role.OPERATOR,
        "Change the priority of a waiting task",
        _prioritize,
        body={"priority": Field(WHOLE, "9 is first", 0, 9, needed=True), "bulk": _BULK},
        answer=_TASK,
        codes=(*_CODES, "missing_field"),
    ),
    route(
        f"POST {_NAMED}/reap",
        Role.OPERATOR,
        "Requeue a claim whose holder has exited or whose lease has expired",
        _reap_one,
        frees=True,
        body={
            "reason": _REASON,
            "asked": Field(FLAG, "false for a janitor", default=True),
            "bulk": _BULK,
        },
        answer=_TASK,
        codes=_CODES,
    ),
    route(
        f"POST {_NAMED}/undo",
        Role.OPERATOR,
        "Undo the act that renamed `before` to this name, if it is the last on its id",
        _undo,
        frees=True,
        body={
            "before": Field(TEXT, "the exact name before the act", 1, 512, needed=True),
            "bulk": _BULK,
        },
        answer={"status": "text", "task": "object?"},
        codes=(*_CODES, "missing_field"),
    ),
    route(
        "GET /v1/undo",
        Role.READER,
        "The acts that are not undone yet, newest first, each with why it cannot be",
        _undo_steps,
        kind=READ,
        query={
            "id": Field(TEXT, "only on this id", 1, 256),
            "limit": Field(WHOLE, "how many", 1, 100, default=20),
        },
        answer={"steps": "list"},
    ),
    route(
        "POST /v1/undo",
        Role.OPERATOR,
        "Undo the begin or the end of a pause, if it is the last act",
        _undo_pause,
        whole=True,
        frees=True,
        body={
            "name": Field(TEXT, "the name after the act; empty for none", 0, 512, needed=True),
            "before": Field(TEXT, "the name before it; empty for none", 0, 512, needed=True),
        },
        answer={"status": "text", "task": "object?"},
        codes=("changed", "missing_field", "invalid_field"),
    ),
    route(
        "POST /v1/plan",
        Role.READER,
        "What an act on many names would find; nothing is changed",
        _plan,
        kind=READ,
        body={
            "act": Field(TEXT, "the act", needed=True, words=tuple(_ACTS)),
            "names": Field(NAMES, "exact names", 0, _MANY, needed=True),
        },
        answer={"act": "text", "plan": "list", "counts": "object"},
        codes=("not_exact", "missing_field", "invalid_field", "changed"),
    ),
    route(
        "POST /v1/acts",
        Role.OPERATOR,
        "Act on many exact names; the ledger has one outcome for each",
        _act,
        long=True,
        frees=True,
        body={
            "act": Field(TEXT, "the act", needed=True, words=tuple(_ACTS)),
            "names": Field(NAMES, "exact names", 0, _MANY, needed=True),
            "reason": _REASON,
            "keep_attempts": Field(FLAG, "for requeue", default=False),
            "priority": Field(WHOLE, "for prioritize", 0, 9),
        },
        answer={"act": "text", "ledger": "list", "counts": "object"},
        codes=("not_exact", "missing_field", "invalid_field"),
    ),
    route(
        "POST /v1/resolve",
        Role.READER,
        "The exact name that each line of a list means, if it can be requeued",
        _resolve,
        whole=True,
        kind=READ,
        body={"text": Field(TEXT, "one exact name or id a line", 0, 1 << 20, needed=True)},
        answer={"lines": "list"},
        codes=("missing_field", "invalid_field"),
    ),
    route(
        "POST /v1/pauses",
        Role.OPERATOR,
        "Pause new claims; holders go on",
        _pause,
        whole=True,
        body={
            "reason": _NEEDED,
            "host": _HOST,
            "seconds": Field(NUMBER, "how long (default: until it is ended)", 0, 366 * 86_400),
            "locks": Field(FLAG, "pause locks too", default=False),
            "nonce": NONCE,
        },
        answer={"pause": "object", "holders": "list"},
        codes=("missing_field", "invalid_field", "exists"),
    ),
    route(
        "GET /v1/pauses",
        Role.READER,
        "The pauses that are in force",
        _pauses,
        whole=True,
        answer={"pauses": "list"},
    ),
    route(
        "POST /v1/pauses/resume",
        Role.OPERATOR,
        "End these pauses, by their exact names",
        _resume,
        whole=True,
        frees=True,
        body={"names": Field(NAMES, "exact names of pauses", 0, _MANY, needed=True)},
        answer={"ended": "list"},
        codes=("missing_field", "invalid_field", "unknown_id", "not_exact", "changed"),
    ),
    route(
        "POST /v1/reap",
        Role.WORKER,
        "Requeue every stale claim and due task, as a janitor does",
        _reap,
        long=True,
        whole=True,
        frees=True,
        answer={"reaped": "object"},
    ),
    route(
        "GET /v1/check",
        Role.OPERATOR,
        "Find faults on the board",
        _check,
        whole=True,
        kind=READ,
        answer={"findings": "list"},
        codes=("unsupported",),
    ),
    route(
        "POST /v1/repair",
        Role.OPERATOR,
        "Repair what can be repaired",
        _repair,
        whole=True,
        kind=READ,
        answer={"repaired": "list", "left": "list"},
        codes=("unsupported",),
    ),
    route(
        "POST /v1/purge",
        Role.OPERATOR,
        "Remove tasks that were done so many seconds ago or earlier",
        _purge,
        whole=True,
        kind=READ,
        body={"older_than": Field(NUMBER, "seconds", 0, 36_500 * 86_400, needed=True)},
        answer={"purged": "whole"},
        codes=("missing_field", "invalid_field"),
    ),
    route(
        "POST /v1/forget",
        Role.OPERATOR,
        "Free the ids of removed tasks",
        _forget,
        kind=READ,
        body={"ids": Field(NAMES, "ids", 0, _MANY, needed=True)},
        answer={"ledger": "list"},
        codes=("missing_field", "invalid_field"),
    ),
    route(
        "GET /v1/board",
        Role.READER,
        "Show the board's settings, and what it supports",
        _board,
        answer={"label": "text", "settings": "object", "capabilities": "list", "host": "object"},
    ),
    route(
        "GET /v1/snapshot",
        Role.READER,
        "The complete board at one moment, as `Board.snapshot`",
        _snapshot,
        kind=READ,
        query={"ended": Field(FLAG, "with what is done, failed and free", default=False)},
        answer={"snapshot": "object"},
    ),
    route(
        "GET /v1/counts",
        Role.READER,
        "The numbers of done, failed and free, which a snapshot may leave out",
        _counts,
        kind=READ,
        answer={"counts": "object"},
    ),
    route(
        "GET /v1/ages",
        Role.READER,
        "For how many seconds each task in these states is as it is, by exact name",
        _ages,
        kind=READ,
        query={"state": Field(NAMES, "states", 0, 9, needed=True)},
        answer={"ages": "object"},
    ),
    route(
        "POST /v1/entries",
        Role.READER,
        "The rows of exact names, as `Board.entries_of`",
        _entries,
        kind=READ,
        body={"names": Field(NAMES, "exact names", 0, _MANY, needed=True)},
        answer={"entries": "list"},
        codes=("not_exact", "missing_field", "invalid_field"),
    ),
    route(
        "GET /v1/claims",
        Role.READER,
        "The rows of the claims whose metadata has this value of a key",
        _claims_with,
        kind=READ,
        query={
            "key": Field(TEXT, "the key", 1, 40, needed=True),
            "value": Field(TEXT, "its value", 0, 1024, needed=True),
        },
        answer={"entries": "list"},
    ),
    route(
        "GET /v1/waiters",
        Role.READER,
        "The workers that wait for tasks",
        _waiters,
        whole=True,
        kind=READ,
        answer={"waiters": "list"},
    ),
    route(
        "GET /v1/log/rates",
        Role.READER,
        "The counts of events since a time, by kind and second",
        _rates,
        whole=True,
        kind=READ,
        query={
            "since": Field(NUMBER, "unix seconds of the board's clock", 0, 2**36, default=0),
            "owners": Field(FLAG, "count by owner too", default=False),
        },
        answer={"rates": "object"},
    ),
    route(
        "GET /v1/log/totals",
        Role.READER,
        "How many events of each kind there were, and the cursor at the log's end",
        _totals,
        kind=READ,
        answer={"totals": "object", "omitted": "list", "end": "text"},
    ),
    route(
        "POST /v1/log",
        Role.WORKER,
        "Write a line about no single task into the log",
        _note,
        whole=True,
        body={
            "verb": Field(TEXT, "what happened, in a word", 1, 40, needed=True),
            "text": Field(TEXT, "the line", 0, 4096, needed=True),
            "bulk": _BULK,
        },
        answer={"status": "text"},
        codes=("missing_field", "invalid_field"),
    ),
    route(
        "GET /v1/events",
        Role.READER,
        "Follow the log as server-sent events, from a cursor or with a snapshot first",
        kind=STREAM,
        query={
            "cursor": Field(TEXT, "where to go on: the `id` of the last event", 1, 65_536),
            "prefix": Field(TEXT, "only ids that begin with this", 0, 256, default=""),
            "snapshot": Field(FLAG, "whether a stream without cursor begins so", default=True),
        },
    ),
    route(
        "GET /v1/watch",
        Role.READER,
        "Follow the board as server-sent events, each a `Delta`, the complete board first",
        whole=True,
        kind=STREAM,
        query={
            "since": Field(NAMES, "look up since when these are as they are", 0, 500, default=()),
        },
    ),
)
