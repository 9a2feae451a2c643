"""What is on a served board: tasks and locks by their names, holders, rows and ages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.entries import Entry, entry
from dibs.model.errors import DibsError, StorageError
from dibs.model.holder import Holder
from dibs.model.questions import Question
from dibs.model.snapshot import Snapshot
from dibs.model.task import Task
from dibs.remote.sessions import quoted

if TYPE_CHECKING:
    from dibs.remote.log import RemoteLog
    from dibs.remote.sessions import Found, RemoteSession

MANY = 1000
"""So many ids or names are in one request."""
PAGE = 1 << 20
LONGEST = 1 << 26
"""The longest payload that a server sends."""
APART = ("done", "failed", "free")


def some(given: Iterable[str]) -> Iterator[list[str]]:
    """Texts in parts that fit into a request."""
    listed = list(dict.fromkeys(given))
    for at in range(0, len(listed), MANY):
        yield listed[at : at + MANY]


def find_each(session: RemoteSession, idents: Iterable[str]) -> dict[str, list[Task]]:
    """What has each of these texts as its id now; a text that is no id has nothing."""
    found: dict[str, list[Task]] = {}
    for part in some(idents):
        answer = session.ask("/v1/find", ids=part)
        rows = session.value(list[tuple[Task, ...]], answer, "found")
        found |= {ident: list(tasks) for ident, tasks in zip(part, rows, strict=False)}
    return found


def find(session: RemoteSession, ident: str) -> tuple[Task, ...]:
    """What has that id now."""
    names.escape(ident)
    return tuple(find_each(session, [ident]).get(ident, ()))


def named(name: str, verb: str) -> str:
    """The path of what is asked about an exact name."""
    return f"/v1/names/{quoted(name)}/{verb}"


def holder(session: RemoteSession, task: Task) -> Holder | None:
    """The holder of exactly this claim; None if its name is gone."""
    answer = session.get(named(task.name, "holder"))
    found: Holder | None = session.value(Holder | None, answer, "holder")
    return found


def is_there(session: RemoteSession, task: Task) -> bool:
    """Whether a task still has exactly this name."""
    return any(now.name == task.name for now in find(session, task.id))


def questions(session: RemoteSession, task: Task) -> tuple[Question, ...]:
    """The questions that were asked about a task, oldest first."""
    answer = session.get(named(task.name, "questions"))
    found: tuple[Question, ...] = session.value(tuple[Question, ...], answer, "questions")
    return found


def content(session: RemoteSession, found: Found, key: str) -> bytes | None:
    """Bytes that were sent as text, or as base64."""
    text, data = found.get(key), found.get(f"{key}_base64")
    try:
        if isinstance(text, str):
            return text.encode()
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise session.foreign(f"its answer has no valid {key}") from None


def payload(session: RemoteSession, task: Task, limit: int) -> bytes:
    """The beginning of a payload, a page at a time."""
    parts: list[bytes] = []
    have = 0
    while have < limit:
        if have >= LONGEST:
            raise StorageError(
                f"{task.name}: its payload is longer than the {LONGEST >> 20} MiB that a server "
                "sends: read it where the board is"
            )
        wanted = min(PAGE, limit - have)
        answer = session.get(named(task.name, "payload"), limit=wanted, since=have or None)
        part = content(session, answer, "payload") or b""
        parts.append(part)
        have += len(part)
        if len(part) < wanted:
            break
    return b"".join(parts)


def snapshot(session: RemoteSession, *, ended: bool = True) -> Snapshot:
    """The complete board; without `ended` it omits done, failed and free ones."""
    answer = session.get("/v1/snapshot", ended=ended)
    data = answer.get("snapshot")
    if isinstance(data, dict) and isinstance(data.get("tasks"), list):
        data["tasks"] = {name: name for name in data["tasks"] if isinstance(name, str)}
    found: Snapshot = session.read(Snapshot, data)
    return found


def ages(session: RemoteSession, states: Sequence[str]) -> dict[str, float | None]:
    """For how many seconds each task in these states is as it is, by its exact name."""
    answer = session.get("/v1/ages", state=states)
    return dict(session.value(dict[str, float | None], answer, "ages"))


def entries(
    session: RemoteSession, seen: Snapshot, states: Container[str] | None = None
) -> list[Entry]:
    """Every row of a snapshot with its ages; with `states` those in one of them, and all claims."""
    wanted = [
        task for task in seen.tasks.values() if states is None or task.live or task.state in states
    ]
    idle = {task.state for task in wanted if not task.live}
    since = ages(session, sorted(idle)) if idle else {}
    rows = []
    for task in wanted:
        name = task.name
        if task.live or name in since:
            holder, question = seen.holders.get(name), seen.questions.get(name)
            dead = name in seen.dead
            row = entry(task, holder, seen.now, None, dead=dead, question=question)
            rows.append(row if task.live else row._replace(age=since[name]))
    return rows


def entries_of(session: RemoteSession, tasks: Iterable[Task]) -> list[Entry]:
    """The rows of a few tasks now."""
    found: list[Entry] = []
    for part in some(task.name for task in tasks):
        found += session.value(list[Entry], session.ask("/v1/entries", names=part), "entries")
    return found


def sought(
    session: RemoteSession, verb: str, before: Sequence[str], by: str = ""
) -> Callable[[DibsError | None], Found | None]:
    """Finds in the log what a request with a lost answer has made of a task.

    The end of a claim is looked for before it is tried again: its refusal would be logged. An act
    is looked for if it was refused; another may have done the same, but not with this `by`.
    """

    def look(error: DibsError | None) -> Found | None:
        task = names.read_any(before[0])
        if task is None or (by and error is None):
            return None
        for event in reversed(log_of(session).of(task.id, 20)):
            same = not by or event.by == by or event.by.endswith(f"/{by}")
            if event.verb == verb and event.src in before and same and event.after is not None:
                return {"task": {"name": event.dst}}
        return None

    return look


def log_of(session: RemoteSession) -> RemoteLog:
    """The log of the board."""
    from dibs.remote.log import RemoteLog

    return RemoteLog(session)
