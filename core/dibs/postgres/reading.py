"""What is on a board: tasks and locks by their names, holders, rows and ages."""

from __future__ import annotations

from collections.abc import Container, Iterable
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.entries import Entry, entry
from dibs.model.errors import BadName, Changed
from dibs.model.holder import Holder
from dibs.model.metadata import value_of
from dibs.model.questions import Question, decode_question
from dibs.model.records import decode
from dibs.model.sample import Sample
from dibs.model.snapshot import Snapshot
from dibs.model.task import DONE, FAILED, FREE, Task, describe
from dibs.model.waiters import IGNORED, Waiter, read_waiter
from dibs.postgres import pausing
from dibs.postgres.texts import unpacked

if TYPE_CHECKING:
    from dibs.postgres.libpq import Row
    from dibs.postgres.sessions import Session

HOLDER = "c.name, c.beat, c.since, c.record, c.note, c.noted"
_MANY = 2000
"""With more names all times are asked for, as one text."""
APART = (DONE, FAILED, FREE)
"""The states that a snapshot without `ended` leaves out."""


def find(session: Session, ident: str) -> tuple[Task, ...]:
    """What has that id now: nothing, or one task or lock."""
    rows = session.rows(
        "SELECT name FROM dibs.task WHERE eid = %s AND name IS NOT NULL", (names.escape(ident),)
    )
    return tasks_of(name for (name,) in rows)


def find_each(session: Session, idents: Iterable[str]) -> dict[str, list[Task]]:
    """What has each of these texts as its id now; a text that is no id has nothing."""
    found: dict[str, list[Task]] = {ident: [] for ident in idents}
    eids: dict[str, str] = {}
    for ident in found:
        with suppress(BadName):
            eids[names.escape(ident)] = ident
    rows = session.rows(
        "SELECT eid, name FROM dibs.task WHERE eid = ANY (%s) AND name IS NOT NULL", (list(eids),)
    )
    for eid, name in rows:
        found[eids[eid]] += tasks_of([name])
    return found


def tasks_of(found: Iterable[str]) -> tuple[Task, ...]:
    """The tasks and locks of exact names."""
    return tuple(task for task in map(names.read_any, found) if task is not None)


def changed(session: Session, text: str, ident: str, why: str) -> Changed:
    """The error for an exact name that is gone."""
    now = find(session, ident)
    return Changed(f"{text}: {why}; {describe(now)}", text, now)


def holder_of(session: Session, row: Row) -> Holder | None:
    """The holder of a claim as its row has it."""
    name, beat, since, data, note, noted = row
    task = names.read(name)
    if task is None or not task.claim:  # a row outside the limits
        return None
    record = decode(data)
    own = record.ttl is not None
    ttl = record.ttl if record.ttl is not None else session.settings.ttl
    owner = record.owner or task.owner
    return Holder(
        task, beat, ttl, since, owner, record.host, record.process, record.metadata,
        not own, "", record.flaw, unpacked(note), noted,
    )  # fmt: skip


def holder(session: Session, task: Task) -> Holder | None:
    """The holder of exactly this claim; None if its name is gone."""
    rows = session.rows(
        f"SELECT {HOLDER} FROM dibs.claim c WHERE c.eid = %s AND c.name = %s",
        (names.escape(task.id), task.name),
    )
    return holder_of(session, rows[0]) if rows else None


def holders(session: Session) -> dict[str, Holder]:
    """The holder of each claim, by its exact name."""
    found = (holder_of(session, r) for r in session.rows(f"SELECT {HOLDER} FROM dibs.claim c"))
    return {each.task.name: each for each in found if each is not None}


def dead(session: Session, found: Holder) -> bool:
    """Whether the process that holds a claim is known to have exited."""
    if found.process is None or not session.settings.reap_dead:
        return False
    return session.host.gone(found.process) is True


def listed(session: Session, without: Container[str] = ()) -> list[Task]:
    """Every task and lock but those in some states.

    The server sends all names as one text: a row for each would take four times as long.
    """
    left_out = [state for state in APART if state in without]
    ((text,),) = session.scan(
        "SELECT string_agg(name, E'\\n') FROM dibs.task "
        "WHERE name IS NOT NULL AND state <> ALL (%s)",
        (left_out,),
    )
    given = text.split("\n") if text else []
    found = names.read_never_claimed(given)
    known = {task.name for task in found}
    return [*found, *tasks_of(name for name in given if name not in known)]


def snapshot(session: Session, *, ended: bool = True) -> Snapshot:
    """The complete board; without `ended` it omits done, failed and free ones."""
    now = session.now()
    tasks = {task.name: task for task in listed(session, () if ended else APART)}
    held = {name: found for name, found in holders(session).items() if name in tasks}
    missing = [name for name, task in tasks.items() if task.live and name not in held]
    if missing:  # they have ended since, or were claimed again
        for name in missing:
            del tasks[name]
        again = find_each(session, [task.id for task in map(names.read, missing) if task])
        tasks |= {task.name: task for found in again.values() for task in found}
        held = {name: found for name, found in holders(session).items() if name in tasks}
    return Snapshot(
        tasks=tasks,
        holders=held,
        now=now,
        exact=True,
        strangers=0,
        dead={name for name, found in held.items() if dead(session, found)},
        questions=MappingProxyType(_open_questions(session)),
        pauses=pausing.in_force(session, now.fs),
        waiters=waiters(session, now.fs),
    )


def _open_questions(session: Session) -> dict[str, Question]:
    """What asked tasks wait with, by their names."""
    rows = session.rows(
        """
        SELECT t.name, q.fence, q.data FROM dibs.task t JOIN dibs.question q
          ON q.eid = t.eid AND q.fence = t.fence AND q.answer = 0
        WHERE t.state = 'asked'
        """
    )
    return {name: decode_question(fence, data)[0] for name, fence, data in rows}


def count_apart(session: Session) -> dict[str, int]:
    """The numbers of done, failed and free."""
    found = dict.fromkeys(APART, 0)
    rows = session.scan(
        f"SELECT state, count(*) FROM dibs.task WHERE name IS NOT NULL AND state IN {APART} "
        "GROUP BY state"
    )
    return found | dict(rows)


def waiters(session: Session, now: int) -> tuple[Waiter, ...]:
    """The workers that wait for tasks, by name."""
    rows = session.rows(
        "SELECT name, data FROM dibs.waiter WHERE abs(touched - %s) <= %s ORDER BY name",
        (now, IGNORED),
    )
    found = (read_waiter(name, data) for name, data in rows)
    return tuple(waiter for waiter in found if waiter is not None)


def since_of(session: Session, found: Iterable[str]) -> dict[str, int]:
    """When the tasks of these exact names became available or ended."""
    wanted = list(found)
    if len(wanted) <= _MANY:
        rows = session.rows("SELECT name, since FROM dibs.task WHERE name = ANY (%s)", (wanted,))
        return dict(rows)
    ((text,),) = session.scan(
        "SELECT string_agg(name || ' ' || since, E'\\n') FROM dibs.task WHERE name IS NOT NULL"
    )
    pairs = (line.rpartition(" ") for line in (text or "").split("\n"))
    known = {name: int(at) for name, _, at in pairs if name}
    return {name: known[name] for name in wanted if name in known}


def entries(session: Session, seen: Snapshot, states: Container[str] | None = None) -> list[Entry]:
    """Every row of a snapshot with its ages; with `states` those in one of them, and all claims."""
    wanted = [
        task
        for name, task in seen.tasks.items()
        if states is None or task.live or task.state in states
    ]
    idle = [task.name for task in wanted if not task.live]
    since = since_of(session, idle) if idle else {}
    rows = []
    for task in wanted:
        if not task.live and task.name not in since:
            continue
        name = task.name
        rows.append(
            entry(
                task,
                seen.holders.get(name),
                seen.now,
                since.get(name),
                dead=name in seen.dead,
                question=seen.questions.get(name),
            )
        )
    return rows


def entries_of(session: Session, tasks: Iterable[Task]) -> list[Entry]:
    """The rows of a few tasks now."""
    return [_entry_of(session, task) for task in tasks]


def _entry_of(session: Session, task: Task) -> Entry:
    now = session.now()
    if task.live:
        found = holder(session, task)
        if found is not None:
            return entry(task, found, now, dead=dead(session, found))
    rows = session.rows(
        """
        SELECT t.since, q.data FROM dibs.task t LEFT JOIN dibs.question q
          ON t.state = 'asked' AND q.eid = t.eid AND q.fence = t.fence AND q.answer = 0
        WHERE t.name = %s
        """,
        (task.name,),
    )
    if not rows:
        return entry(task, None, Sample(0, 0))
    since, data = rows[0]
    asked = decode_question(task.fence, data)[0] if data is not None else None
    return entry(task, None, now, since, question=asked)


def claims_with(session: Session, key: str, value: str) -> list[Entry]:
    """The rows of the claims whose metadata has this value of a key."""
    if not value:
        return []
    now = session.now()
    return [
        entry(found.task, found, now, dead=dead(session, found))
        for found in holders(session).values()
        if value_of(found.metadata, key) == value
    ]
