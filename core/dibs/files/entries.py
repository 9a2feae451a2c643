"""The rows of a board, as the command line, its JSON and the dashboard show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.files import janitor
from dibs.files.board_files import RECORDS
from dibs.files.facts import facts_of
from dibs.files.questions import open_question
from dibs.files.waits import corrected, may_be_older
from dibs.model import names
from dibs.model.entries import Entry, entry
from dibs.model.errors import storage_error
from dibs.model.metadata import value_of
from dibs.model.records import RECORD_BYTES, decode
from dibs.model.sample import Sample
from dibs.model.task import ASKED, AVAILABLE, CLAIMED, HELD

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from dibs.files.board_files import BoardFiles
    from dibs.model.snapshot import Snapshot
    from dibs.model.task import Task


def entries(
    store: BoardFiles, snapshot: Snapshot, states: Container[str] | None = None
) -> list[Entry]:
    """Every row of a snapshot, each with its age; costs one `lstat` per unclaimed task.

    With `states`, only the rows in one of these states, and everything that is claimed.
    """
    rows: list[Entry] = []
    older: dict[str, tuple[int, int]] = {}
    for name, task in snapshot.tasks.items():
        if states is not None and not task.live and task.state not in states:
            continue
        holder = snapshot.holders.get(name)
        since = None
        if holder is None and not task.live:
            try:
                stat = store.port.stat(name)
                since = stat.ctime
                if task.state == AVAILABLE and may_be_older(stat):
                    older[name] = len(rows), since
            except FileNotFoundError:
                continue
            except OSError:
                pass
        question = snapshot.questions.get(name)
        dead = name in snapshot.dead
        rows.append(entry(task, holder, snapshot.now, since, dead=dead, question=question))
    for name, since in corrected(
        store.journal, {name: at for name, (_, at) in older.items()}
    ).items():
        at, found = older[name]
        if since != found:
            rows[at] = entry(snapshot.tasks[name], None, snapshot.now, since)
    return rows


def entries_of(store: BoardFiles, tasks: Iterable[Task]) -> list[Entry]:
    """The rows of a few tasks, read from the disk now."""
    found = []
    for task in names.check_tasks(tasks):
        facts = facts_of(store, task) if task.live else None
        if facts is None:
            found.append(_unclaimed(store, task))
            continue
        now = store.clock.now_or_newest(facts.beat)[0]
        now_dead = janitor.dead(store, facts)
        found.append(entry(task, store.noted(facts.holder), now, dead=now_dead))
    return found


def _unclaimed(store: BoardFiles, task: Task) -> Entry:
    """The row of a task without a claim; it has no age if it is gone or the clock is unknown."""
    question = open_question(store, task) if task.state == ASKED else None
    try:
        since = store.port.stat(task.name).ctime
    except OSError:
        return entry(task, None, Sample(0, 0), question=question)
    if task.state == AVAILABLE:
        since = store.waits.since(task) or since
    now, exact = store.clock.now_or_newest(since)
    return entry(task, None, now, since if exact else None, question=question)


def claims_with(store: BoardFiles, key: str, value: str) -> list[Entry]:
    """The rows of the claims whose records have this value of a key in their metadata."""
    names.check_text("a key", key)
    if not names.check_text("a value", value):
        return []
    try:
        stems = store.port.names(RECORDS)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error) from error
    # A record is mostly that of another, so its text is searched before it is parsed.
    plain = value.isascii() and value.isprintable() and not set(value) & set('"\\')
    part = value.encode() if plain else b""
    found = [stem for stem in stems if _has_value(store, stem, part, key, value)]
    words = [(stem, word) for stem in found for word in (CLAIMED, HELD)]
    tasks = [task for stem, word in words if (task := names.read(f"{stem}.{word}")) is not None]
    return [row for row in entries_of(store, tasks) if row.ttl is not None]


def _has_value(store: BoardFiles, stem: str, part: bytes, key: str, value: str) -> bool:
    try:
        data = store.port.read(f"{RECORDS}/{stem}", RECORD_BYTES + 1)[0]
    except OSError:  # it has just ended, or is no record
        return False
    return part in data and value_of(decode(data).metadata, key) == value
