"""What a tool answers: short fields that any client can read, whatever is on the board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dibs.model.filters import parse, states
from dibs.model.names import read_printed
from dibs.model.reasons import last_reasons
from dibs.model.task import ASKED, DONE, FAILED, FREE, STATES

if TYPE_CHECKING:
    from dibs.board import Board, Claim
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.task import Task

Answer = dict[str, Any]
PAYLOAD_BYTES = 32 << 10
"""How much of a payload or result an answer has: it becomes a part of a model's context."""
ROWS = 20
"""How many tasks and locks one answer lists."""
_TEXT = 400
"""How much of a text on the board an answer has, where it lists many."""
_EVENTS = 8
_QUESTIONS = 5
_APART = (DONE, FAILED, FREE)
_SHOWN = ("id", "state", "claim", "owner", "host", "fence", "attempts", "priority", "age", "ttl")
_TEXTS = ("metadata", "note", "reason", "question")


def of_claim(claim: Claim | None, status: str) -> Answer:
    """A new claim with its payload; `empty` without one."""
    if claim is None:
        return {"status": "empty", "next": "no task is available: ask again later"}
    found = _held(claim, status) | {"fence": claim.fence}
    if claim.task.kind == "lock":
        return found
    found |= content("payload", claim.payload(PAYLOAD_BYTES + 1))
    if "truncated" in found and claim.path is not None:
        found["path"] = claim.path
    asked = claim.answers
    if asked:
        found["answers"] = [question.fields for question in asked[-_QUESTIONS:]]
    return found


def of_beat(claim: Claim) -> Answer:
    """A claim that was renewed."""
    return _held(claim, "renewed")


def _held(claim: Claim, status: str) -> Answer:
    """A claim, and when its next heartbeat is due."""
    ttl = claim.ttl
    found = {"status": status, "claim": claim.name, "id": claim.id}
    return found | {"ttl": ttl, "beat_within": round(ttl / 3, 1)}


def content(key: str, data: bytes) -> Answer:
    """Bytes as text: at most `PAYLOAD_BYTES`, and with a word on what is lost."""
    short, more = data[:PAYLOAD_BYTES], {"truncated": True} if len(data) > PAYLOAD_BYTES else {}
    try:
        return {key: short.decode()} | more
    except UnicodeDecodeError as error:
        if more and error.reason == "unexpected end of data":  # the cut is inside a character
            return {key: short[: error.start].decode()} | more
    return {key: short.decode("utf-8", "replace"), "binary": True} | more


def of_task(task: Task, status: str) -> Answer:
    """What a task or lock has become."""
    return {"status": status, "id": task.id, "state": task.state, "name": task.name}


def of_board(board: Board, filtered: str = "", most: int = ROWS) -> Answer:
    """The counts of a board, and its most urgent rows or those that match a filter."""
    terms = filtered.split()
    test, wanted = parse(terms), states(terms, STATES)
    if not terms:
        wanted -= set(_APART)
    snapshot = board.snapshot(ended=not wanted.isdisjoint(_APART))
    totals = snapshot.counts()
    if wanted.isdisjoint(_APART):
        for state, count in board.count_apart().items():
            totals[state] += count
    rows = [entry for entry in board.entries(snapshot, wanted) if test(entry)]
    rows.sort(key=lambda e: (STATES.index(e.state), -e.priority, e.claim))
    found: Answer = {
        "status": "ok",
        "counts": {state: count for state, count in totals.items() if count},
        "rows": [_row(entry) for entry in _with_reasons(board, rows[:most])],
    }
    if len(rows) > most:
        found["more"] = len(rows) - most
    if snapshot.pauses:
        found["paused"] = [
            {"by": _cut(pause.by), "reason": _cut(pause.reason), "host": pause.host}
            for pause in snapshot.pauses[:_QUESTIONS]
        ]
    return found


def of_id(board: Board, ident: str) -> Answer:
    """Everything with one id, or with that of an exact name, what happened to it, what it left."""
    name = read_printed(ident)
    tasks = (board.find(name.id) if name is not None else ()) or board.find(ident)
    if not tasks:
        return {"status": "unknown-id", "error": board.why_missing(ident)}
    entries = _with_reasons(board, board.entries_of(tasks))
    found: Answer = {"status": "ok", "rows": [_row(entry) for entry in entries[:ROWS]]}
    task = tasks[0]
    if asked := board.questions(task):
        found["answers"] = [question.fields for question in asked[-_QUESTIONS:]]
    if task.state == DONE and (result := board.result(task)) is not None:
        found |= content("result", result)
    elif task.kind == "task" and task.state not in (DONE, FAILED):
        found |= content("payload", board.payload(task, PAYLOAD_BYTES + 1))
    found["log"] = [_event(event) for event in board.log.of(task.id, _EVENTS)]
    return found


def _with_reasons(board: Board, rows: Iterable[Entry]) -> list[Entry]:
    """The rows, those that failed with the reason."""
    rows = list(rows)
    wanted = [row.id for row in rows if row.state in (FAILED, "later")]
    found = last_reasons(board.log, wanted) if wanted else {}
    return [row._replace(reason=found.get(row.id, row.reason)) for row in rows]


def _row(entry: Entry) -> Answer:
    """A task or lock, without what is empty."""
    found = {key: getattr(entry, key) for key in _SHOWN}
    if entry.state == ASKED or entry.kind == "lock":
        found["priority"] = None
    found |= {key: _cut(getattr(entry, key)) for key in _TEXTS}
    found["starts"] = entry.starts
    rounded = {k: round(v, 1) if isinstance(v, float) else v for k, v in found.items()}
    return {key: value for key, value in rounded.items() if value not in ("", None)}


def _event(event: Event) -> Answer:
    found = {"at": round(event.at), "verb": event.verb, "to": event.dst, "by": _cut(event.by)}
    return found | ({"reason": _cut(event.reason)} if event.reason else {})


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def safe(value: Any) -> Any:
    """The answer without what JSON over UTF-8 cannot hold: surrogates, and numbers like NaN."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {safe(str(key)): safe(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [safe(each) for each in value]
    if isinstance(value, float) and not -1e300 < value < 1e300:
        return None
    return value
